"""Gaps of loops, their derivatives, configurations that close them."""

from __future__ import annotations

import counted
import numpy as np
import pytest
from linkages import actuator, closed_actuator, motions, stretched_four_bar, turn
from oracles.textbook import body_poses, mass_matrix

from delassus.model import WORLD, Coupling, JointKind, Loop, LoopKind, Robot, Transform
from delassus.model.clusters import clusters_of, groups_of
from delassus.model.constraint_rows import loop_rows, sines, vectors
from delassus.model.loops import LoopClosure, closed_jacobians
from delassus.testing.random_trees import random_axis, random_robot, random_transform


def closed_at(kind: LoopKind, seed: int) -> tuple[Robot, np.ndarray]:
    """Return a robot of two chains whose loop is closed at the q that comes with it."""
    random = np.random.default_rng(seed)
    tree = random_robot(random, (JointKind.REVOLUTE, JointKind.PRISMATIC), 9, floating=False)
    q = random.uniform(-0.8, 0.8, tree.nq)
    poses = [*body_poses(tree, q), Transform()]  # the last is the world's, index -1
    count = len(tree.joints)
    predecessor, successor = int(random.integers(-1, count - 1)), count - 1
    placement, axis = random_transform(random), random_axis(random)
    closing = poses[successor].inverse() @ poses[predecessor] @ placement
    loop = Loop("loop", kind, predecessor, successor, placement, closing, axis)
    return tree.with_constraints(loops=[loop]), q


def closure_of(robot: Robot) -> tuple[LoopClosure, tuple[int, ...]]:
    (group,) = [group for group in groups_of(robot) if not group.is_ordinary]
    return LoopClosure(group), group.joints


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("kind", LoopKind)
def test_gap_is_zero_where_the_frames_coincide_and_the_jacobian_its_derivative(
    kind: LoopKind, seed: int
) -> None:
    robot, q = closed_at(kind, seed)
    closure, joints = closure_of(robot)
    x = q[list(joints)] / closure.units
    assert closure.gap(x).shape == (kind.rows,)
    assert np.abs(closure.gap(x)).max() < 1e-14
    h = 1e-6
    numeric = [(closure.gap(x + h * e) - closure.gap(x - h * e)) / (2 * h) for e in np.eye(len(x))]
    assert np.abs(closure.jacobian(x) - np.array(numeric).T).max() < 1e-8


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", LoopKind)
def test_rows_of_the_search_and_of_kernels_allow_the_same_motions(
    kind: LoopKind, seed: int
) -> None:
    robot, q = closed_at(kind, seed)
    allowed = []
    for form in (sines, vectors):
        rows, slopes = loop_rows(robot, robot.loops[0], q.tolist(), 1.0, form)
        assert len(rows) == kind.rows and np.abs(rows).max() < 1e-14
        K = np.array([[row.get(joint, 0.0) for joint in range(len(q))] for row in slopes])
        allowed.append(np.eye(len(q)) - np.linalg.pinv(K, rcond=1e-9) @ K)
    assert np.abs(allowed[0] - allowed[1]).max() < 1e-9


@pytest.mark.parametrize("kind", LoopKind)
def test_free_motions_of_a_kind_have_no_gap(kind: LoopKind) -> None:
    """The successor's frame is moved as a joint of that type would move it."""
    free, held = motions(kind, np.eye(3))
    half_turns = {
        LoopKind.HINGE: [turn(np.eye(3)[0], np.pi)],
        LoopKind.PLANAR: [turn(np.eye(3)[0], np.pi)],
        LoopKind.WELD: [turn(np.eye(3)[2], np.pi)],
    }
    held += half_turns.get(kind, [])
    for move, is_free in [(free, True), *((each, False) for each in held)]:
        tree = stretched_four_bar()
        at_zero = body_poses(tree, np.zeros(3))
        placement = at_zero[2].inverse() @ at_zero[1] @ move
        loop = Loop("loop", kind, 1, 2, Transform(), placement)
        closure, _ = closure_of(Robot("r", tree.joints, tree.bodies, [], loops=[loop]))
        assert (np.abs(closure.gap(np.zeros(3))).max() < 1e-12) == is_free


@pytest.mark.parametrize("kind", LoopKind)
def test_closes_from_nearby(kind: LoopKind) -> None:
    robot, q = closed_at(kind, 5)
    closure, joints = closure_of(robot)
    start = q[list(joints)] / closure.units
    closed = closure.close(start + 0.02 * np.sin(np.arange(len(start))))
    assert closed is not None
    assert np.abs(closure.gap(closed)).max() < 1e-9
    assert np.abs(closed - start).max() < 0.3


def test_closes_stretched_four_bars_at_more_than_one_configuration() -> None:
    closure, _ = closure_of(stretched_four_bar())
    found = closed_jacobians(closure)
    assert len(found) == 5
    ranks = [int(np.linalg.matrix_rank(jacobian, tol=1e-6)) for _, jacobian in found]
    assert ranks[0] == 1 and max(ranks) == 2  # the first is q = 0


@pytest.mark.parametrize(
    ("lead", "gear"), [(500.0, 50.0), (500.0, -50.0), (100.0, -50.0), (1e3, 100.0), (1e5, 1e4)]
)
def test_motors_and_rotors_turn_as_far_as_their_loop_asks(lead: float, gear: float) -> None:
    robot = actuator(lead, gear)
    assert [each.independent for each in clusters_of(robot)] == [(0,)]
    closure, joints = closure_of(robot)
    found = closed_jacobians(closure)
    assert len(found) == 5
    for q, _ in found:
        boom, barrel, rod, motor, rotor = q * closure.units
        expected = closed_actuator(boom)
        # The barrel may as well point the other way, with the rod drawn through it.
        assert abs(rod) == pytest.approx(expected["rod"], rel=1e-9)
        assert np.exp(1j * barrel) * rod == pytest.approx(
            np.exp(1j * expected["barrel"]) * expected["rod"], rel=1e-9
        )
        assert (motor, rotor) == pytest.approx((lead * rod, gear * boom), rel=1e-12)


def test_motors_and_rotors_do_not_change_how_their_loop_closes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same way in as many iterations, whatever the ratios and wherever the motors start."""
    looked_at = counted.loop_rows(monkeypatch)
    start = np.array([0.2, -0.1, 0.3])
    results, counts = [], []
    for lead, gear in ((0.0, 0.0), (6.0, 2.0), (500.0, 50.0), (1e3, -100.0), (1e6, 1e5)):
        closure, joints = closure_of(actuator(lead, gear))
        for motors in (0.0, -40.0, 1e3):
            looked_at.clear()
            closed = closure.close(np.append(start, [motors] * (len(joints) - 3)))
            assert closed is not None
            results.append(closed[:3])
            counts.append(len(looked_at))
    assert np.abs(np.array(results) - results[0]).max() < 1e-9
    assert set(counts) == {counts[0]} and counts[0] < 20


def test_says_what_does_not_close() -> None:
    closure, _ = closure_of(stretched_four_bar(rod=3.0))
    assert closed_jacobians(closure) == []
    what, gap = closure.worst()
    assert what == "loop 'bar'"
    assert gap == pytest.approx(1.0, abs=0.01)


def test_the_reference_is_inside_the_limits() -> None:
    robot = stretched_four_bar()
    joints = [
        type(joint)(
            joint.name, joint.kind, joint.parent, joint.placement, joint.axis, 0.0, *limits
        )
        for joint, limits in zip(
            robot.joints, [(0.3, 1.0), (-2.0, -0.5), (-1.0, 1.0)], strict=True
        )
    ]
    closure, _ = closure_of(Robot("r", joints, robot.bodies, [], loops=robot.loops))
    assert closure.reference().tolist() == [0.3, -0.5, 0.0]


@pytest.mark.parametrize("seed", range(5))
def test_inertia_is_the_mass_matrix(seed: int) -> None:
    random = np.random.default_rng(seed)
    tree = random_robot(random, floating=False)
    names = [joint.name for joint in tree.joints]
    # One coupling of all joints: the cluster is the whole robot.
    robot = tree.with_constraints([Coupling("all", tuple((name, 1.0) for name in names))])
    closure, joints = closure_of(robot)
    q = random.uniform(-1.0, 1.0, tree.nq)
    expected = mass_matrix(tree, q) * np.outer(closure.units, closure.units)
    inertia = closure.inertia(q / closure.units)
    assert np.abs(inertia - expected).max() < 1e-12 * np.abs(expected).max()


def test_inertia_counts_what_the_cluster_carries_as_fixed() -> None:
    robot = random_robot(np.random.default_rng(1), floating=False)
    names = [joint.name for joint in robot.joints if joint.parent == WORLD]
    if len(names) < 2:
        names = [robot.joints[0].name, robot.joints[1].name]
    tied = robot.with_constraints([Coupling("pair", tuple((name, 1.0) for name in names[:2]))])
    closure, joints = closure_of(tied)
    assert len(joints) < len(robot.joints)
    expected = mass_matrix(robot, np.zeros(robot.nq))[np.ix_(joints, joints)]
    armatures = np.diag([robot.joints[joint].armature for joint in joints])
    inertia = closure.inertia(np.zeros(len(joints))) / np.outer(closure.units, closure.units)
    assert np.abs(inertia - expected).max() < 1e-12 * np.abs(expected + armatures).max()
