"""Large systems: traced once per shape of a step, run from a table of calls."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import cluster_robots
import numpy as np
import pytest
from on_floats import outputs_on_floats
from oracles import relative as error
from oracles.counts import count, exponent
from oracles.textbook import contact_jacobian, mass_matrix

from benchmarks import mechanisms
from benchmarks.scaling import contacts_on_feet
from delassus import Contact, DelassusSolver, Problem, Robot, Transform, algorithms
from delassus.algorithms.counting import is_large
from delassus.algorithms.registry import evaluate
from delassus.compiler.build import checked_positions, kernel_for, splits
from delassus.compiler.codegen import emit
from delassus.compiler.ir.trace import Trace, trace
from delassus.compiler.passes.calls import Table
from delassus.compiler.passes.partition import Lengths, split, work_size
from delassus.compiler.passes.vectorize import scalar_program, vectorized
from delassus.errors import CompilerError
from delassus.model import WORLD, Body, Frame, Joint, JointKind
from delassus.model.robot import Base
from delassus.samples import random_inputs
from delassus.scalars.graph import CALL, Graph
from delassus.scalars.ports import Status
from delassus.scalars.routines import Routines
from delassus.scalars.steps import recorded, step
from delassus.testing import ALL, random_problem

TOLERANCE = 1e-10


def tree(joints: int, contacts: int, base: Base = "floating") -> Problem:
    """Return a random tree with surfaces on its last links."""
    rng = np.random.default_rng(1)
    parts = [Joint("root", JointKind.ROOT, WORLD)] if base == "floating" else []
    for k in range(joints):
        parent = int(rng.integers(max(0, len(parts) - 12), len(parts))) if parts else WORLD
        axis = rng.normal(size=3)
        turn = mechanisms.rotation(mechanisms.SKEW, float(rng.uniform(-1.0, 1.0)))
        place = Transform(turn, rng.uniform(-0.3, 0.3, 3))
        kind = JointKind.PRISMATIC if k % 7 == 3 else JointKind.REVOLUTE
        armature = 0.1 if k % 3 == 0 else 0.0
        parts.append(
            Joint(f"j{k}", kind, parent, place, axis / np.linalg.norm(axis), armature=armature)
        )
    bodies = [Body(f"b{k}", mechanisms.dense_inertia(k)) for k in range(len(parts))]
    frames = [Frame(f"f{k}", k, Transform()) for k in range(len(parts))]
    robot = Robot("tree", parts, bodies, frames)
    last = range(len(parts) - contacts, len(parts))
    return Problem(robot, [Contact(f"c{k}", f"f{k}", "surface") for k in last])


def pinocchio(problem: Problem, q: np.ndarray) -> np.ndarray:
    """Return G by the back end that none of our recursions is part of."""
    import_module("pinocchio")
    return DelassusSolver(problem, "pinocchio").solve(q).matrix


def kernel_matrix(problem: Problem, name: str, q: np.ndarray) -> np.ndarray:
    bound = kernel_for(problem, algorithms.get(name)).bind()
    bound.inputs["q"][:] = q
    assert bound.run() == Status.OK
    return bound.outputs["G"].copy()


LARGE = {
    "chain of 150": lambda: mechanisms.chain(150, "tip"),
    "tree of 200, m=120": lambda: tree(200, 20),
    "tree of 150 on the world": lambda: tree(150, 4, "fixed"),
    "quadruped, m=120": lambda: contacts_on_feet(120),
}


@pytest.mark.parametrize(
    ("which", "name"),
    [
        ("chain of 150", "pv_osimr"),
        pytest.param("tree of 200, m=120", "pv_osimr", marks=pytest.mark.slow),
        ("tree of 150 on the world", "pv_osimr"),
        ("quadruped, m=120", "auto"),
        pytest.param("chain of 150", "auto", marks=pytest.mark.slow),
        pytest.param("tree of 200, m=120", "auto", marks=pytest.mark.slow),
        pytest.param("tree of 150 on the world", "auto", marks=pytest.mark.slow),
        pytest.param("quadruped, m=120", "pv_osimr", marks=pytest.mark.slow),
    ],
)
def test_large_systems_agree_with_pinocchio(which: str, name: str) -> None:
    problem = LARGE[which]()
    assert is_large(problem)
    q = random_inputs(problem, 3)["q"]
    assert error(kernel_matrix(problem, name, q), pinocchio(problem, q)) < TOLERANCE


@pytest.fixture
def everything_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make small systems take the way of large ones, with a cache of their own kernels."""
    monkeypatch.setattr("delassus.algorithms.counting._LARGE", 0)
    folder = Path(os.environ["XDG_CACHE_HOME"]) / "large"
    folder.mkdir(mode=0o700, exist_ok=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))


@pytest.mark.parametrize("seed", [1, pytest.param(5, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "name",
    [
        "auto",
        "dense",
        "efpa",
        "elimination",
        "kjr",
        "ltl",
        "pv_osim",
        "pv_osimr",
    ],
)
def test_every_algorithm_takes_large_systems(name: str, seed: int, everything_large: None) -> None:
    """What has no steps is straight-line code between the calls."""
    problem = random_problem(seed, ALL)
    assert is_large(problem)
    kernel = kernel_for(problem, algorithms.get(name))
    bound = kernel.bind()
    inputs = random_inputs(problem, 3)
    for port, values in inputs.items():
        bound.inputs[port][...] = values
    assert bound.run() == Status.OK
    assert error(bound.outputs["G"], outputs_on_floats(problem, "dense", inputs)["G"]) < 1e-9


def with_all_outputs(problem: Problem) -> Problem:
    return Problem(problem.robot, problem.contacts, outputs=("J", "MinvJT"))


def test_jacobian_and_response_of_a_large_system() -> None:
    """Against the mass matrix, and the Jacobians of the bodies."""
    problem = with_all_outputs(tree(60, 6, "fixed"))
    q = random_inputs(problem, 3)["q"]
    found = DelassusSolver(problem, "pv_osimr").solve(q)
    J = contact_jacobian(problem, {"q": q})
    assert error(found.J, J) < TOLERANCE
    assert error(found.MinvJT, np.linalg.solve(mass_matrix(problem.robot, q), J.T)) < TOLERANCE


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("make", "name"),
    [(random_problem, "pv_osimr"), (cluster_robots.random_problem, "pv_osimr")],
    ids=["open", "closed"],
)
def test_steps_do_not_change_the_outputs(
    make: Callable[[int], Problem], name: str, seed: int, everything_large: None
) -> None:
    problem = with_all_outputs(make(seed))
    inputs = random_inputs(problem, seed)
    solution = DelassusSolver(problem, name).solve(**inputs)
    expected = outputs_on_floats(problem, name, inputs)
    for output in ("J", "MinvJT"):
        assert error(getattr(solution, output), expected[output]) < 1e-12


def test_all_outputs_are_linear_in_joints_while_the_code_stays() -> None:
    sizes = [80, 160, 320]
    counts, routines, code, calls = zip(
        *(sized(with_all_outputs(mechanisms.chain(n, "tip"))) for n in sizes), strict=True
    )
    assert abs(exponent(sizes, counts) - 1.0) < 0.05, counts
    assert abs(exponent(sizes, calls) - 1.0) < 0.05, calls
    assert routines[-1] < 60 and code[-1] < 1.2 * code[0], (routines, code)


def test_a_batch_of_a_large_system() -> None:
    problem = contacts_on_feet(96)
    solver = DelassusSolver(problem, "pv_osimr")
    Q = np.array([random_inputs(problem, k)["q"] for k in range(11)])
    result = solver.solve_batch(Q)
    for q, matrix in zip(Q, result.matrix, strict=True):
        assert error(matrix, pinocchio(problem, q)) < TOLERANCE


def test_status_of_a_large_system() -> None:
    problem = tree(140, 1)
    bound = kernel_for(problem, algorithms.get("pv_osimr")).bind()
    bound.inputs["q"][:] = 0.3
    assert bound.run() == Status.OK
    bound.inputs["q"][-1] = np.nan
    assert bound.run() == Status.NOT_FINITE
    bound.inputs["q"][-1] = 0.3
    assert bound.run() == Status.OK


def sized(problem: Problem, name: str = "pv_osimr") -> tuple[int, int, int, int]:
    """Return operations, routines, characters of the routines' code, and calls."""
    traced = trace(problem, algorithms.get(name))
    table = vectorized(problem, traced, checked_positions(problem))
    assert isinstance(table, Table)
    instructions = sum(len(f.part.program.instructions) for f in table.functions if f.is_routine)
    return traced.operations.total, len(traced.graph.routines), instructions, len(table.calls)


def test_counts_are_linear_in_joints_while_the_code_stays() -> None:
    sizes = [130, 260, 520]
    counts, routines, code, calls = zip(
        *(sized(mechanisms.chain(n, "tip")) for n in sizes), strict=True
    )
    assert abs(exponent(sizes, counts) - 1.0) < 0.05, counts
    assert abs(exponent(sizes, calls) - 1.0) < 0.05, calls
    assert routines[-1] < 40 and code[-1] < 1.2 * code[0], (routines, code)


def assert_quadratic(counts: list[int]) -> None:
    """Counts at equal distances of the size are a + b·m + c·m²: nothing of a third power."""
    second = np.diff(counts, 2)
    assert second.min() > 0.0, counts
    assert np.ptp(second) < 0.05 * second.min(), counts


def test_counts_are_quadratic_in_rows_while_the_code_stays() -> None:
    sizes = [96, 168, 240, 312]
    counts, routines, code, _ = zip(*(sized(contacts_on_feet(m)) for m in sizes), strict=True)
    assert_quadratic(list(counts))
    assert routines[-1] < 60 and code[-1] < 1.5 * code[0], (routines, code)


@pytest.mark.slow
def test_auto_of_the_largest_systems() -> None:
    """Linear up to 500 joints, quadratic up to 300 rows, and right."""
    sizes = [125, 250, 500]
    joints = [count(mechanisms.chain(n, "tip"), "auto") for n in sizes]
    assert abs(exponent(sizes, joints) - 1.0) < 0.05, joints
    assert_quadratic([count(contacts_on_feet(m), "auto") for m in (120, 180, 240, 300)])
    for problem in (mechanisms.chain(500, "tip"), contacts_on_feet(300)):
        q = random_inputs(problem, 3)["q"]
        assert error(kernel_matrix(problem, "auto", q), pinocchio(problem, q)) < TOLERANCE


def test_calls_cost_hardly_more_than_their_nodes() -> None:
    problem = mechanisms.chain(150, "tip")
    algorithm = algorithms.get("pv_osimr")
    called = trace(problem, algorithm).operations
    graph = Graph()
    inputs = {"q": [graph.input(k) for k in range(150)]}
    G = evaluate(problem, algorithm, inputs)["G"]
    outputs = [graph.index_of(value) for row in G for value in row]
    single = Trace(graph, graph.live(outputs), outputs, []).operations
    assert single.total <= called.total <= 1.01 * single.total
    assert called.sines_cosines == single.sines_cosines


# ------------------------------------------------------------------------------------------
# Steps


@step
def product(a: list[float], b: float) -> list[float]:
    return [value * b for value in a]


def test_calls_of_one_shape_share_a_routine() -> None:
    graph = Graph()
    x, y = graph.input(0), graph.input(1)
    routines = Routines(graph)
    with recorded(routines):
        first = product([x, 0.0, 2.5], y)
        other = product([y, 0.0, 3.5], x)
        again = product([x, 0.0, 2.5], y)
        assert product([x, 1.5, 2.5], y) and len(routines.found) == 2
    assert first[1] == other[1] == 0.0
    assert [v.index for v in (first[0], first[2])] == [v.index for v in (again[0], again[2])]
    assert Counter(node[0] for node in graph.nodes)[CALL] == 3
    # x·x is not x·y: one scalar in two places is another shape; so is another zero or one.
    with recorded(routines):
        product([x, 0.0, 2.5], x)
        assert product([0.0, x, 2.5], y)[0] == 0.0
        assert product([1.0, x, 2.5], y)[0].index == y.index
        assert product([-1.0, x, 2.5], y)[0].index not in (x.index, y.index)
    assert len(routines.found) == 6


def test_a_step_on_constants_is_folded() -> None:
    graph = Graph()
    with recorded(Routines(graph)):
        assert product([2.0, 3.0], 0.5) == [1.0, 1.5]
    assert graph.nodes == []


def test_a_step_must_not_use_other_scalars() -> None:
    graph = Graph()
    x, y = graph.input(0), graph.input(1)

    @step
    def leaking(a: object) -> object:
        return y

    with recorded(Routines(graph)), pytest.raises(CompilerError, match="leaking"):
        leaking(x)


# ------------------------------------------------------------------------------------------
# Parts


def test_parts_compute_what_the_whole_computes() -> None:
    """Through the emitted code, at other lengths than those in use."""
    problem = mechanisms.chain(20, "both ends")
    traced = trace(problem, algorithms.get("pv_osimr"))
    program = scalar_program(traced, checked_positions(problem))
    alone = split(program, Lengths(10**9, 1))
    assert len(alone) == 1 and work_size(alone) == 0
    parts = split(program, Lengths(10, 150))
    assert len(parts) > 20
    assert max(len(part.program.instructions) for part in parts) < 600
    entries = sorted(entry for part in parts for _, entry in part.outputs)
    assert entries == list(range(len(program.outputs)))
    # Places are used again: fewer than there are values to hand on.
    assert work_size(parts) < sum(len(part.stores) for part in parts)


def test_code_of_long_programs_is_linear() -> None:
    lengths = []
    for n in (30, 60, 120):
        problem = mechanisms.chain(n, "tip")
        traced = trace(problem, algorithms.get("pv_osimr"))
        program = vectorized(problem, traced, checked_positions(problem))
        (code,) = splits(program)
        lengths.append(len(emit.module(code).ir))
    assert abs(exponent((30, 60, 120), lengths) - 1.0) < 0.1, lengths


def test_a_step_takes_no_keywords() -> None:
    """Those would be lost where it is recorded."""
    with pytest.raises(TypeError, match="step 'product' takes no keyword arguments"):
        product([1.0], b=2.0)
