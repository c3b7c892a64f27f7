"""The posture of a robot whose user states none."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import Any

from delassus.closure import Closure
from delassus.model.clusters import clusters_of
from delassus.model.joint import WORLD, Joint, JointKind
from delassus.model.ranges import PlausibleRanges
from delassus.model.robot import Robot
from delassus.model.spatial import Array

_PARALLEL = 0.99
"""Cosine of the angle between two axes from which on they count as parallel."""
_INSIDE = 1e-6
"""Largest distance from the limits of a joint that counts as inside [rad, m]."""


@dataclass(frozen=True, eq=False)
class Posture:
    """Joint positions, with the reason.

    Attributes
    ----------
    q : (nq,) joint positions [rad, m]; loops are closed.
    outside : a sentence per joint that is outside its limits.
    """

    q: Array
    why: str
    outside: Sequence[str] = ()


def default_posture(robot: Robot, closure: Closure | None = None) -> Posture:
    """Return the posture of a robot for which none is stated: the one place that chooses it.

    Joints are at 0, or in the middle of limits that exclude 0; see :func:`pose_of`. Loops are
    closed from the independent joints at these positions; where that fails, the posture is the
    reference of the closure.

    Parameters
    ----------
    closure : closure of the robot's loops and couplings; None for a robot without these.
    """
    pose = pose_of(robot)
    if closure is None:
        q = robot.q(pose)
        return Posture(q, _reason(robot, pose), outside_limits(robot, q))
    result = closure.solve(_independent(closure, pose))
    if result.status.is_valid:
        free = {name: value for name, value in pose.items() if name in closure.independent}
        stated = ", loops near their reference" if closure.stated else ""
        q, why = result.q, f"independent {_reason(robot, free)}{stated}; loops closed"
    else:
        q = closure.reference
        why = f"the reference of the loops, as they do not close elsewhere: {result.about}"
    return Posture(q, why, outside_limits(robot, q))


def _reason(robot: Robot, pose: Mapping[str, float]) -> str:
    """Return a text about the choice of positions by :func:`pose_of`."""
    excluded = [joint.name for joint in robot.joints
                if joint.name in pose and not joint.lower <= 0.0 <= joint.upper]  # fmt: skip
    turned = [name for name, value in pose.items() if value and name not in excluded]
    if not excluded:
        return "joints at 0"
    words = f"joints at 0, {_count(excluded)} in the middle of limits that exclude 0"
    return words + (f", {_count(turned)} turned back by half of the next joint" if turned else "")


def outside_limits(robot: Robot, q: Array) -> list[str]:
    """Return a sentence per joint whose position in q (nq,) is outside its limits."""
    ranges = PlausibleRanges(robot, margin=dict.fromkeys(JointKind, _INSIDE))
    return [ranges.words(k, q[k]) for k in ranges.all_outside(q).tolist()]


def _independent(closure: Closure, pose: Mapping[str, float]) -> dict[str, Any]:
    """Return the positions of the independent joints: of the pose, or a reference that is stated.

    Joints with several entries in q are as in the reference.
    """
    robot, found = closure.robot, dict[str, Any]()
    for cluster in clusters_of(robot):
        for i in cluster.independent:
            joint, offset = robot.joints[i], robot.q_offsets[i]
            entries = closure.reference[offset : offset + joint.kind.nq]
            referred = joint.name not in pose or (closure.stated and not cluster.is_ordinary)
            if joint.kind.nq:
                found[joint.name] = entries if referred else pose[joint.name]
    return found


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


def _count(names: Sized) -> str:
    return f"{len(names)} joint{'s' if len(names) > 1 else ''}"
