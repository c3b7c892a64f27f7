"""The two ways round a loop, and how large it is, wherever it is mounted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from delassus_ros.model.constraints import Loop
from delassus_ros.model.robot import WORLD, Joint, JointKind, Robot
from delassus_ros.model.spatial import Transform, skew

_ROUNDING = 2e-15
"""Rounding of a position that fixed joints were added up to, relative to its size."""
_CONFIGURATIONS = 8
"""Configurations that a loop's size is looked for at."""
_ARMLESS = 1e-12
"""Arms that are shorter, relative to the constant distances along a loop, are rounding errors."""


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


def poses_along(robot: Robot, way: Way, q: Mapping[int, float]) -> list[Transform]:
    """Return the poses of the bodies on a way, then of the loop's frame, from the loop's origin.

    Parameters
    ----------
    q : position of each joint by its index [rad or m].
    """
    poses = []
    pose = Transform()
    for joint, placement in zip(way.joints, way.placements, strict=False):
        pose = pose @ placement @ _motion(robot.joints[joint], q[joint])
        poses.append(pose)
    return [*poses, pose @ way.placements[-1]]


@lru_cache(maxsize=256)
def size_of(robot: Robot, loop: Loop) -> float:
    """Return a typical length of a loop [m]: the longest arm that a joint of it turns its end by.

    That is the distance of a joint's axis from the frame at the end of its way, at the largest
    of a few configurations; without arms the longest constant distance, or 1. Lengths that
    move nothing do not count: where the loop is mounted, along axes, or where a slide has its
    zero. It is a power of two, so that lengths are exact in units of it.
    """
    # A fixed seed: the same loop must always have the same size.
    random = np.random.default_rng(0)
    arms, ways = [0.0], ways_of(robot, loop)
    for way in ways:
        joints = [robot.joints[joint] for joint in way.joints]
        for _ in range(_CONFIGURATIONS):
            q = {
                i: random.uniform(-np.pi, np.pi)
                if joint.kind is JointKind.REVOLUTE
                else min(max(0.0, joint.lower), joint.upper)
                for i, joint in zip(way.joints, joints, strict=True)
            }
            *bodies, end = poses_along(robot, way, q)
            for joint, body in zip(joints, bodies, strict=True):
                if joint.kind is JointKind.REVOLUTE:
                    arm = np.cross(body.rotation @ joint.axis, end.translation - body.translation)
                    arms.append(float(np.linalg.norm(arm)))
    constant = [float(np.linalg.norm(p.translation)) for way in ways for p in way.placements]
    longest = max(arms)
    if longest <= _ARMLESS * max(constant):
        longest = max(constant)
    return 2.0 ** round(math.log2(longest)) if longest > 0.0 else 1.0


def _motion(joint: Joint, value: float) -> Transform:
    """Return where a joint puts its body, relative to its frame."""
    if joint.kind is JointKind.PRISMATIC:
        return Transform(translation=value * joint.axis)
    w = skew(joint.axis)
    return Transform(np.eye(3) + np.sin(value) * w + (1.0 - np.cos(value)) * w @ w)


def _joints(robot: Robot, body: int) -> list[int]:
    """Return the joints that carry a body, the root's child first."""
    path = []
    while body != WORLD:
        path.append(body)
        body = robot.joints[body].parent
    return path[::-1]
