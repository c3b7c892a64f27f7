"""The algorithms' own tree: other frames and other inertias than the robot's, the same mechanism.

Poses and dynamics of the links are worked out here in numpy, from their description alone.
"""

from __future__ import annotations

import numpy as np
import pytest
from oracles.textbook import (
    axis_rotation,
    body_jacobians,
    body_poses,
    mass_matrix,
    quaternion_rotation,
    random_q,
)

from delassus import Contact, Problem, Robot, Transform
from delassus.model import WORLD, Body, Frame, Inertia, Joint, JointKind
from delassus.rbda.tree import NO_ENTRY, Link, Tree, rows_of
from delassus.rbda.trees import tree_of
from delassus.testing import ALL, random_problem

SEEDS = range(40)


def pose_in_parent(link: Link, q: np.ndarray) -> Transform:
    """Return the pose of a link that is not free in its parent."""
    unit = np.eye(3)[link.axis]
    value = link.sign * q[link.q_index]
    revolute = link.motion == "revolute"
    rotation = axis_rotation(unit, (value if revolute else 0.0) + link.angle)
    place = np.array(link.offset) + (0.0 if revolute else value) * unit
    pose = Transform(rotation, place)
    for turn in link.turns:
        angle = np.arctan2(turn.sin, turn.cos)
        pose = Transform(axis_rotation(np.eye(3)[turn.axis], angle)) @ pose
    return pose


def root_of(tree: Tree, i: int) -> int:
    """Return the free link that moves link i, or WORLD."""
    while i != WORLD and tree.links[i].motion != "free":
        i = tree.links[i].parent
    return i


def link_poses(tree: Tree, q: np.ndarray) -> list[Transform]:
    """Return the pose of every link in its root, a free link or the world."""
    poses: list[Transform] = []
    for link in tree.links:
        if link.motion == "free":
            poses.append(Transform())
            continue
        pose = pose_in_parent(link, q)
        poses.append(pose if link.parent == WORLD else poses[link.parent] @ pose)
    return poses


def tree_delassus(tree: Tree, q: np.ndarray) -> np.ndarray:
    """Return G (m, m) in contact axes from the links' Jacobians and inertias."""
    sizes = [6 if link.motion == "free" else 1 for link in tree.links]
    first = np.concatenate([[0], np.cumsum(sizes)])
    n = int(first[-1])
    M, J = np.zeros((n, n)), np.zeros((tree.rows, n))
    jacobians: list[np.ndarray] = []
    for i, link in enumerate(tree.links):
        jacobian = np.zeros((6, n))
        if link.motion == "free":
            jacobian[:, first[i] : first[i] + 6] = np.eye(6)
        else:
            if link.parent != WORLD:
                above = jacobians[link.parent]
                jacobian = pose_in_parent(link, q).motion_to_child() @ above
            jacobian[link.freedom, first[i]] = link.sign
        jacobians.append(jacobian)
        inertia = Inertia(link.mass, np.array(link.moment), np.array(link.rotational))
        M += jacobian.T @ inertia.matrix() @ jacobian
        M[first[i], first[i]] += link.armature
        for contact in link.contacts:
            J[rows_of(contact)] = np.array(contact.K) @ jacobian
    return J @ np.linalg.solve(M, J.T)


def robot_delassus(problem: Problem, q: np.ndarray) -> np.ndarray:
    """Return G (m, m) in contact axes from the robot's bodies."""
    jacobians = body_jacobians(problem.robot, q)
    rows = []
    for contact in problem.contacts:
        frame = problem.robot.frames[contact.frame]
        twist = (frame.placement @ contact.placement).motion_to_child() @ jacobians[frame.body]
        rows.append(contact.selection @ np.vstack([twist[3:], twist[:3]]))
    J = np.vstack(rows)
    return J @ np.linalg.solve(mass_matrix(problem.robot, q), J.T)


def place_of(rows: np.ndarray, turn: np.ndarray) -> Transform:
    """Return the pose in a link of a contact with this twist matrix and these axes."""
    # v_contact = Rᵀ (v + ω × p), so that the block of ω is −Rᵀ [p×].
    cross = turn @ rows[:3, :3]
    return Transform(turn, -np.array([cross[2, 1], cross[0, 2], cross[1, 0]]))


def case(seed: int) -> tuple[Problem, Tree, np.ndarray]:
    problem = random_problem(seed, ALL)
    return problem, tree_of(problem), random_q(problem.robot, np.random.default_rng(seed))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_dynamics_are_those_of_the_robot(seed: int) -> None:
    problem, tree, q = case(seed)
    expected = robot_delassus(problem, q)
    error = np.linalg.norm(tree_delassus(tree, q) - expected) / np.linalg.norm(expected)
    assert error < 1e-10


@pytest.mark.parametrize("seed", SEEDS)
def test_contacts_are_where_the_robot_has_them(seed: int) -> None:
    problem, tree, q = case(seed)
    bodies, links = body_poses(problem.robot, q), link_poses(tree, q)
    found: dict[int, tuple[int, Transform]] = {}
    for i, link in enumerate(tree.links):
        for contact in link.contacts:
            turn, motion = np.array(contact.to_link), np.array(contact.motion)
            expected = problem.contacts[contact.index]
            assert np.allclose(motion[3:], np.hstack([turn.T, np.zeros((3, 3))]), atol=1e-11)
            assert np.allclose(motion[:3, 3:], turn.T, atol=1e-11)
            assert np.allclose(contact.K, expected.selection @ motion, atol=1e-12)
            assert np.array_equal(contact.selection, expected.selection)
            offsets = problem.contacts.row_offsets
            assert rows_of(contact) == list(
                range(offsets[contact.index], offsets[contact.index + 1])
            )
            found[contact.index] = root_of(tree, i), links[i] @ place_of(motion, turn)
    assert sorted(found) == list(range(len(problem.contacts)))
    assert tree.rows == problem.contacts.rows

    def in_world(index: int) -> Transform:
        contact = problem.contacts[index]
        frame = problem.robot.frames[contact.frame]
        return bodies[frame.body] @ frame.placement @ contact.placement

    for a, (root, pose) in found.items():
        others = [(Transform(), Transform())] if root == WORLD else []
        others += [(found[b][1], in_world(b)) for b in found if found[b][0] == root]
        for other, expected_other in others:
            got, expected_pose = other.inverse() @ pose, expected_other.inverse() @ in_world(a)
            assert np.allclose(got.rotation, expected_pose.rotation, atol=1e-10)
            assert np.allclose(got.translation, expected_pose.translation, atol=1e-10)


@pytest.mark.parametrize("seed", SEEDS)
def test_links_follow_the_joints(seed: int) -> None:
    problem, tree, _ = case(seed)
    joints = {joint.name: joint for joint in problem.robot.joints}
    steps = {JointKind.PLANAR: 3}
    names = [j.name for j in problem.robot.joints for _ in range(steps.get(j.kind, 1))]
    assert [link.name for link in tree.links] == names
    for i, link in enumerate(tree.links):
        joint = joints[link.name]
        assert WORLD <= link.parent < i
        assert link.armature == joint.armature
        free = joint.kind in (JointKind.ROOT, JointKind.FLOATING)
        assert (link.motion == "free") == free
        assert (link.q_index == NO_ENTRY) == (joint.kind is JointKind.ROOT)
        if free:
            for matrix in (np.array(link.placement), np.array(link.axes)):
                assert np.allclose(matrix @ matrix.T, np.eye(3), atol=1e-11)
            continue
        assert link.sign in (1.0, -1.0)
        assert link.freedom == link.axis + (0 if link.motion == "revolute" else 3)
        assert all(turn.sin**2 + turn.cos**2 == pytest.approx(1.0) for turn in link.turns)
        assert len(link.turns) <= 2
        assert len({turn.axis for turn in link.turns}) == len(link.turns)


def chain(*joints: Joint) -> Problem:
    """Return the problem of joints one on the other, a contact on the last."""
    bodies = [Body(f"b{i}", Inertia(1.0, np.zeros(3), np.eye(3))) for i in range(len(joints))]
    frames = [Frame(f"f{i}", i, Transform()) for i in range(len(joints))]
    return Problem(Robot("chain", joints, bodies, frames), [Contact("tip", frames[-1].name)])


def test_axes_along_coordinates_need_no_turn() -> None:
    """Frames turned at random, axes along coordinate axes of the base all the same."""
    rolls = ((0.4, -1.0, 0.3), (1.1, 0.2, -0.7), (-2.0, 0.5, 0.9))
    joints, total = [], np.eye(3)
    for i, (rpy, axis) in enumerate(zip(rolls, np.eye(3)[[2, 1, 1]], strict=True)):
        turn = Transform.from_xyz_rpy((0.1, 0.2, 0.3), rpy)
        total = total @ turn.rotation
        kind = JointKind.PRISMATIC if i == 1 else JointKind.REVOLUTE
        joints.append(Joint(f"j{i}", kind, i - 1, turn, (-1) ** i * total.T @ axis))
    problem = chain(*joints)
    links = tree_of(problem).links
    assert [link.turns for link in links[:1]] == [()]
    assert sum(len(link.turns) for link in links) <= 1
    q = np.array([0.3, 0.1, -0.8])
    expected = robot_delassus(problem, q)
    assert np.allclose(tree_delassus(tree_of(problem), q), expected, atol=1e-12)


def test_planar_joints_become_three_links_and_free_bodies_keep_their_q() -> None:
    kinds = (JointKind.ROOT, JointKind.REVOLUTE, JointKind.PLANAR, JointKind.FLOATING)
    tree = tree_of(chain(*(Joint(f"j{i}", kind, i - 1) for i, kind in enumerate(kinds))))
    shown = [(link.name, link.parent, link.motion, link.q_index) for link in tree.links]
    assert shown == [
        ("j0", WORLD, "free", NO_ENTRY),
        ("j1", 0, "revolute", 0),
        ("j2", 1, "prismatic", 1),
        ("j2", 2, "prismatic", 2),
        ("j2", 3, "revolute", 3),
        ("j3", 4, "free", 4),
    ]
    assert [len(link.contacts) for link in tree.links] == [0, 0, 0, 0, 0, 1]


def test_rounding_noise_of_a_right_angle_is_snapped_and_nothing_more() -> None:
    turn = Transform.from_xyz_rpy((0.0, 1e-9, 0.5), (np.pi / 2, 0.0, 0.0))
    (link,) = tree_of(chain(Joint("j", JointKind.REVOLUTE, WORLD, turn, np.eye(3)[0]))).links
    assert link.turns == ()
    assert 0.0 in link.offset
    placed = pose_in_parent(link, np.array([0.0])).translation
    # Sliding along the axis x is free.
    assert np.allclose(placed[1:], [1e-9, 0.5], atol=1e-16)


def test_paths_and_closest_common_ancestors() -> None:
    parents = (WORLD, 0, 1, 1, 3, 0)
    joints = [Joint(f"j{i}", JointKind.REVOLUTE, parent) for i, parent in enumerate(parents)]
    joints += [Joint("free", JointKind.FLOATING, 2), Joint("last", JointKind.REVOLUTE, 6)]
    bodies = [Body(f"b{i}", Inertia(1.0, np.zeros(3), np.eye(3))) for i in range(8)]
    frames = [Frame(f"f{i}", i, Transform()) for i in range(8)]
    contacts = [Contact(f"c{i}", f"f{i}") for i in (2, 4, 5, 7)]
    tree = tree_of(Problem(Robot("r", joints, bodies, frames), contacts))
    assert tree.link_of == {0: 2, 1: 4, 2: 5, 3: 7}
    assert tree.path(4) == [4, 3, 1, 0]
    assert tree.path(7) == [7, 6]
    assert tree.supporting == {0, 1, 2, 3, 4, 5, 6, 7}
    assert tree.closest_common_ancestor(0, 1) == 1
    assert tree.closest_common_ancestor(0, 2) == 0
    assert tree.closest_common_ancestor(1, 3) == WORLD
    assert tree.closest_common_ancestor(1, 1) == 4
    only = tree.only({1})
    assert only.link_of == {1: 4} and only.supporting == {0, 1, 3, 4}
    assert only.rows == tree.rows


def test_the_tree_of_an_equal_problem_is_kept() -> None:
    def problem() -> Problem:
        return chain(Joint("j", JointKind.REVOLUTE, WORLD))

    assert tree_of(problem()) is tree_of(problem())


def test_quaternions_of_free_bodies_are_where_the_index_says() -> None:
    slide = Joint("slide", JointKind.PRISMATIC, WORLD)
    problem = chain(slide, Joint("fly", JointKind.FLOATING, 0))
    link = tree_of(problem).links[1]
    q = random_q(problem.robot, np.random.default_rng(0))
    entries = q[link.q_index : link.q_index + 7]
    rotation = body_poses(problem.robot, q)[1].rotation
    assert np.allclose(quaternion_rotation(entries[3:]), rotation, atol=1e-12)
