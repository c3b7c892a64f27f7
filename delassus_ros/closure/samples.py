"""Configurations that close the loops of a robot, near its reference."""

from __future__ import annotations

from typing import Any

import numpy as np

from delassus_ros.closure.closure import Closure
from delassus_ros.errors import NumericalError
from delassus_ros.model.clusters import clusters_of
from delassus_ros.model.robot import Robot
from delassus_ros.model.spatial import Array
from delassus_ros.problem import Problem
from delassus_ros.samples import random_inputs

_WIDEST = 0.5
"""How far from the reference a loop's independent joints are moved [rad or m] at most."""
_SHRINK, _LEAST = 0.9, 1e-3
"""What is left of that after each configuration that does not close, and where trying ends."""


def closed_inputs(
    problem: Problem, count: int, seed: int = 0, closure: Closure | None = None
) -> list[dict[str, Array]]:
    """Return random inputs whose q closes the loops; any q of an open robot does.

    Ordinary joints are anywhere within ±π, those that couplings tie as well as far as the limits
    of the joints that they turn allow, independent joints of loops near the reference.

    Parameters
    ----------
    closure : the robot's, where it has a reference of its own.

    Raises
    ------
    RobotError
        If a loop does not close at the reference.
    NumericalError
        If the loops hardly ever close near it.
    """
    if not problem.robot.is_closed:
        return [random_inputs(problem, seed + k) for k in range(count)]
    closure = closure or Closure(problem.robot)
    found: list[dict[str, Array]] = []
    share = 1.0
    while len(found) < count and share > _LEAST:
        inputs = random_inputs(problem, seed)
        result = closure.solve(_measured(problem.robot, closure.reference, inputs["q"], share))
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
    """Return positions of the independent joints: a share of those in q, around a reference."""
    measured: dict[str, Any] = {}
    for cluster in clusters_of(robot):
        for i in cluster.independent:
            joint = robot.joints[i]
            at = slice(robot.q_offsets[i], robot.q_offsets[i] + joint.kind.nq)
            if cluster.is_ordinary:
                measured[joint.name] = q[at]
            elif cluster.is_constant:
                measured[joint.name] = share * q[at]
            else:
                measured[joint.name] = reference[at] + share * _WIDEST * q[at] / np.pi
    return {name: value for name, value in measured.items() if value.size}
