"""Counts of operations: complexity, the recount, and `auto` below all others."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import robots
from oracles.counts import count
from seeds import seeds

from benchmarks import mechanisms, operation_counts
from delassus import Contact, DelassusSolver, Problem, Robot, Transform, algorithms
from delassus.algorithms import auto
from delassus.algorithms.counting import OperationCounter
from delassus.compiler.ir.trace import Trace, trace
from delassus.model import WORLD, Body, Frame, Inertia, Joint, JointKind
from delassus.problem import Axes
from delassus.scalars.graph import CONSTANT, Graph
from delassus.testing import ALL, random_problem

PUBLISHED = ("ltl", "efpa", "kjr", "pv_osim", "pv_osimr")
CHAIN = "chain floating base + {} joints, 6D on {} K=I6"
ABOVE = {
    (CHAIN.format(16, "every moving link"), "efpa"): 1.08,
    (CHAIN.format(32, "every moving link"), "efpa"): 1.13,
    (CHAIN.format(32, "every moving link"), "pv_osimr"): 1.03,
    (CHAIN.format(64, "last half of links"), "pv_osimr"): 1.01,
}
"""Generic counts above the recount's, by how much: docs/papers/verdicts.md."""
LARGEST = operation_counts.LARGEST


def test_rank_one_updates_are_not_linear_in_rows_times_depth() -> None:
    """What PV-OSIMr is for: with many rows PV-OSIM grows with m² per joint."""
    counts = {
        name: [count(mechanisms.stem(n, 4, rotated=True), name) for n in (10, 20)]
        for name in ("pv_osim", "pv_osimr")
    }
    per_joint = {name: (b - a) / 10 for name, (a, b) in counts.items()}
    assert per_joint["pv_osim"] > 3 * per_joint["pv_osimr"]


@cache
def recounted_rows() -> list[tuple[operation_counts.Row, Problem]]:
    if not operation_counts.RECOUNT.is_file():
        pytest.skip("no ../shared/oracle/operation_counts.json beside the repository")
    found = [(row, row.make()) for row in operation_counts.rows()]
    assert len(found) > 80
    return found


@pytest.mark.parametrize("largest", [20_000, pytest.param(LARGEST, marks=pytest.mark.slow)])
def test_generic_counts_are_at_most_the_recount_s(largest: int) -> None:
    above, counted = {}, set()
    for row, problem in recounted_rows():
        for name, paper in operation_counts.PAPER_NAMES.items():
            theirs = row.recount.get(paper)
            if theirs is None or theirs > largest:
                continue
            counted.add((row.name, name))
            # The recount contains sines and cosines.
            operations = trace(problem, algorithms.get(name), generic=True).operations
            total = operations.total + operations.sines_cosines
            if total > theirs:
                above[row.name, name] = round(total / theirs, 2)
    assert above == {each: ratio for each, ratio in ABOVE.items() if each in counted}
    assert len(counted) > 50
    assert largest < LARGEST or ABOVE.keys() & counted


@pytest.mark.parametrize(
    ("generic", "largest"),
    [
        (False, 15_000),
        pytest.param(True, 33_000, marks=pytest.mark.slow),
        pytest.param(False, LARGEST, marks=pytest.mark.slow),
    ],
)
def test_auto_is_never_above_and_sometimes_below_all_others(generic: bool, largest: int) -> None:
    below = []
    for row, problem in recounted_rows():
        if not operation_counts.is_counted(row, "auto", largest):
            continue
        names = [n for n in PUBLISHED if operation_counts.is_counted(row, n, largest)]
        best = min(count(problem, name, generic) for name in names)
        auto = count(problem, "auto", generic)
        assert auto <= best, row.name
        if auto < best:
            below.append(row.name)
    if not generic:
        assert "Atlas + 1 Shadow hand 5x3D, K=[0 I]" in below
        assert len(below) >= 10, below


@pytest.mark.parametrize("generic", [False, True])
def test_auto_knows_where_kjr_is_best(generic: bool) -> None:
    """Many links with contacts of their own: no propagation comes near."""
    name = "chain floating base + 16 joints, 6D on every moving link K=I6"
    if not operation_counts.RECOUNT.is_file():
        pytest.skip("no ../shared/oracle/operation_counts.json beside the repository")
    problem = next(row for row in operation_counts.rows() if row.name == name).make()
    assert count(problem, "auto", generic) <= count(problem, "kjr", generic)


@pytest.mark.parametrize("seed", seeds(12))
def test_auto_is_never_above_on_random_trees(seed: int) -> None:
    problem = random_problem(seed, ALL)
    auto = count(problem, "auto")
    assert auto <= min(count(problem, name) for name in PUBLISHED)


def hand(fingers: int) -> Problem:
    """Return a wrist with fingers whose joints are parallel but for the first, 6D at each tip."""
    x, y = np.eye(3)[:2]
    joints, bodies = [], []

    def add(parent: int, axis: np.ndarray, offset: tuple[float, float, float]) -> int:
        place = Transform(np.eye(3), np.array(offset))
        joints.append(Joint(f"j{len(joints)}", JointKind.REVOLUTE, parent, place, axis=axis))
        inertia = Inertia.from_com(0.1, (0.001, 0.002, 0.02), np.diag([4e-5, 5e-5, 2e-5]))
        bodies.append(Body(f"b{len(bodies)}", inertia))
        return len(joints) - 1

    palm = add(add(WORLD, y, (0.0, 0.0, 0.2)), x, (0.0, 0.0, 0.03))
    tips = []
    for k in range(fingers):
        tip = add(palm, y, (0.02 * k, 0.0, 0.09))
        for length in (0.0, 0.045, 0.025):
            tip = add(tip, x, (0.0, 0.0, length))
        tips.append(Frame(f"tip{k}", tip, Transform(np.eye(3), np.array([0.0, 0.0, 0.02]))))
    robot = Robot("hand", joints, bodies, tips)
    return Problem(robot, [Contact(tip.name, tip.name, "surface") for tip in tips])


def shadow_hand() -> Problem:
    robot = Robot.from_urdf(robots.shared("shadow_hand_right"), "fixed")
    tips = [f"rh_{finger}tip" for finger in ("ff", "mf", "rf", "lf", "th")]
    return Problem(robot, [Contact(tip, tip, "surface") for tip in tips])


@pytest.mark.parametrize("make", [shadow_hand, lambda: hand(4)], ids=["shadow", "own"])
def test_auto_knows_that_the_joint_space_is_cheap_for_hands(make) -> None:
    """Many short fingers, joint axes parallel: an estimate must not leave LTL out."""
    problem = make()
    counts = {name: count(problem, name) for name in PUBLISHED}
    assert min(counts, key=counts.get) == "ltl"
    assert count(problem, "auto") <= counts["ltl"]


def legged(name: str) -> Problem:
    if name == "atlas":
        robot = Robot.from_urdf(robots.shared("atlas_v5"))
        return Problem(robot, [Contact(f, f, "surface") for f in ("l_foot", "r_foot")])
    if name == "talos":
        robot = Robot.from_urdf(robots.talos())
        soles = ("left_sole_link", "right_sole_link")
        return Problem(robot, [Contact(f, f, "surface") for f in soles])
    robot = Robot.from_urdf(robots.quadruped() if name == "quadruped" else robots.anymal())
    feet = robots.FEET
    return Problem(robot, [Contact(f, f, "point") for f in feet])


@pytest.mark.parametrize(
    ("name", "most"), [("quadruped", 2), ("anymal", 2), ("talos", 7), ("atlas", 8)]
)
def test_auto_counts_few_candidates_for_legged_robots(name: str, most: int, monkeypatch) -> None:
    """Each takes a good part of the time to a first kernel."""
    problem, counted = legged(name), []

    class Counter(OperationCounter):
        def __call__(self, function) -> int:
            counted.append(function)
            return super().__call__(function)

    monkeypatch.setattr(auto, "OperationCounter", Counter)
    auto._routes.cache_clear()
    auto.decide.__wrapped__(problem, generic=False)
    assert 1 <= len(counted) <= most


def test_robots_stay_as_cheap_as_they_are() -> None:
    """Counts measured once; a change that raises one has to be seen."""
    quadruped = Robot.from_urdf(robots.quadruped())
    feet = [Contact(f, f, "point") for f in robots.FEET]
    assert count(Problem(quadruped, feet), "pv_osimr") <= 3147
    talos = Robot.from_urdf(robots.talos())
    soles = [Contact(f, f, "surface") for f in ("left_sole_link", "right_sole_link")]
    assert count(Problem(talos, soles), "pv_osimr") <= 6794


@pytest.mark.parametrize(
    ("outputs", "most"),
    [
        (("G", "a0"), 5413),
        (("G", "M"), 3524),
        (("G", "J", "M", "MinvJT"), 5784),
        (("G", "J", "M", "MinvJT", "h", "JdotV", "a0", "qdd0"), 8079),
        (("G", "dG"), 24759),
    ],
)
def test_auto_counts_all_outputs(outputs: tuple[str, ...], most: int) -> None:
    """Of the quadruped: M⁻¹Jᵀ and free accelerations from the factors of M where that is less."""
    quadruped = legged("quadruped")
    problem = Problem(quadruped.robot, quadruped.contacts, outputs=outputs)
    found = count(problem, "auto")
    assert found <= most
    assert found <= min(count(problem, name) for name in ("ltl", "efpa", "pv_osimr"))


def test_generic_counts_contain_the_specialised_structure() -> None:
    problem = mechanisms.chain(8, "tip")
    generic = trace(problem, algorithms.get("pv_osimr"), generic=True).operations
    special = trace(problem, algorithms.get("pv_osimr")).operations
    assert special.total <= generic.total <= 1.05 * special.total
    assert DelassusSolver(problem).generic_operations == generic


def test_what_depends_on_parameters_alone_is_not_counted() -> None:
    graph = Graph()
    a, b, q = graph.parameter(), graph.parameter(), graph.input(0)
    value = (a * b + a) * q
    outputs = [graph.index_of(value)]
    operations = Trace(graph, graph.live(outputs), outputs, []).operations
    assert (operations.multiplications, operations.additions) == (1, 0)


@pytest.mark.parametrize("axes", ["contact", "world"])
def test_a_generic_trace_knows_no_number_of_the_robot(axes: Axes) -> None:
    problem = random_problem(3, axes=axes)
    outputs = ("J", "MinvJT") if axes == "contact" else ("G",)
    problem = Problem(problem.robot, problem.contacts, axes=axes, outputs=outputs)
    traced = trace(problem, algorithms.get("pv_osimr"), generic=True)
    nodes = [traced.graph.nodes[k] for k in traced.live]
    constants = {abs(node[1]) for node in nodes if node[0] == CONSTANT}
    assert constants <= {0.0, 0.5, 1.0, 2.0}, constants
