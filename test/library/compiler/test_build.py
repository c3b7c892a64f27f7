"""Building: every fresh kernel is compared with its algorithm, every stored one replayed."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from small import Counting, massless_problem, problem, tiny

from delassus import Contact, DelassusSolver, Problem, Robot, Transform, algorithms
from delassus.algorithms import Status, TracedAlgorithm
from delassus.algorithms.dense import Dense
from delassus.compiler import kernel_for
from delassus.compiler.build import batch_kernel_for, serialized_kernel
from delassus.compiler.cache import disk
from delassus.compiler.cache.cached_code import stored_batch_kernel, stored_kernel
from delassus.compiler.runtime import packing
from delassus.compiler.runtime.batch_kernel import BatchKernel
from delassus.errors import CompilerError, InputError, NumericalError
from delassus.model import WORLD, Body, Frame, Inertia, Joint, JointKind
from delassus.samples import random_inputs
from delassus.scalars.functions import positive
from delassus.testing import ALL, random_problem

pytestmark = pytest.mark.usefixtures("own_kernels")


class Fickle(TracedAlgorithm):
    """Gives another result in the trace than on floats."""

    name = "fickle"

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def evaluate(self, problem, x):
        G = Dense().evaluate(problem, x)["G"]
        factor = 1.0 if isinstance(x["q"][0], float) else self.factor
        return {"G": [[factor * entry for entry in row] for row in G]}


def test_a_kernel_that_differs_from_its_algorithm_is_refused() -> None:
    with pytest.raises(CompilerError, match="'fickle' differs from itself on floats: outp"):
        kernel_for(tiny(), Fickle(1.0 + 1e-6), use_cache=False)
    kernel_for(tiny(), Fickle(1.0 + 1e-12), use_cache=False)
    with pytest.raises(CompilerError, match="differs"):
        kernel_for(tiny(), Fickle(float("nan")), use_cache=False)


def test_a_batch_kernel_that_differs_from_its_algorithm_is_refused() -> None:
    with pytest.raises(CompilerError, match="'fickle' differs from itself on floats: outp"):
        batch_kernel_for(tiny(), Fickle(1.0 + 1e-6), use_cache=False)
    batch_kernel_for(tiny(), Fickle(1.0 + 1e-12), use_cache=False)


def overflowing() -> Problem:
    """Return a problem whose G is no finite number anywhere."""
    mass = Inertia(1e-320, np.array([1e-320, 0.0, 0.0]), 1e-320 * np.diag([0.0, 1.0, 1.0]))
    joint = Joint("hinge", JointKind.REVOLUTE, WORLD)
    tip = Frame("tip", 0, Transform.from_xyz_rpy((1.0, 0.0, 0.0)))
    return Problem(Robot("light", [joint], [Body("dust", mass)], [tip]), [Contact("tip", "tip")])


@pytest.mark.parametrize("build", [kernel_for, batch_kernel_for])
def test_a_matrix_that_overflows_on_floats_too_is_no_difference(build) -> None:
    build(overflowing(), algorithms.get("pv_osimr"), use_cache=False)


def test_a_matrix_that_overflows_is_said_when_it_is_asked_for() -> None:
    solver = DelassusSolver(overflowing(), cache=False)
    with pytest.raises(NumericalError, match="pv_osimr: NOT_FINITE at q = "):
        solver.solve([0.3])
    assert solver.solve_batch([[0.3]]).status.tolist() == [Status.NOT_FINITE]


class Lopsided(TracedAlgorithm):
    """Gives a G that is not symmetric."""

    name = "lopsided"

    def __init__(self, excess: float) -> None:
        self.excess = excess

    def evaluate(self, problem, x):
        G = Dense().evaluate(problem, x)["G"]
        G[0][1] = G[0][1] * (1.0 + self.excess)
        return {"G": G}


@pytest.mark.parametrize("build", [kernel_for, batch_kernel_for])
def test_an_algorithm_whose_matrix_is_not_symmetric_is_refused(build) -> None:
    words = "output 'G' of algorithm 'lopsided' must be symmetric; on floats it differs from its "
    with pytest.raises(CompilerError, match=words):
        build(tiny(), Lopsided(1e-5), use_cache=False)
    build(tiny(), Lopsided(1e-12), use_cache=False)


class Guarded(TracedAlgorithm):
    """Fails on floats; in the trace only if it is told to keep the check."""

    name = "guarded"

    def __init__(self, keep: bool) -> None:
        self.keep = keep

    def evaluate(self, problem, x):
        G = Dense().evaluate(problem, x)["G"]
        if self.keep or isinstance(x["q"][0], float):
            G[0][0] = positive(-x["q"][0] * x["q"][0], "what is negative")
        return {"G": G}


def test_a_kernel_must_fail_where_its_algorithm_fails() -> None:
    kernel_for(tiny(), Guarded(keep=True), use_cache=False)
    with pytest.raises(CompilerError, match="'guarded' succeeds where it fails on floats"):
        kernel_for(tiny(), Guarded(keep=False), use_cache=False)
    batch_kernel_for(tiny(), Guarded(keep=True), use_cache=False)
    with pytest.raises(CompilerError, match="'guarded' succeeds where it fails on floats"):
        batch_kernel_for(tiny(), Guarded(keep=False), use_cache=False)


def test_building_is_logged_with_the_operations(caplog) -> None:
    caplog.set_level(logging.INFO, logger="delassus")
    kernel = kernel_for(tiny(), Counting())
    (message,) = [r.getMessage() for r in caplog.records if "compiled" in r.getMessage()]
    assert message.startswith("compiled counting for walker in ")
    assert message.endswith(f" s: {kernel.operations}")


@pytest.mark.parametrize("build", [kernel_for, batch_kernel_for])
def test_what_takes_long_to_compile_is_said_before(caplog, monkeypatch, build) -> None:
    build(tiny(), Counting(), use_cache=False)
    assert not [r for r in caplog.records if r.levelno >= logging.WARNING]
    monkeypatch.setattr("delassus.compiler.build._LONG_BUILD_NODES", 1)
    build(tiny(), Counting(), use_cache=False)
    (message,) = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
    assert message.startswith("counting for walker is ") and "operations" in message
    assert message.endswith("may take minutes; 'auto' or 'pv_osimr' may need less")


def test_a_serialized_kernel_gives_the_same_bits() -> None:
    this = problem()
    payload = serialized_kernel(this, Counting())
    fresh = kernel_for(this, Counting(), use_cache=False)
    loaded = stored_kernel(this, "counting").unpacked(payload)
    assert loaded.operations == fresh.operations
    results = []
    for kernel in (fresh, loaded):
        bound = kernel.bind()
        bound.inputs["q"][:] = 0.4, -0.1, 2.2
        assert bound.run() == 0
        results.append(bound.outputs["G"].copy())
    assert np.array_equal(*results)


def test_unpacked_kernel_has_the_bits_of_a_fresh_one() -> None:
    payload = serialized_kernel(tiny(), algorithms.get("dense"))
    kernel = stored_kernel(tiny(), "dense").unpacked(payload)
    G = DelassusSolver(tiny(), "dense", prebuilt=kernel).solve([0.4, -0.1]).matrix
    assert np.array_equal(
        G, DelassusSolver(tiny(), "dense", cache=False).solve([0.4, -0.1]).matrix
    )


@cache
def payload_of(kind: str) -> bytes:
    """Return the bytes of a kernel, or of a batch kernel."""
    if kind == "kernel":
        return serialized_kernel(tiny(), Counting())
    return batch_payload(tiny())[1]


def flipped(part: bytes) -> bytes:
    """Return bytes of which the last bit is another."""
    return part[:-1] + bytes([part[-1] ^ 1])


def changed(index: int, change: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    """Return a change of one part of a payload: digest, description, code, results."""

    def of_payload(payload: bytes) -> bytes:
        parts = packing.unpack(payload)
        parts[index] = change(parts[index])
        return packing.pack(*parts)

    return of_payload


STORED = {"kernel": stored_kernel, "batch kernel": stored_batch_kernel}
BOTH = tuple(STORED)
PAYLOADS: dict[str, tuple[tuple[str, ...], Callable[[bytes], bytes], str]] = {
    **{f"cut at {cut}": (BOTH, lambda payload, cut=cut: payload[:cut], "damaged")
       for cut in (0, 3, 8, 100, -1)},
    "no object file": (BOTH, changed(2, lambda code: b"\x7fnonsense"), "not an object file"),
    "other results": (BOTH, changed(4, flipped), "does not reproduce its stored results"),
    **{f"described by {x!r}": (BOTH[1:], changed(1, lambda text, x=x: x), "damaged") for x in
       (b"{}", b"[]", b'{"width": 4, "work_size": 99, "unique": [0, 1]}')},
    "without a size": (
        BOTH[1:], changed(1, lambda text: text.replace(b"work_size", b"size")), "damaged",
    ),
}  # fmt: skip
"""Kinds of kernels, the change of their payload, and part of the message."""


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for name, row in PAYLOADS.items() for kind in row[0]]
)
def test_changed_payload_refused(kind: str, name: str) -> None:
    stored = STORED[kind](tiny(), "counting")
    assert stored.unpacked(payload_of(kind))
    _, change, words = PAYLOADS[name]
    with pytest.raises(CompilerError, match=words):
        stored.unpacked(change(payload_of(kind)))


@pytest.mark.parametrize("kind", STORED)
def test_payload_of_another_kernel_refused(kind: str) -> None:
    moved = Problem(tiny().robot, [Contact("c0", "base")])
    (other,) = STORED.keys() - {kind}
    for this, algorithm, of in (
        (moved, "counting", kind), (tiny(), "ltl", kind), (tiny(), "counting", other),
    ):  # fmt: skip
        with pytest.raises(CompilerError, match=f"not the {kind} of {algorithm} for this problem"):
            STORED[kind](this, algorithm).unpacked(payload_of(of))


def batch_payload(problem: Problem) -> tuple[BatchKernel, bytes]:
    kernel = batch_kernel_for(problem, Counting(), use_cache=False)
    return kernel, stored_batch_kernel(problem, "counting").packed(kernel)


def test_a_serialized_batch_kernel_is_the_same() -> None:
    for this in (problem(), problem(axes="world"), problem(outputs={"G", "J", "MinvJT"})):
        kernel, payload = batch_payload(this)
        loaded = stored_batch_kernel(this, "counting").unpacked(payload)
        assert (loaded.code, loaded.width) == (kernel.code, kernel.width)
        assert loaded.work_size == kernel.work_size
        assert np.array_equal(loaded.unique, kernel.unique)


def test_a_cached_batch_kernel_that_fails_its_replay_is_compiled_anew(caplog) -> None:
    batch_kernel_for(tiny(), Counting())
    (file,) = disk.folder().iterdir()
    key = file.name.removesuffix(".kernel")
    payload = disk.load(key)
    assert payload is not None
    disk.store(key, changed(-1, flipped)(payload))
    algorithm = Counting()
    batch_kernel_for(tiny(), algorithm)
    assert algorithm.calls > 0
    assert "cached batch kernel of counting compiled anew: the compiled code does" in caplog.text
    again = Counting()
    batch_kernel_for(tiny(), again)
    assert again.calls == 0


def test_random_inputs_make_sense() -> None:
    for seed in range(10):
        this = random_problem(seed, ALL, "world")
        inputs = random_inputs(this, seed)
        assert {name: values.shape for name, values in inputs.items()} == {
            port.name: port.shape for port in this.inputs
        }
        q = inputs["q"]
        assert (np.abs(q) <= np.pi).all() and np.isfinite(q).all()
        robot = this.robot
        for joint, offset in zip(robot.joints, robot.q_offsets, strict=True):
            if joint.kind is JointKind.FLOATING:
                assert np.linalg.norm(q[offset + 3 : offset + 7]) == pytest.approx(1.0)
        if "base_orientation" in inputs:
            assert np.linalg.norm(inputs["base_orientation"]) == pytest.approx(1.0)
        again = random_inputs(this, seed)
        assert all(np.array_equal(inputs[name], again[name]) for name in inputs)
        other = random_inputs(this, seed + 100)
        assert not np.array_equal(q, other["q"])


def test_the_stored_results_may_be_failures() -> None:
    """A kernel that fails at a sample keeps that outcome, and its replay must give it again."""
    payload = serialized_kernel(tiny(), Guarded(keep=True))
    bound = stored_kernel(tiny(), "guarded").unpacked(payload).bind()
    bound.inputs["q"][:] = 0.3
    assert bound.run() != 0
    kernel_for(massless_problem(), Counting())


def test_a_prebuilt_kernel_of_another_problem_is_refused() -> None:
    kernel = kernel_for(tiny(), algorithms.get("dense"))
    other = Problem(tiny().robot, tiny().contacts, outputs=["J"])
    with pytest.raises(InputError, match="prebuilt has inputs .* and outputs .*'J'.*of this"):
        DelassusSolver(other, "dense", prebuilt=kernel)


@pytest.mark.parametrize("seed", range(5))
def test_a_row_along_which_nothing_moves(seed: int) -> None:
    """All that is left of it is rounding, in which algorithm and kernel need not agree."""
    rng = np.random.default_rng(seed)
    axis = rng.normal(size=3)
    axis /= np.linalg.norm(axis)
    joints = [
        Joint("a", JointKind.REVOLUTE, WORLD, Transform(), axis),
        Joint("b", JointKind.REVOLUTE, 0, Transform(translation=rng.normal(size=3)), axis),
    ]
    bodies = [Body(name, Inertia.from_com(1.0, rng.normal(size=3), np.eye(3))) for name in "AB"]
    robot = Robot("two", joints, bodies, [Frame("tip", 1, Transform(translation=(0.3, 0.1, 0.2)))])
    contact = Contact("tip", "tip", [[*axis, 0.0, 0.0, 0.0]])
    for name in ("dense", "pv_osimr"):
        solver = DelassusSolver(Problem(robot, [contact], outputs=["J"]), name, cache=False)
        assert np.abs(solver.solve([0.3, -0.4]).matrix).max() < 1e-30
