"""Ranks that contacts can have at best, and the weights of angular rows."""

from __future__ import annotations

import linkages
import numpy as np
import pytest
import robots
import small
from small import flat_foot

from delassus import Contact, DelassusSolver, Problem, Robot, Transform
from delassus.closure import Closure
from delassus.conditioning.monitor import (
    Conditioning,
    ConditionMonitor,
    ConditionSettings,
)
from delassus.contacts import ContactSet, row_scales
from delassus.errors import InputError, NumericalError
from delassus.model import WORLD, Body, Coupling, Frame, Joint, JointKind, LoopKind
from delassus.solver import structural_rank
from delassus.solver.structural_rank import (
    StructuralRank,
    generic_matrices,
    numerical_rank,
    unit_scales,
)
from delassus.testing.random_trees import random_inertia


def rank_of(problem: Problem, rows=None) -> int:
    solver = DelassusSolver(problem)
    everything = range(problem.contacts.rows)
    scales = unit_scales(problem.contacts)
    return StructuralRank(generic_matrices(solver), scales).of(
        everything if rows is None else rows
    )


def test_angular_rows_are_scaled_by_the_length() -> None:
    slanted = np.array([[0, 0.6, 0, 0, 0, 0.8]])
    contacts = ContactSet(
        [
            Contact("point", "a"),
            Contact("surface", "a", "surface"),
            Contact("turn", "a", np.eye(6)[5:]),
            Contact("lift", "a", 3.0 * np.eye(6)[2:3]),
            Contact("slanted", "a", slanted),
        ]
    )
    scales = row_scales(contacts, 0.25)
    assert scales[:11].tolist() == pytest.approx([1] * 6 + [0.25] * 4 + [1])
    assert 0.25 < scales[11] < 1


def test_scaled_matrix_does_not_depend_on_the_unit_of_length() -> None:
    """The robot in cm, the length too: the same condition."""
    problem = Problem(small.walker(), small.contacts(("surface",)))
    G = DelassusSolver(problem).solve(np.array([0.3, -0.2, 0.9])).matrix
    contacts = problem.contacts
    # In cm a linear velocity of 1 m/s is 100; an angular one is what it was.
    unit = np.where(row_scales(contacts, 7.0) < 2.0, 100.0, 1.0)
    metres, centimetres = row_scales(contacts, 0.2), row_scales(contacts, 20.0) * unit
    first = np.linalg.cond(G * np.outer(metres, metres))
    second = np.linalg.cond(G * np.outer(centimetres, centimetres))
    assert second == pytest.approx(first, rel=1e-9)


@pytest.mark.parametrize(("points", "rank"), [(1, 3), (2, 5), (3, 6), (4, 6)])
def test_points_on_one_foot_are_redundant(points, rank) -> None:
    problem = Problem(small.walker(legs=3), flat_foot(points))
    assert rank_of(problem) == rank


def test_two_flat_feet() -> None:
    """Two feet have 12 rows at most, but this robot only 9 freedoms."""
    feet = flat_foot(4, "foot0") + flat_foot(4, "foot2")
    assert rank_of(Problem(small.walker(legs=3), feet)) == 6 + 2


def test_rank_is_that_of_the_jacobian_for_every_set() -> None:
    problem = small.problem(outputs={"J"})
    solver = DelassusSolver(problem)
    ranks = StructuralRank(generic_matrices(solver), row_scales(problem.contacts, 0.1))
    J = solver.solve(np.array([0.3, -0.8, 1.2])).J
    offsets = problem.contacts.row_offsets
    for chosen in range(1, 8):
        rows = [r for i in range(3) if chosen >> i & 1 for r in range(offsets[i], offsets[i + 1])]
        assert ranks.of(rows) == np.linalg.matrix_rank(J[rows])
    assert ranks.of([]) == 0


def test_fewer_freedoms_than_rows() -> None:
    problem = Problem(small.walker(floating=False, legs=1), small.contacts(("surface",)))
    assert rank_of(problem) == 2


def leg(lower: float, upper: float) -> Problem:
    """Return a leg of two links, with these limits at the knee, and its foot's plane."""
    zero = Transform()
    straight = Transform.from_xyz_rpy((0.5, 0, 0), (0, 0, 0))
    y = np.array([0.0, 1, 0])
    joints = [
        Joint("hip", JointKind.REVOLUTE, WORLD, zero, y, lower=-1, upper=1),
        Joint("knee", JointKind.REVOLUTE, 0, straight, y, lower=lower, upper=upper),
    ]
    bodies = [Body(name, small.BOX) for name in ("thigh", "shank")]
    robot = Robot("leg", joints, bodies, [Frame("sole", 1, straight)])
    return Problem(robot, [Contact("sole", "sole", np.eye(6)[[0, 2]])])


@pytest.mark.parametrize("limits", [(0, 2), (-np.inf, np.inf), (0, 0), (-1e-9, 1e-9), (-1e-5, 0)])
def test_stretched_knee_at_its_limit_is_not_taken_for_structure(limits) -> None:
    """Nor one whose limits leave hardly another posture, though the model has."""
    problem = leg(*limits)
    assert rank_of(problem) == 2
    solver = DelassusSolver(problem)
    monitor = ConditionMonitor(problem, generic_matrices(solver))
    for knee, expected in (
        (1.0, Conditioning.OK),
        (1e-4, Conditioning.SINGULAR),
        (0.0, Conditioning.SINGULAR),
    ):
        seen = monitor.examine(solver.solve([0.3, knee]).matrix)
        assert (seen.conditioning, seen.structural_rank) == (expected, 2)


@pytest.mark.parametrize("axes", ["contact", "world"])
@pytest.mark.parametrize("moving", ["position", "pose"])
def test_moving_contacts_are_moved(moving, axes) -> None:
    """Two points of one link, at the same place until they move: they can hold five rows."""
    contacts = [Contact(name, "foot1", moving=moving) for name in ("a", "b")]
    problem = Problem(small.walker(), contacts, axes)
    assert rank_of(problem) == 5
    solver = DelassusSolver(problem)
    monitor = ConditionMonitor(problem, generic_matrices(solver))
    inputs = {"q": [0.3, -0.2, 0.9]}
    if axes == "world":
        inputs["base_orientation"] = [0.0, 0.0, 0.0, 1.0]
    for apart, expected in ((0.1, Conditioning.OK), (1e-3, Conditioning.SINGULAR)):
        places = {"a": [0.0, 0.0, 0.0], "b": [apart, 0.0, 0.0]}
        seen = monitor.examine(solver.solve(**inputs, contact_positions=places).matrix)
        assert (seen.conditioning, seen.rank, seen.structural_rank) == (expected, 5, 5)


@pytest.mark.parametrize("sizes", [(1.0, 1e-6), (1e-8, 1.0), (1e8, 1e2)])
def test_units_of_rows_do_not_matter(sizes) -> None:
    rows = np.eye(6)[:2] * np.array(sizes)[:, np.newaxis]
    problem = Problem(small.walker(), [Contact("c", "foot1", rows)])
    assert rank_of(problem) == 2
    solver = DelassusSolver(problem)
    seen = ConditionMonitor(problem, generic_matrices(solver)).examine(
        solver.solve([0.3, -0.2, 0.9]).matrix
    )
    assert (seen.conditioning, seen.rank) == (Conditioning.SINGULAR, 1)


@pytest.mark.parametrize("length", [1e-7, 1e-5, 1e-3, 0.1, 10.0, 1e3, 1e5])
def test_the_characteristic_length_is_no_matter_of_structure(length) -> None:
    problem = small.problem()
    solver = DelassusSolver(problem)
    settings = ConditionSettings(characteristic_length=length)
    monitor = ConditionMonitor(problem, generic_matrices(solver), settings)
    seen = monitor.examine(solver.solve([0.3, -0.2, 0.9]).matrix)
    assert seen.structural_rank == 9
    assert (seen.conditioning is Conditioning.OK) == (length == 0.1)


def test_rows_that_are_zero_or_nearly_so() -> None:
    """A hinge's own axis never moves along itself; a heavy body moves little."""
    hinged = Problem(
        small.walker(floating=False, legs=1), [Contact("axis", "base", np.eye(6)[1:2])]
    )
    assert rank_of(hinged) == 0
    rng = np.random.default_rng(0)
    A = rng.normal(size=(6, 4))
    heavy = np.array([1.0, 1.0, 1.0, 1e-4, 1e-4, 1e-5])
    G = np.outer(heavy, heavy) * (A @ A.T)
    assert StructuralRank(G[np.newaxis], np.ones(6)).of(range(6)) == 4
    G += np.diag(1e-17 * rng.normal(size=6))
    assert StructuralRank(G[np.newaxis], np.ones(6)).of(range(6)) == 4


def test_a_witness_raises_the_rank() -> None:
    ranks = StructuralRank(np.diag([0.0, 1.0, 1.0])[np.newaxis], np.ones(3))
    assert ranks.of([0, 1]) == 1
    ranks.witness([0, 1], 2)
    ranks.witness([0, 1], 1)
    assert (ranks.of([0, 1]), ranks.of([0, 2])) == (2, 1)


def test_one_rank_is_computed_once_per_set(monkeypatch) -> None:
    solver = DelassusSolver(small.problem())
    ranks = StructuralRank(generic_matrices(solver), row_scales(small.contacts(), 0.1))
    calls = []
    original = structural_rank._rank_of
    count = lambda *args: calls.append(1) or original(*args)  # noqa: E731
    monkeypatch.setattr(structural_rank, "_rank_of", count)
    assert [ranks.of([0, 1, 2]) for _ in range(3)] == [3, 3, 3]
    # The first matrix shows that they can all be independent.
    assert len(calls) == 1


def test_talos_flat_feet_by_points() -> None:
    robot = Robot.from_urdf(robots.talos())
    feet = flat_foot(4, "left_sole_link") + flat_foot(4, "right_sole_link")
    assert rank_of(Problem(robot, feet)) == 12


def test_world_axes_draw_the_orientation_as_well() -> None:
    problem = small.problem(axes="world")
    matrices = generic_matrices(DelassusSolver(problem), count=2)
    assert matrices.shape == (2, 10, 10)
    assert not np.allclose(matrices[0], matrices[1])


def test_coupled_joints_are_drawn_together() -> None:
    """A kernel refuses positions at which a coupling does not hold."""
    plain = small.walker()
    coupling = Coupling("gear", (("hip0", 1.0), ("hip1", -2.0)))
    robot = Robot("geared", plain.joints, plain.bodies, list(plain.frames.values()),
                  couplings=[coupling])  # fmt: skip
    problem = Problem(robot, small.contacts())
    assert len(generic_matrices(DelassusSolver(problem), count=4)) == 4


@pytest.mark.parametrize("kind", [LoopKind.POINT, LoopKind.HINGE])
def test_closed_linkage_has_one_freedom(kind) -> None:
    """Whatever it carries, a crank and rocker turn a surface in one way."""
    robot = linkages.four_bar(kind)
    frame = next(iter(robot.frames))
    problem = Problem(robot, [Contact("tip", frame, "surface")])
    matrices = generic_matrices(DelassusSolver(problem, "efpa"), count=4)
    assert len({round(float(np.trace(matrix)), 6) for matrix in matrices}) == 4
    assert StructuralRank(matrices, row_scales(problem.contacts, 0.1)).of(range(6)) == 1


def test_configurations_without_a_matrix(monkeypatch) -> None:
    drawn = iter([*[[0.0, 0.0]] * 9, [0.0, 0.5], *[[0.0, 0.0]] * 10])
    draw = lambda problem, seed: {"q": np.array(next(drawn))}  # noqa: E731
    monkeypatch.setattr(structural_rank, "random_inputs", draw)
    solver = DelassusSolver(small.massless_problem())
    # The nine that fail are passed over.
    assert len(generic_matrices(solver, count=1)) == 1
    with pytest.raises(NumericalError, match="no matrix at any of 10 generic .* 'reacher'"):
        generic_matrices(solver, count=1)


def test_numerical_rank() -> None:
    assert numerical_rank(np.array([-1e-17, 1e-12, 1e-9, 1.0])) == 2
    assert numerical_rank(np.zeros(3)) == 0
    assert numerical_rank(np.empty(0)) == 0


def test_quaternions_of_a_closed_robot_have_unit_norm() -> None:
    """A body that floats beside a coupled pair; what is measured of it has to be one, too."""
    joints = [
        Joint("f", JointKind.FLOATING, WORLD),
        Joint("a", JointKind.REVOLUTE, 0),
        Joint("b", JointKind.REVOLUTE, 1, Transform(translation=(0.2, 0.0, 0.0))),
    ]
    bodies = [Body(name, random_inertia(np.random.default_rng(1))) for name in "FAB"]
    coupling = Coupling("pair", [("a", -2.0), ("b", 1.0)])
    robot = Robot("floats", joints, bodies, [Frame("tip", 2, Transform())], couplings=[coupling])
    closure = Closure(robot)
    problem = Problem(robot, [Contact("tip", "tip", "surface")])
    assert len(generic_matrices(DelassusSolver(problem, "efpa"), count=4)) == 4
    for quaternion in ([0.0] * 4, [0.0, 0.0, 0.0, 2.0]):
        with pytest.raises(InputError, match="joint 'f' has norm .*, expected a unit quaternion"):
            closure.solve({"f": [0.0, 0.0, 0.0, *quaternion], "a": 0.1})
