"""Configurations for the structural ranks of closed robots.

Structural ranks are defined and computed in :mod:`delassus_ros.solver.structural_rank`.
"""

from __future__ import annotations

import numpy as np

from delassus_ros.arguments import count as whole
from delassus_ros.closure import Closure
from delassus_ros.errors import NumericalError
from delassus_ros.model.robot import JointKind, Robot
from delassus_ros.model.spatial import Array
from delassus_ros.solver.structural_rank import (
    StructuralRank,
    generic_matrices,
    numerical_rank,
    unit_scales,
)

__all__ = [
    "StructuralRank",
    "closed_configurations",
    "generic_matrices",
    "numerical_rank",
    "unit_scales",
]


def closed_configurations(closure: Closure, count: int = 3, seed: int = 0) -> Array:
    """Return random configurations (count, nq) at which a robot's loops are closed.

    The configurations lie around the closure's reference, on its branch.

    Raises
    ------
    InputError
        If `count` is no positive whole number.
    NumericalError
        If no closed configuration is found.
    """
    count = whole("count", count)
    rng = np.random.default_rng(seed)
    found: list[Array] = []
    spread = 0.6
    for _ in range(20 * count):
        offset = rng.uniform(-spread, spread, closure.reference.size)
        result = closure.solve(_with_unit_quaternions(closure.robot, closure.reference + offset))
        if result.status.is_valid:
            found.append(result.q)
            if len(found) == count:
                break
        else:
            spread *= 0.9
    if not found:
        raise NumericalError(
            f"robot {closure.robot.name!r}: no closed configuration besides the reference: "
            f"{result.status.name} {result.about}"
        )
    return np.stack(found)


def _with_unit_quaternions(robot: Robot, q: Array) -> Array:
    for joint, start in zip(robot.joints, robot.q_offsets, strict=True):
        if joint.kind is JointKind.FLOATING:
            q[start + 3 : start + 7] /= np.linalg.norm(q[start + 3 : start + 7])
    return q
