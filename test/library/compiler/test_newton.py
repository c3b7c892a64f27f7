"""Compiled Newton iterations: the loop around a step, its outcomes, its place in the cache."""

from __future__ import annotations

import ctypes
import math

import numpy as np
import pytest

from delassus.compiler.cache import disk as cache
from delassus.compiler.codegen.loops import doubles
from delassus.compiler.newton import BoundNewton, NewtonStep, newton_for
from delassus.compiler.newton_loop import Outcome, track
from delassus.compiler.runtime import packing
from delassus.errors import CompilerError, NumericalError
from delassus.scalars.functions import absolute, regular
from delassus.scalars.ports import Status

FAR = float(np.finfo(float).max)


class Root(NewtonStep):
    """q[1] becomes the square root of q[0]; q[2] is not touched. The result is the gap."""

    nq, unknown, results = 3, (1,), 1

    def __init__(self, label: bytes = b"root") -> None:
        self.label = label
        self.traced = 0

    def evaluate(self, q):
        self.traced += 1
        gap = q[1] * q[1] - q[0]
        step = -gap / (2.0 * regular(q[1], 1e-3, "the root"))
        return [step, absolute(step), gap]

    def sample(self, random):
        return random.uniform(1.0, 2.0, 3)

    def to_bytes(self):
        return self.label


def bound(step=None, longest=np.inf, contraction=np.inf, iterations=50, reach=FAR, **options):
    compiled = newton_for(step or Root(), **{"use_cache": False, **options})
    given = [(0, 1)]
    return BoundNewton(compiled, 2, given, [reach], longest, contraction, 1e-9, iterations)


def started(this: BoundNewton, wanted: float, q=(1.0, 1.0, 5.0)) -> int:
    this.q[...] = q
    this.measured[...] = (99.0, wanted)
    return this.run()


def test_it_goes_to_the_measured_position_and_solves():
    this = bound()
    assert started(this, 2.0) == Status.OK
    assert this.q.tolist() == [2.0, pytest.approx(math.sqrt(2.0), rel=1e-15), 5.0]
    assert abs(this.results[0]) <= 1e-15, "the results are those at the end"


def test_what_is_too_far_is_not_begun():
    this = bound(reach=0.5)
    for wanted in (1.6, 0.4, math.nan, math.inf):
        assert started(this, wanted) == Outcome.FAR
        assert this.q.tolist() == [1.0, 1.0, 5.0]
    assert started(this, 1.5) == Status.OK
    this = bound()
    assert started(this, math.inf) == Outcome.FAR
    assert started(this, math.nan) == Outcome.FAR


def test_steps_that_are_long_or_do_not_shrink_are_unsafe():
    assert started(bound(longest=0.4), 2.0) == Outcome.UNSAFE  # the first step is 0.5
    assert started(bound(longest=0.6), 2.0) == Status.OK
    assert started(bound(contraction=0.1), 2.0) == Outcome.UNSAFE  # then 0.083
    assert started(bound(contraction=0.2), 2.0) == Status.OK


def test_too_few_iterations_and_singular_steps_are_told():
    assert started(bound(iterations=2), 2.0) == Outcome.NOT_CONVERGED
    assert started(bound(), 0.0) == Status.SINGULAR_LOOP
    assert started(bound(), 2.0, (1.0, math.nan, 0.0)) == Status.NOT_FINITE


@ctypes.PYFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 3)
def root_in_python(q, out, work):
    """A kernel of Root without a compiler."""
    assert work is None
    try:
        doubles(out)[:3] = Root().evaluate(doubles(q)[:3].tolist())
    except NumericalError:
        return Status.SINGULAR_LOOP
    return Status.OK


@pytest.mark.parametrize("in_python", [False, True], ids=["compiled step", "step in Python"])
@pytest.mark.parametrize(
    ("expected", "wanted", "options"),
    [
        (Status.OK, 2.0, {}),
        (Status.OK, 2.0, {"iterations": 0}),
        (Status.SINGULAR_LOOP, 0.0, {}),
        (Outcome.FAR, 2.0, {"reach": 0.5}),
        (Outcome.FAR, math.nan, {}),
        (Outcome.UNSAFE, 2.0, {"longest": 0.4}),
        (Outcome.UNSAFE, 2.0, {"contraction": 0.1}),
        (Outcome.NOT_CONVERGED, 2.0, {"iterations": 2}),
    ],
)
def test_the_loop_gives_the_same_as_python_and_as_machine_code(
    expected, wanted, options, in_python
):
    this = bound(**options)
    assert started(this, wanted) == expected
    q, results = this.q.copy(), this.results.copy()
    binding = np.array(this._binding)
    if in_python:
        binding[0] = ctypes.cast(root_in_python, ctypes.c_void_p).value
    this.q[...] = (1.0, 1.0, 5.0)
    assert track(binding) == expected
    np.testing.assert_allclose(this.q, q, rtol=1e-14)
    if expected == Status.OK:
        np.testing.assert_allclose(this.results, results, rtol=1e-14, atol=1e-15)


def test_the_iteration_ends_behind_the_first_small_step():
    evaluated = []

    @ctypes.PYFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 3)
    def step(q, out, _):
        evaluated.append(float(doubles(q)[1]))
        return root_in_python(q, out, None)

    this = bound()
    this.q[...], this.measured[...] = (1.0, 1.0, 5.0), (99.0, 2.0)
    this._binding[0] = ctypes.cast(step, ctypes.c_void_p).value
    assert this.run() == Status.OK
    assert np.diff(evaluated)[-2:] == pytest.approx([-2.1e-6, -1.6e-12], rel=0.1)


def test_nothing_given_and_nothing_unknown():
    class Nothing(Root):
        unknown = ()

        def evaluate(self, q):
            return [0.0, q[2] * 2.0]

    compiled = newton_for(Nothing(), use_cache=False)
    this = BoundNewton(compiled, 0, [], [], np.inf, np.inf, 1e-9, 5)
    this.q[2] = 4.0
    assert this.run() == Status.OK
    assert this.results.tolist() == [8.0]


def test_the_second_time_it_comes_from_the_disk(own_kernels):
    for expected in (True, False):
        step = Root()
        assert started(bound(step, use_cache=True), 2.0) == Status.OK
        assert (step.traced > 0) == expected
    other = Root(b"another")
    assert started(bound(other, use_cache=True), 2.0) == Status.OK
    assert other.traced
    assert len(list(own_kernels.iterdir())) == 2


@pytest.mark.parametrize("damage", ["results", "step", "length"])
def test_what_is_stored_wrongly_is_compiled_anew(own_kernels, monkeypatch, damage, caplog):
    bound(Root(), use_cache=True)
    (file,) = own_kernels.iterdir()
    payload = cache.load(file.stem)
    digest, description, code, *results = packing.unpack(payload)
    if damage == "results":
        parts = packing.pack(digest, description, code, *results[::-1])
    elif damage == "step":
        parts = packing.pack(b"x" * 32, description, code, *results)
    else:
        parts = payload[:-3]
    cache.store(file.stem, parts)
    step = Root()
    assert started(bound(step, use_cache=True), 2.0) == Status.OK
    assert step.traced
    assert "compiled anew" in caplog.text


def test_a_step_that_depends_on_more_than_q_is_refused():
    class Fickle(Root):
        def evaluate(self, q):
            self.traced += 1
            return [value * float(self.traced) for value in super().evaluate(q)]

    with pytest.raises(CompilerError, match="a compiled Newton step differs from itself on"):
        newton_for(Fickle(), use_cache=False)

    class Blind(Root):
        def sample(self, random):
            return np.array([0.0, 1e-9, 0.0])

    assert newton_for(Blind(), use_cache=False), "it fails there on floats as well"

    class Short(Root):
        def evaluate(self, q):
            return super().evaluate(q)[:2]

    with pytest.raises(CompilerError, match="a Newton step returned 2 numbers, not 3"):
        newton_for(Short(), use_cache=False)
