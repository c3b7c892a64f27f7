"""A posture of a robot from its description."""

from __future__ import annotations

import math

from delassus_ros.model.joint import WORLD, Joint, JointKind
from delassus_ros.model.robot import Robot

_PARALLEL = 0.99
"""Cosine of the angle between two axes from which on they count as parallel."""


def pose_of(robot: Robot) -> dict[str, float]:
    """Return positions within the limits of joints, by name [rad, m]: 0, or the middle.

    A hip turns back by half of the angle of its knee, if the limits of the knee exclude 0: a leg
    then stands below its hip. Joints with several entries in q are left out.
    """
    found: dict[str, float] = {}
    is_closed = robot.clustered.is_closed
    for joint in robot.joints:
        if joint.kind.nq != 1:
            continue
        inside = joint.lower <= 0.0 <= joint.upper
        found[joint.name] = 0.0 if inside else _middle(joint)
        hip = robot.joints[joint.parent] if joint.parent != WORLD else joint
        turn = JointKind.REVOLUTE is joint.kind is hip.kind
        if inside or is_closed or not turn or found[hip.name]:
            continue
        parallel = float(joint.placement.rotation @ joint.axis @ hip.axis)
        if abs(parallel) > _PARALLEL:
            back = -0.5 * parallel * found[joint.name]
            found[hip.name] = min(max(back, hip.lower), hip.upper)
    return found


def _middle(joint: Joint) -> float:
    limits = [limit for limit in (joint.lower, joint.upper) if math.isfinite(limit)]
    return sum(limits) / len(limits)
