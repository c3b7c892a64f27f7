"""The exact and the approximate model of many chains at once, on NumPy arrays (robots, states, …).

A second implementation of the projection method, of section II-D, in world axes about the origin
of the world, without the package's trees and recursions: composite inertias and forces of
subtrees are sums there. All robots have the same parents of bodies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from delassus_ros import Problem, Robot
from delassus_ros.model import WORLD, Inertia
from delassus_ros.model.spatial import Array

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
    bodies = _Bodies(robots, _times(E, y))
    speeds = _times(E, rates)
    links = [i for i in range(len(robots[0].joints)) if not _is_rotor(robots[0], i)]
    tip = robots[0].frames["tip"].body
    places = np.stack([robot.frames["tip"].placement.translation for robot in robots])[:, None]
    J = bodies.jacobian(tip, places) @ E
    armature = np.stack([_spins(robot) for robot in robots])[:, None, None] @ E**2
    exact = bodies.dynamics(speeds, range(len(robots[0].joints)))
    models = {
        "exact": (exact, 0.0),
        "approximate": (bodies.dynamics(speeds, links), armature * np.eye(y.shape[-1])),
    }
    results = {}
    for name, ((M, h), added) in models.items():
        free = torques - _times(np.swapaxes(E, 2, 3), h)
        known = np.concatenate([free[..., None], np.swapaxes(J, 2, 3)], axis=-1)
        solved = np.linalg.solve(np.swapaxes(E, 2, 3) @ M @ E + added, known)
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


def _times(matrix: Array, vector: Array) -> Array:
    """Return products of matrices and vectors (…, rows)."""
    return (matrix @ vector[..., None])[..., 0]


class _Bodies:
    """Bodies of robots at states: poses, inertias and motion subspaces about the world's origin.

    Parameters
    ----------
    robots : with the same parents of bodies.
    q : positions of all joints (robots, states, joints).
    """

    def __init__(self, robots: Sequence[Robot], q: Array) -> None:
        self._parents = [joint.parent for joint in robots[0].joints]
        self._rotations: list[Array] = []
        self._origins: list[Array] = []
        self._subspaces: list[Array] = []
        self._inertias: list[Array] = []
        for i, parent in enumerate(self._parents):
            joints = [robot.joints[i] for robot in robots]
            axis = np.stack([joint.axis for joint in joints])[:, None]
            placed = np.stack([joint.placement.rotation for joint in joints])[:, None]
            origin = np.stack([joint.placement.translation for joint in joints])[:, None]
            rotation = placed @ _turned(axis, q[..., i])
            if parent != WORLD:
                origin = self._origins[parent] + _times(self._rotations[parent], origin)
                rotation = self._rotations[parent] @ rotation
            along = _times(rotation, axis)
            self._rotations.append(rotation)
            self._origins.append(origin)
            self._subspaces.append(np.concatenate([along, np.cross(origin, along)], axis=-1))
            self._inertias.append(
                _about_world([robot.bodies[i].inertia for robot in robots], rotation, origin)
            )

    def dynamics(self, speeds: Array, taken: Sequence[int]) -> tuple[Array, Array]:
        """Return M (…, joints, joints) and bias forces (…, joints) of some bodies alone."""
        composite = [
            inertia if i in taken else np.zeros_like(inertia)
            for i, inertia in enumerate(self._inertias)
        ]
        at_rest = np.zeros((*speeds.shape[:2], 6))
        falling = at_rest + np.array([0.0, 0.0, 0.0, 0.0, 0.0, _GRAVITY])
        motions: list[tuple[Array, Array]] = []
        forces: list[Array] = []
        for i, parent in enumerate(self._parents):
            v, a = (at_rest, falling) if parent == WORLD else motions[parent]
            step = self._subspaces[i] * speeds[..., i, None]
            v = v + step
            a = a + _motion_cross(v, step)
            motions.append((v, a))
            forces.append(_times(composite[i], a) + _force_cross(v, _times(composite[i], v)))
        M = np.zeros((*speeds.shape, len(self._parents)))
        h = np.zeros(speeds.shape)
        for i in reversed(range(len(self._parents))):
            h[..., i] = (self._subspaces[i] * forces[i]).sum(axis=-1)
            F = _times(composite[i], self._subspaces[i])
            j = i
            while j != WORLD:
                M[..., i, j] = M[..., j, i] = (self._subspaces[j] * F).sum(axis=-1)
                j = self._parents[j]
            parent = self._parents[i]
            if parent != WORLD:
                composite[parent] = composite[parent] + composite[i]
                forces[parent] = forces[parent] + forces[i]
        return M, h

    def jacobian(self, body: int, place: Array) -> Array:
        """Return J (…, 6, joints) at a place on a body (…, 3), in its axes, linear first."""
        to_body = np.swapaxes(self._rotations[body], 2, 3)
        point = self._origins[body] + _times(self._rotations[body], place)
        J = np.zeros((*point.shape[:2], 6, len(self._parents)))
        while body != WORLD:
            along, linear = self._subspaces[body][..., :3], self._subspaces[body][..., 3:]
            J[..., :3, body] = _times(to_body, linear + np.cross(along, point))
            J[..., 3:, body] = _times(to_body, along)
            body = self._parents[body]
        return J


def _about_world(bodies: Sequence[Inertia], rotation: Array, origin: Array) -> Array:
    """Return the inertias (…, 6, 6) of a body of each robot in world axes, about the world."""
    mass = np.array([body.mass for body in bodies])[:, None, None, None]
    moment = _times(rotation, np.stack([body.moment for body in bodies])[:, None])
    turned = rotation @ np.stack([body.rotational for body in bodies])[:, None]
    p, c = _cross(origin), _cross(moment)
    inertia = np.zeros((*rotation.shape[:2], 6, 6))
    inertia[..., :3, :3] = turned @ np.swapaxes(rotation, 2, 3) - p @ c - c @ p - mass * (p @ p)
    inertia[..., :3, 3:] = c + mass * p
    inertia[..., 3:, :3] = -inertia[..., :3, 3:]
    inertia[..., 3:, 3:] = mass * np.eye(3)
    return inertia


def _turned(axis: Array, angle: Array) -> Array:
    """Return rotations about unit axes (…, 3, 3)."""
    a = _cross(axis)
    sine, cosine = np.sin(angle)[..., None, None], np.cos(angle)[..., None, None]
    return np.asarray(np.eye(3) + sine * a + (1.0 - cosine) * (a @ a))


def _cross(v: Array) -> Array:
    """Return the matrices of v × (…, 3, 3)."""
    matrix = np.zeros((*v.shape, 3))
    matrix[..., 0, 1], matrix[..., 0, 2], matrix[..., 1, 2] = -v[..., 2], v[..., 1], -v[..., 0]
    return np.asarray(matrix - np.swapaxes(matrix, -1, -2))


def _motion_cross(v: Array, u: Array) -> Array:
    """Return v × u of twists, angular first."""
    (w, linear), (r, s) = (np.split(each, 2, axis=-1) for each in (v, u))
    return np.concatenate([np.cross(w, r), np.cross(w, s) + np.cross(linear, r)], axis=-1)


def _force_cross(v: Array, f: Array) -> Array:
    """Return v ×* f of a twist and a wrench, angular first."""
    (w, linear), (moment, force) = (np.split(each, 2, axis=-1) for each in (v, f))
    crossed = np.cross(w, moment) + np.cross(linear, force)
    return np.concatenate([crossed, np.cross(w, force)], axis=-1)
