"""Configurations that close the loops of a robot, near its reference."""

from __future__ import annotations

from typing import Any

import numpy as np

from delassus.closure.closure import Closure
from delassus.errors import NumericalError
from delassus.model.clusters import Cluster, clusters_of
from delassus.model.robot import Robot
from delassus.model.spatial import Array
from delassus.problem import Problem
from delassus.rbda.constraints import loop_jacobian
from delassus.samples import random_inputs

_WIDEST = 0.5
"""Largest distance of a loop's independent joints from the reference [rad or m]."""
_SHRINK, _LEAST = 0.9, 1e-3
"""Factor of the distance after a configuration that does not close, and its smallest value."""


def closed_inputs(
    problem: Problem, count: int, seed: int = 0, closure: Closure | None = None
) -> list[dict[str, Array]]:
    """Return random inputs whose q closes the loops; any q of an open robot does.

    Ordinary joints are anywhere within ±π, those that couplings tie within π of the reference and
    the limits of the joints that they turn, independent joints of loops near the reference.

    Parameters
    ----------
    closure : a closure of the robot with another reference than the default.

    Raises
    ------
    RobotError
        If a loop does not close at the reference.
    NumericalError
        If the loops hardly ever close near it.
    """
    if not problem.robot.clustered.is_closed:
        return [random_inputs(problem, seed + k) for k in range(count)]
    closure = closure or Closure(problem.robot)
    found: list[dict[str, Array]] = []
    share = 1.0
    while len(found) < count and share > _LEAST:
        inputs = random_inputs(problem, seed)
        result = closure.solve(_measured(closure.robot, closure.reference, inputs["q"], share))
        if result.status.is_valid:
            found.append(inputs | {"q": result.q})
        else:
            share *= _SHRINK
        seed += 1
    if len(found) == count:
        return found
    raise NumericalError(
        f"robot {problem.robot.name!r}: only {len(found)} of {count} configurations close its "
        f"loops near the reference; the last try: {result.status.name.lower()}: {result.about}"
    )


def _measured(robot: Robot, reference: Array, q: Array, share: float) -> dict[str, Any]:
    """Return positions of the independent joints from q; in loops, near a reference."""
    measured: dict[str, Any] = {}
    for cluster in clusters_of(robot):
        if cluster.is_constant and not cluster.is_ordinary:
            measured |= _coupled(cluster, reference, q)
            continue
        for i in cluster.independent:
            joint = robot.joints[i]
            at = slice(robot.q_offsets[i], robot.q_offsets[i] + joint.kind.nq)
            if cluster.is_ordinary:
                measured[joint.name] = q[at]
            else:
                measured[joint.name] = reference[at] + share * _WIDEST * q[at] / np.pi
    return {name: value for name, value in measured.items() if value.size}


def _coupled(cluster: Cluster, reference: Array, q: Array) -> dict[str, Array]:
    """Return positions of the independent joints of couplings within the limits of all joints.

    Joints are processed in order: entries of q from -π to π map to the range that remains for the
    joint. So a gripper that is shut at the reference opens, even if its range is small beside π.
    """
    robot = cluster.robot
    joints = [robot.joints[i] for i in cluster.joints]
    E = np.array(loop_jacobian(cluster, reference.tolist()), dtype=np.float64)
    at = reference[cluster.entries]
    free = np.isin(cluster.joints, cluster.independent)
    lower = np.where(free, -np.pi, np.array([joint.lower for joint in joints]) - at)
    upper = np.where(free, np.pi, np.array([joint.upper for joint in joints]) - at)
    moved = np.zeros(len(cluster.independent))
    for k, i in enumerate(cluster.independent):
        turns = np.abs(E[:, k]) > 1e-12
        rest = E @ moved
        ends = np.array([lower - rest, upper - rest])[:, turns] / E[turns, k]
        ends.sort(axis=0)
        least, most = min(ends[0].max(), 0.0), max(ends[1].min(), 0.0)
        moved[k] = least + (most - least) * (0.5 + q[robot.q_offsets[i]] / (2.0 * np.pi))
    offsets = [robot.q_offsets[i] for i in cluster.independent]
    return {
        robot.joints[i].name: reference[[offset]] + moved[[k]]
        for k, (i, offset) in enumerate(zip(cluster.independent, offsets, strict=True))
    }
