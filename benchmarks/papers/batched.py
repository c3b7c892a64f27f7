"""The exact and the approximate model of many chains at once, on NumPy arrays (robots, states, …).

A second implementation of the projection method, of section II-D, without the package's trees and
recursions: the equations of motion of the independent joints are a sum over all bodies, by their
Jacobians in world axes about the origin of the world. All robots have the same parents of bodies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from delassus import Problem, Robot
from delassus.model import WORLD
from delassus.model.spatial import Array

_GRAVITY = 9.81
"""[m/s²], along -z."""


def ratios_of(robot: Robot) -> Array:
    """Return E (joints, independent joints) of a robot whose rotors follow from its couplings."""
    rows = {coupling.ratios[0][0]: coupling.ratios[1:] for coupling in robot.couplings}
    columns = [joint.name for joint in robot.joints if joint.name not in rows]
    E = np.zeros((len(robot.joints), len(columns)))
    for i, joint in enumerate(robot.joints):
        for name, ratio in rows.get(joint.name, ()):
            E[i, columns.index(name)] = -ratio
        if joint.name not in rows:
            E[i, columns.index(joint.name)] = 1.0
    return E


class Results(NamedTuple):
    """Accelerations (robots, states, n), and G (robots, states, 6, 6) in the axes of the tip."""

    accelerations: Array
    G: Array


def evaluated(
    problems: Sequence[Problem], y: Array, rates: Array, torques: Array
) -> dict[str, Results]:
    """Return the results of the ``exact`` and of the ``approximate`` model.

    Parameters
    ----------
    problems : random chains of one kind and length.
    y, rates, torques : (robots, states, n) of the independent joints.
    """
    robots = [problem.robot for problem in problems]
    E = np.stack([ratios_of(robot) for robot in robots])[:, None]
    bodies = _moved(robots, E, _times(E, y), rates)
    links = [body for i, body in enumerate(bodies) if not _is_rotor(robots[0], i)]
    frame = robots[0].frames["tip"].body
    place = np.stack([robot.frames["tip"].placement.translation for robot in robots])[:, None]
    tip = bodies[frame]
    point = tip.origin + _times(tip.rotation, place)
    J = np.roll(_to_frame(tip.rotation, point), 3, axis=-2) @ tip.J  # linear first
    spins = np.stack([_spins(robot) for robot in robots])[:, None, None]
    armature = spins @ E**2 * np.eye(y.shape[-1])
    results = {}
    for name, taken, added in (("exact", bodies, 0.0), ("approximate", links, armature)):
        M = sum(_transposed(body.J) @ body.inertia @ body.J for body in taken) + added
        free = torques - sum(_times(_transposed(body.J), body.force) for body in taken)
        known = np.concatenate([free[..., None], _transposed(J)], axis=-1)
        solved = np.linalg.solve(M, known)
        results[name] = Results(solved[..., 0], J @ solved[..., 1:])
    return results


def _is_rotor(robot: Robot, joint: int) -> bool:
    return any(coupling.ratios[0][0] == robot.joints[joint].name for coupling in robot.couplings)


def _spins(robot: Robot) -> Array:
    """Return the inertia about its joint's axis of each rotor, 0 for links (joints,)."""
    return np.array([
        joint.axis @ body.inertia.rotational @ joint.axis if _is_rotor(robot, i) else 0.0
        for i, (joint, body) in enumerate(zip(robot.joints, robot.bodies, strict=True))
    ])  # fmt: skip


class _Body(NamedTuple):
    """A body of each robot in world axes about the world's origin, angular first.

    Attributes
    ----------
    rotation, origin : of its frame (robots, states, 3, 3) and (robots, states, 3).
    J : its twist by the rates of the independent joints (robots, states, 6, n).
    bias : its acceleration while these do not accelerate, with gravity (robots, states, 6).
    inertia, force : 6 by 6, and the wrench that this acceleration takes (robots, states, …).
    """

    rotation: Array
    origin: Array
    J: Array
    bias: Array
    inertia: Array
    force: Array


def _moved(robots: Sequence[Robot], E: Array, q: Array, rates: Array) -> list[_Body]:
    """Return all bodies at positions of all joints, and rates of the independent ones."""
    falling = np.zeros((*q.shape[:2], 6))
    falling[..., 5] = _GRAVITY
    bodies: list[_Body] = []
    for i, first in enumerate(robots[0].joints):
        joints = [robot.joints[i] for robot in robots]
        axis = np.stack([joint.axis for joint in joints])[:, None]
        rotation = np.stack([joint.placement.rotation for joint in joints])[:, None]
        origin = np.stack([joint.placement.translation for joint in joints])[:, None]
        J, bias = np.zeros((1, 1, 6, E.shape[-1])), falling
        if first.parent != WORLD:
            parent = bodies[first.parent]
            J, bias = parent.J, parent.bias
            origin = parent.origin + _times(parent.rotation, origin)
            rotation = parent.rotation @ rotation
        rotation = rotation @ _turned(axis, q[..., i])
        along = _times(rotation, axis)
        subspace = np.concatenate([along, np.cross(origin, along)], axis=-1)
        J = J + subspace[..., None] * E[..., i, None, :]
        velocity = _times(J, rates)
        bias = bias + _times(_motion_cross(velocity), subspace * _times(E, rates)[..., i, None])
        X = _to_frame(rotation, origin)
        own = np.stack([robot.bodies[i].inertia.matrix() for robot in robots])[:, None]
        inertia = _transposed(X) @ own @ X
        momentum = _times(inertia, velocity)
        force = _times(inertia, bias) - _times(_transposed(_motion_cross(velocity)), momentum)
        bodies.append(_Body(rotation, origin, J, bias, inertia, force))
    return bodies


def _to_frame(rotation: Array, origin: Array) -> Array:
    """Return the transforms (…, 6, 6) of twists from world axes to those of frames."""
    back = _transposed(rotation)
    X = np.zeros((*rotation.shape[:-2], 6, 6))
    X[..., :3, :3] = X[..., 3:, 3:] = back
    X[..., 3:, :3] = -back @ _cross(origin)
    return X


def _turned(axis: Array, angle: Array) -> Array:
    """Return rotations about unit axes (…, 3, 3)."""
    a = _cross(axis)
    sine, cosine = np.sin(angle)[..., None, None], np.cos(angle)[..., None, None]
    return np.asarray(np.eye(3) + sine * a + (1.0 - cosine) * (a @ a))


def _motion_cross(v: Array) -> Array:
    """Return the matrices of v × of twists (…, 6, 6)."""
    matrix = np.zeros((*v.shape, 6))
    matrix[..., :3, :3] = matrix[..., 3:, 3:] = _cross(v[..., :3])
    matrix[..., 3:, :3] = _cross(v[..., 3:])
    return matrix


def _cross(v: Array) -> Array:
    """Return the matrices of v × (…, 3, 3)."""
    matrix = np.zeros((*v.shape, 3))
    matrix[..., 0, 1], matrix[..., 0, 2], matrix[..., 1, 2] = -v[..., 2], v[..., 1], -v[..., 0]
    return np.asarray(matrix - _transposed(matrix))


def _times(matrix: Array, vector: Array) -> Array:
    """Return products of matrices and vectors (…, rows)."""
    return (matrix @ vector[..., None])[..., 0]


def _transposed(matrix: Array) -> Array:
    return np.swapaxes(matrix, -1, -2)
