"""The two ways round a loop, and how large it is, wherever it is mounted."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from delassus_ros.model.constraints import Loop
from delassus_ros.model.robot import WORLD, Robot
from delassus_ros.model.spatial import Transform

_ROUNDING = 2e-15
"""Rounding of a position that fixed joints were added up to, relative to its size."""


@dataclass(frozen=True, eq=False)
class Way:
    """The joints from the body that carries a loop to one of its ends.

    Attributes
    ----------
    joints : their indices, the carrier's child first.
    placements : the pose of each joint's frame in the body before it, then that of the loop's
        frame in the last body. The first is relative to the loop's origin: the carrier's axes at
        the first joint of the loop.
    rounding : how far lengths may be from what was meant because positions far away from the
        carrier's origin are rounded [m].
    """

    joints: tuple[int, ...]
    placements: tuple[Transform, ...]
    rounding: float


def ways_of(robot: Robot, loop: Loop) -> tuple[Way, Way]:
    """Return the ways to the predecessor's and to the successor's frame."""
    first, second = _joints(robot, loop.predecessor), _joints(robot, loop.successor)
    while first and second and first[0] == second[0]:
        del first[0], second[0]
    origin = robot.joints[(first or second)[0]].placement.translation
    rounding = _ROUNDING * float(np.abs(origin).max())

    def way(joints: list[int], end: Transform) -> Way:
        placements = [*(robot.joints[joint].placement for joint in joints), end]
        at = placements[0].translation - origin
        # What rounding leaves of a zero would be taken for a length.
        at[np.abs(at) <= rounding] = 0.0
        placements[0] = Transform(placements[0].rotation, at)
        return Way(tuple(joints), tuple(placements), rounding)

    return way(first, loop.predecessor_placement), way(second, loop.successor_placement)


def size_of(robot: Robot, loop: Loop) -> float:
    """Return a typical length of a loop [m]: the longest constant distance along it, or 1.

    It is a power of two, so that lengths are exact in units of it. How far away the loop is
    mounted does not count.
    """
    placements = [each for way in ways_of(robot, loop) for each in way.placements]
    longest = max(float(np.linalg.norm(each.translation)) for each in placements)
    return 2.0 ** round(math.log2(longest)) if longest > 0.0 else 1.0


def _joints(robot: Robot, body: int) -> list[int]:
    """Return the joints that carry a body, the root's child first."""
    path = []
    while body != WORLD:
        path.append(body)
        body = robot.joints[body].parent
    return path[::-1]
