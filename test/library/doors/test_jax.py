"""The door to JAX: values, gradients under jit, vmap of 4096, zero copies, errors."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from door_cases import MOVING, PLAIN, close, gradient, outputs, sample, weights

from delassus import DelassusSolver, InputError, Problem
from delassus.algorithms import registry
from delassus.doors import jax as door


@pytest.fixture(autouse=True)
def doubles():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def weighted(problem: Problem, function):
    bars = weights(problem)

    def total(inputs):
        found = function(**inputs)
        found = found if isinstance(found, dict) else {"G": found}
        return sum((bars[name] * found[name]).sum() for name in bars)

    return total


@pytest.mark.parametrize("problem", [PLAIN, MOVING], ids=["G", "h and a0 in world axes"])
def test_values_and_gradients_with_and_without_jit(problem: Problem) -> None:
    function, inputs = door.jax_function(problem), sample(problem)
    expected = outputs(problem, inputs)
    for call in (function, jax.jit(function)):
        found = call(**inputs)
        found = found if isinstance(found, dict) else {"G": found}
        for name, values in expected.items():
            assert close(found[name], values, 1e-9)
    wanted = gradient(problem, inputs)
    total = weighted(problem, function)
    for call in (jax.grad(total), jax.jit(jax.grad(total))):
        found = call({name: jnp.array(values) for name, values in inputs.items()})
        for name, values in wanted.items():
            assert close(found[name], values)


def test_vmap_of_4096() -> None:
    function = door.jax_function(PLAIN)
    Q = np.random.default_rng(0).uniform(-1, 1, (4096, 2))
    expected = DelassusSolver(PLAIN).solve_batch(Q).matrix
    assert close(jax.jit(jax.vmap(function))(Q), expected, 1e-12)
    assert close(function(Q), expected, 1e-12)
    each = jax.grad(lambda q: weighted(PLAIN, function)({"q": q}))
    found = jax.jit(jax.vmap(each))(jnp.array(Q))
    assert found.shape == Q.shape
    for k in (0, 4095):
        assert close(found[k], gradient(PLAIN, {"q": Q[k]})["q"])


def test_a_definition_that_was_loaded_anew_is_another_function(own_algorithms) -> None:
    """As a cell of a notebook that is run again registers under the same name."""
    efpa, q = registry.get("efpa"), jnp.array([0.3, 0.2])
    for scale in (1.0, 2.0):

        @registry.register("scaled")
        def scaled(tree, K, x, scale=scale):
            """EFPA, times a number."""
            return [[scale * entry for entry in row] for row in efpa.function(tree, K, x)]

        found = door.jax_function(PLAIN, "scaled")(q)
        assert close(found, scale * np.asarray(door.jax_function(PLAIN)(q)), 1e-9)


def test_the_kernel_reads_and_writes_the_buffers_of_xla(monkeypatch) -> None:
    seen = []

    def record(self, inputs, out):
        seen.append((inputs.ctypes.data, out.ctypes.data))
        out[:] = 7.0

    monkeypatch.setattr(door.BlockFunction, "__call__", record)
    q = jnp.arange(16.0).reshape(8, 2)
    found = door.jax_function(PLAIN)(q)
    assert (np.asarray(found) == 7.0).all()
    assert seen[0][0] == q.unsafe_buffer_pointer()


def test_what_fails_is_nan_or_named(monkeypatch) -> None:
    function = door.jax_function(PLAIN)
    found = function(jnp.array([[0.1, 0.2], [jnp.nan, 0.0]]))
    assert jnp.isfinite(found[0]).all() and jnp.isnan(found[1]).all()
    for call, message in (
        (lambda: function(), "input 'q' is missing; inputs: q"),
        (lambda: function(np.zeros(3)), r"input 'q' has shape \(3,\), expected \(…, 2\)"),
        (lambda: function(np.zeros(2), q=np.zeros(2)), "got q; expected each input once"),
        (lambda: function(np.zeros(2), p=1), "got p; expected each input once: q"),
        (lambda: function(np.zeros(2) + 1e-20j), "input 'q' is complex128; expected real numbers"),
    ):
        with pytest.raises(InputError, match=message):
            call()
    jax.config.update("jax_enable_x64", False)
    with pytest.raises(InputError, match="jax_enable_x64"):
        function(np.zeros(2))
    jax.config.update("jax_enable_x64", True)

    def fail(self, inputs, out):
        raise ValueError("broken kernel")

    monkeypatch.setattr(door.BlockFunction, "__call__", fail)
    with pytest.raises(Exception, match="broken kernel"):
        function(np.ones(2)).block_until_ready()
