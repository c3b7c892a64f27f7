"""Ranks that contacts can have at best, and the weights of angular rows."""

from __future__ import annotations

import linkages
import numpy as np
import pytest
import robots
import small
from flat_foot import flat_foot

from delassus_ros import Contact, DelassusSolver, Problem, Robot, Transform
from delassus_ros.closure import Closure
from delassus_ros.contacts import ContactSet
from delassus_ros.errors import InputError, NumericalError, ProblemError
from delassus_ros.model import WORLD, Body, Coupling, Frame, Joint, JointKind, LoopKind
from delassus_ros.structural_rank import (
    StructuralRank,
    closed_configurations,
    generic_matrices,
    numerical_rank,
    row_scales,
)


def rank_of(problem: Problem, rows=None) -> int:
    solver = DelassusSolver(problem)
    everything = range(problem.contacts.rows)
    scales = row_scales(problem.contacts, 0.1)
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


@pytest.mark.parametrize("length", [0.0, -1.0, np.nan, np.inf])
def test_length_must_be_positive(length) -> None:
    with pytest.raises(InputError, match="characteristic_length is"):
        row_scales(small.contacts(), length)


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


def test_stretched_knee_at_its_limit_is_not_taken_for_structure() -> None:
    """Random configurations lie inside the limits, not on them."""
    zero = Transform()
    straight = Transform.from_xyz_rpy((0.5, 0, 0), (0, 0, 0))
    joints = [
        Joint("hip", JointKind.REVOLUTE, WORLD, zero, np.array([0.0, 1, 0]), lower=-1, upper=1),
        Joint("knee", JointKind.REVOLUTE, 0, straight, np.array([0.0, 1, 0]), lower=0, upper=2),
    ]
    bodies = [Body(name, small.BOX) for name in ("thigh", "shank")]
    robot = Robot("leg", joints, bodies, [Frame("sole", 1, straight)])
    plane = np.eye(6)[[0, 2]]
    assert rank_of(Problem(robot, [Contact("sole", "sole", plane)])) == 2


def test_one_rank_is_computed_once_per_set(monkeypatch) -> None:
    solver = DelassusSolver(small.problem())
    ranks = StructuralRank(generic_matrices(solver), row_scales(small.contacts(), 0.1))
    calls = []
    original = np.linalg.eigvalsh
    monkeypatch.setattr(np.linalg, "eigvalsh", lambda a: calls.append(1) or original(a))
    assert [ranks.of([0, 1, 2]) for _ in range(3)] == [3, 3, 3]
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


def test_given_configurations_are_used() -> None:
    solver = DelassusSolver(small.problem())
    q = np.array([[0.1, 0.2, 0.3], [0.4, -0.5, 0.6]])
    matrices = generic_matrices(solver, configurations=q)
    assert np.array_equal(matrices, np.stack([solver.solve(row).matrix for row in q]))
    with pytest.raises(InputError, match="q"):
        generic_matrices(solver, configurations=q[:, :2])


def test_joints_that_depend_on_each_other_cannot_be_drawn() -> None:
    plain = small.walker()
    coupling = Coupling("gear", (("hip0", 1.0), ("hip1", -2.0)))
    robot = Robot("geared", plain.joints, plain.bodies, list(plain.frames.values()),
                  couplings=[coupling])  # fmt: skip
    solver = DelassusSolver(small.problem())
    solver._problem = Problem(robot, small.contacts())
    with pytest.raises(ProblemError, match="'geared' has loops or couplings"):
        generic_matrices(solver)


@pytest.mark.parametrize("kind", [LoopKind.POINT, LoopKind.HINGE])
def test_closed_linkage_has_one_freedom(kind) -> None:
    """Whatever it carries, a crank and rocker turn a surface in one way."""
    robot = linkages.four_bar(kind)
    frame = next(iter(robot.frames))
    problem = Problem(robot, [Contact("tip", frame, "surface")])
    closure = Closure(robot)
    q = closed_configurations(closure, count=4)
    assert len({round(angle, 6) for angle in q[:, 0]}) == 4
    assert all(closure.solve(row).residual < 1e-8 for row in q)
    matrices = generic_matrices(DelassusSolver(problem, "c_efpa"), configurations=q)
    assert StructuralRank(matrices, row_scales(problem.contacts, 0.1)).of(range(6)) == 1


def test_configurations_without_a_matrix() -> None:
    solver = DelassusSolver(small.massless_problem())
    with pytest.raises(NumericalError, match="no matrix at any of 1 generic .* 'reacher'"):
        generic_matrices(solver, configurations=[0.0, 0.0])
    # The one that fails is passed over.
    assert len(generic_matrices(solver, configurations=[[0.0, 0.0], [0.0, 0.5]])) == 1


@pytest.mark.parametrize("shape", [(10, 10), (0, 10, 10), (2, 9, 9)])
def test_matrices_must_fit(shape) -> None:
    with pytest.raises(InputError, match=r"expected \(N, 10, 10\)"):
        StructuralRank(np.zeros(shape), row_scales(small.contacts(), 0.1))


def test_matrices_must_be_finite() -> None:
    with pytest.raises(InputError, match="not finite"):
        StructuralRank(np.full((1, 10, 10), np.nan), row_scales(small.contacts(), 0.1))


def test_numerical_rank() -> None:
    assert numerical_rank(np.array([-1e-17, 1e-12, 1e-9, 1.0])) == 2
    assert numerical_rank(np.zeros(3)) == 0
    assert numerical_rank(np.empty(0)) == 0
