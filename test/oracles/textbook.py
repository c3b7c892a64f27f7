"""Textbook kinematics and dynamics of a Robot in numpy: slow, short, independent of algorithms."""

from __future__ import annotations

import numpy as np

import delassus.testing.mpmath_numbers as fifty_digits
from delassus import Problem, algorithms
from delassus.algorithms import dense
from delassus.model import WORLD, Joint, JointKind, Robot, Transform
from delassus.model.clusters import clusters_of
from delassus.model.spatial import rotation_between, skew
from delassus.rbda.constraints import constraint_jacobian
from oracles import columns_of, coupling_rows, eliminate, independent_columns, responses


def quaternion_rotation(xyzw: np.ndarray) -> np.ndarray:
    """Return the rotation matrix of a unit quaternion x, y, z, w."""
    v, w = skew(xyzw[:3]), xyzw[3]
    return np.eye(3) + 2.0 * w * v + 2.0 * v @ v


def axis_rotation(axis: np.ndarray, angle: float) -> np.ndarray:
    """Return the rotation by `angle` about a unit axis (Rodrigues)."""
    k = skew(axis)
    return np.eye(3) + np.sin(angle) * k + (1.0 - np.cos(angle)) * k @ k


def joint_motion(joint: Joint, q: np.ndarray) -> tuple[Transform, np.ndarray]:
    """Return the joint's displacement and its motion subspace (6, nv), angular first."""
    axis = np.asarray(joint.axis)
    zero = np.zeros(3)
    if joint.kind is JointKind.REVOLUTE:
        return Transform(axis_rotation(axis, q[0])), np.concatenate([axis, zero])[:, None]
    if joint.kind is JointKind.PRISMATIC:
        return Transform(np.eye(3), axis * q[0]), np.concatenate([zero, axis])[:, None]
    if joint.kind is JointKind.PLANAR:
        plane = rotation_between((0.0, 0.0, 1.0), axis)
        motion = np.zeros((6, 3))
        motion[3:, :2] = plane[:, :2]
        motion[:3, 2] = axis
        moved = plane @ np.array([q[0], q[1], 0.0])
        return Transform(axis_rotation(axis, q[2]), moved), motion
    if joint.kind is JointKind.FLOATING:
        return Transform(quaternion_rotation(q[3:]), q[:3]), np.eye(6)
    return Transform(), np.eye(6)


def random_q(robot: Robot, rng: np.random.Generator) -> np.ndarray:
    """Return a configuration (nq,) with every entry non-zero and unit quaternions."""
    q = rng.uniform(-1.5, 1.5, robot.nq)
    for joint, offset in zip(robot.joints, robot.q_offsets, strict=True):
        if joint.kind is JointKind.FLOATING:
            q[offset + 3 : offset + 7] /= np.linalg.norm(q[offset + 3 : offset + 7])
    return q


def body_poses(robot: Robot, q: np.ndarray, base: Transform | None = None) -> list[Transform]:
    """Return the pose in the world of every body; `base` is the free-flyer's."""
    poses: list[Transform] = []
    for joint, offset in zip(robot.joints, robot.q_offsets, strict=True):
        moved, _ = joint_motion(joint, q[offset : offset + joint.kind.nq])
        if joint.kind is JointKind.ROOT:
            moved = base or Transform()
        pose = joint.placement @ moved
        poses.append(pose if joint.parent == WORLD else poses[joint.parent] @ pose)
    return poses


def frame_poses(
    robot: Robot, q: np.ndarray, base: Transform | None = None
) -> dict[str, Transform]:
    """Return the pose in the world of every frame."""
    bodies = body_poses(robot, q, base)
    return {
        name: frame.placement if frame.body == WORLD else bodies[frame.body] @ frame.placement
        for name, frame in robot.frames.items()
    }


def body_jacobians(robot: Robot, q: np.ndarray) -> list[np.ndarray]:
    """Return the Jacobians (6, nv) of the bodies' twists in body frames."""
    jacobians: list[np.ndarray] = []
    column = 0
    for joint, offset in zip(robot.joints, robot.q_offsets, strict=True):
        moved, motion = joint_motion(joint, q[offset : offset + joint.kind.nq])
        jacobian = np.zeros((6, robot.nv))
        if joint.parent != WORLD:
            to_child = (joint.placement @ moved).motion_to_child()
            jacobian = to_child @ jacobians[joint.parent]
        jacobian[:, column : column + joint.kind.nv] = motion
        column += joint.kind.nv
        jacobians.append(jacobian)
    return jacobians


def mass_matrix(robot: Robot, q: np.ndarray) -> np.ndarray:
    """Return M (nv, nv) = Σ Jᵢᵀ Iᵢ Jᵢ, plus armature."""
    mass = np.zeros((robot.nv, robot.nv))
    for body, jacobian in zip(robot.bodies, body_jacobians(robot, q), strict=True):
        mass += jacobian.T @ body.inertia.matrix() @ jacobian
    armature = [joint.armature for joint in robot.joints for _ in range(joint.kind.nv)]
    return mass + np.diag(armature)


def to_other_velocities(robot: Robot, q: np.ndarray) -> np.ndarray:
    """Return T: velocities of the outputs → those of this module.

    Here twists are angular first, and planar joints move along the child's axes.
    """
    T = np.zeros((robot.nv, robot.nv))
    for joint, offset in zip(robot.joints, robot.q_offsets, strict=True):
        block = np.eye(joint.kind.nv)
        if joint.kind.nv == 6:
            block = np.roll(np.eye(6), 3, axis=0)
        elif joint.kind is JointKind.PLANAR:
            c, s = np.cos(q[offset + 2]), np.sin(q[offset + 2])
            block[:2, :2] = [[c, s], [-s, c]]
        own = columns_of(robot)[joint.name]
        T[own, own] = block
    return T


def contact_jacobian(problem: Problem, inputs: dict[str, np.ndarray]) -> np.ndarray:
    """Return J (m, nv) of the spanning tree, with the contacts where the inputs place them."""
    robot, q = problem.robot, inputs["q"]
    base = None
    if "base_orientation" in inputs:
        base = Transform(quaternion_rotation(inputs["base_orientation"]))
    poses, bodies = body_poses(robot, q, base), body_jacobians(robot, q)
    positions = dict(zip(problem.moving, inputs.get("contact_positions", ()), strict=False))
    turns = dict(zip(problem.turning, inputs.get("contact_orientations", ()), strict=False))
    rows = []
    for contact in problem.contacts:
        frame = robot.frames[contact.frame]
        rotation, place = contact.placement.rotation, contact.placement.translation
        if contact.name in turns:
            rotation = quaternion_rotation(turns[contact.name])
        pose = frame.placement @ Transform(rotation, positions.get(contact.name, place))
        twist = pose.motion_to_child() @ bodies[frame.body]
        twist = np.vstack([twist[3:], twist[:3]])
        if problem.axes == "world":
            twist = np.kron(np.eye(2), (poses[frame.body] @ pose).rotation) @ twist
        rows.append(contact.selection @ twist)
    return np.vstack(rows)


def constraint_rows(robot: Robot, q: np.ndarray) -> np.ndarray:
    """Return K (rows, nv) of all couplings and loops."""
    columns = columns_of(robot)
    rows = [coupling_rows(robot)]
    for cluster in clusters_of(robot):
        if cluster.loops or cluster.functions:
            own = np.array(constraint_jacobian(cluster, q.tolist()), dtype=float)
            K = np.zeros((len(own), robot.nv))
            K[:, [columns[robot.joints[i].name].start for i in cluster.joints]] = own
            rows.append(K)
    return np.vstack(rows)


def outputs(problem: Problem, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return G, J, M⁻¹Jᵀ and M of open and closed robots by dense matrices."""
    robot, q = problem.robot, inputs["q"]
    T = to_other_velocities(robot, q)
    E = T @ eliminate(constraint_rows(robot, q) @ T, independent_columns(problem))
    return responses(E.T @ mass_matrix(robot, q) @ E, contact_jacobian(problem, inputs) @ E)


def definition(problem: Problem, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return G by the package's dense matrices, which have rows of several links."""
    return {"G": dense.definition(problem, inputs)}


def exact(problem: Problem, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return G by the definition with 50 digits, in the robot's own frames."""
    G = fifty_digits.evaluate(problem, algorithms.get("dense"), inputs)["G"]
    return {"G": np.array(G).astype(float)}
