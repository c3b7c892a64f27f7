"""The posture of a robot whose user states none."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from delassus.closure import Closure
from delassus.conditioning.monitor import ConditionSettings, scaled_eigenvalues
from delassus.contacts import Contact, row_scales
from delassus.errors import InputError, unknown
from delassus.model.clusters import Cluster, clusters_of
from delassus.model.joint import WORLD, Joint, JointKind
from delassus.model.ranges import PlausibleRanges
from delassus.model.robot import Robot
from delassus.model.spatial import Array
from delassus.problem import Problem
from delassus.rbda.outputs import jacobian
from delassus.rbda.trees import tree_of
from delassus.solver.structural_rank import numerical_rank

_PARALLEL = 0.99
"""Cosine of the angle between two axes from which on they count as parallel."""
_BEND = 0.6
"""Angle of bent knees [rad]; other joints bend by half of it."""
_INSIDE = 1e-6
"""Largest distance from the limits of a joint that counts as inside [rad, m]."""
_TURN = 2.0 * math.pi
FIRST_POSES = ("home", "stand", "standing", "default")
"""Names of poses that robots start in; the first one that a robot has counts."""


@dataclass(frozen=True, eq=False)
class Posture:
    """Joint positions, with the reason.

    Attributes
    ----------
    q : (nq,) joint positions [rad, m]; loops are closed.
    outside : a sentence per joint that is outside its limits, or was outside in a named pose.
    named : names of the joints whose positions a named pose has.
    """

    q: Array
    why: str
    outside: Sequence[str] = ()
    named: Collection[str] = ()


def default_posture(
    robot: Robot, closure: Closure | None = None, contacts: Sequence[Contact] = ()
) -> Posture:
    """Return the posture of a robot for which none is stated: the one place that chooses it.

    This is the named pose that the robot starts in, see :func:`first_pose_name`; without such a
    pose, or where loops do not close at it, the computed posture. Without a named pose, knees are
    bent, or else all joints at 0, if that raises the rank of the contacts' matrix.

    Parameters
    ----------
    closure : closure of the robot's loops and couplings; None for a robot without these.
    contacts : contacts of the robot, of which those at fixed places of their links count.
    """
    name = first_pose_name(robot)
    if name is None:
        computed = computed_posture(robot, closure)
        return computed if closure is not None else _bent(robot, computed, contacts)
    try:
        return named_posture(robot, name, closure)
    except InputError as error:
        computed = computed_posture(robot, closure)
        return replace(computed, why=f"{computed.why}; not the {error}")


def first_pose_name(robot: Robot) -> str | None:
    """Return the name of the pose that a robot starts in: of :data:`FIRST_POSES`, or the only one.

    None for a robot without such a pose.
    """
    names = list(robot.named_poses)
    only = names[0] if len(names) == 1 else None
    return next((name for name in FIRST_POSES if name in names), only)


def named_posture(robot: Robot, name: str, closure: Closure | None = None) -> Posture:
    """Return the posture of a named pose; joints that the pose leaves out are as computed.

    A joint that the pose puts outside its limits is turned by a whole turn, or else is at the
    limit; not so joints of loops and couplings, which would no longer close.

    Parameters
    ----------
    closure : as for :func:`default_posture`.

    Raises
    ------
    InputError
        If the robot has no such pose, or its loops do not close at the pose.
    """
    if name not in robot.named_poses:
        raise InputError(unknown("pose", name, robot.named_poses))
    positions = robot.named_poses[name]
    why = f"pose {name!r} of the robot description"
    q = with_positions(robot, computed_posture(robot, closure).q, positions)
    q, moved = _moved_inside(robot, q)
    if closure is not None:
        result = closure.solve(measured_positions(robot, positions, q))
        if not result.status.is_valid:
            raise InputError(f"{why}: the loops do not close: {result.about}")
        q = result.q
        why = f"{why}; loops closed" + (f"; {result.about}" if result.about else "")
    outside = [f"pose {name!r}: {words}" for words in (*moved, *outside_limits(robot, q))]
    return Posture(q, why, outside, tuple(positions))


def _moved_inside(robot: Robot, q: Array) -> tuple[Array, list[str]]:
    """Return q (nq,) with positions inside limits, and a sentence per joint that was moved."""
    found, words = q.copy(), []
    ranges = _limits(robot)
    ordinary = {
        robot.q_offsets[i]
        for cluster in clusters_of(robot)
        if cluster.is_ordinary
        for i in cluster.joints
    }
    for k in ordinary.intersection(ranges.all_outside(q).tolist()):
        turns = (q[k], q[k] - _TURN, q[k] + _TURN) if ranges.is_angle(k) else (q[k],)
        inside = [value for value in turns if ranges.lower[k] <= value <= ranges.upper[k]]
        low, high = ranges.lower[k] + _INSIDE, ranges.upper[k] - _INSIDE
        found[k] = inside[0] if inside else min(max(q[k], low), high)
        words.append(f"{ranges.words(k, q[k])}; {found[k]:.6g} is taken")
    return found, words


def _limits(robot: Robot) -> PlausibleRanges:
    """Return the limits of the positions of a robot, without the margins of measurements."""
    return PlausibleRanges(robot, margin=dict.fromkeys(JointKind, _INSIDE))


def with_positions(robot: Robot, q: Array, positions: Mapping[str, ArrayLike]) -> Array:
    """Return a copy of q (nq,) with positions by the names of joints [rad, m]."""
    found: Array = q.copy()
    for joint, offset in zip(robot.joints, robot.q_offsets, strict=True):
        if joint.name in positions:
            found[offset : offset + joint.kind.nq] = positions[joint.name]
    return found


def measured_positions(robot: Robot, named: Collection[str], q: Array) -> dict[str, Array]:
    """Return positions from which loops are closed: of named joints, and of independent joints.

    Of a group of coupled joints in which a dependent joint is named, these are the named joints:
    the remaining joints follow from them.

    Parameters
    ----------
    q : (nq,) positions of all joints [rad, m].
    """
    measured: dict[str, Array] = {}
    for cluster in clusters_of(robot):
        members = {robot.joints[i].name for i in cluster.joints}
        some = members.intersection(named)
        if not cluster.is_ordinary and some - _independent_names(robot, cluster):
            for i in cluster.joints:
                if robot.joints[i].name in some:
                    measured[robot.joints[i].name] = q[[robot.q_offsets[i]]]
            continue
        for i in cluster.independent:
            joint = robot.joints[i]
            at = slice(robot.q_offsets[i], robot.q_offsets[i] + joint.kind.nq)
            if joint.kind.nq:
                measured[joint.name] = q[at]
    return measured


def _independent_names(robot: Robot, cluster: Cluster) -> set[str]:
    return {robot.joints[i].name for i in cluster.independent}


def computed_posture(robot: Robot, closure: Closure | None = None) -> Posture:
    """Return the posture of a robot by its limits: joints at 0, or in the middle of limits.

    The middle is that of limits that exclude 0; see :func:`pose_of`. Loops are closed from the
    independent joints at these positions; where that fails, the posture is the reference of the
    closure.

    Parameters
    ----------
    closure : as for :func:`default_posture`.
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


def _bent(robot: Robot, posture: Posture, contacts: Sequence[Contact]) -> Posture:
    """Return a posture with bent joints if the matrix of contacts has a higher rank there.

    These are knees with their hips and ankles, or also all other joints that are at 0.
    """
    fixed = [contact for contact in contacts if contact.moving == "nothing"]
    if not fixed:
        return posture
    problem = Problem(robot, fixed)
    scales = row_scales(problem.contacts, ConditionSettings().characteristic_length)

    def rank(q: Array) -> int:
        J = np.array(jacobian(problem, tree_of(problem), {"q": q.tolist()}), dtype=float)
        return numerical_rank(scaled_eigenvalues(J @ J.T, scales))  # as G = J M⁻¹ Jᵀ

    best, highest = posture.q, rank(posture.q)
    knees = pose_of(robot, _BEND)
    turned = {joint.name: _side(joint, 0.5 * _BEND) for joint in robot.joints
              if joint.kind is JointKind.REVOLUTE and not knees[joint.name]}  # fmt: skip
    for pose in (knees, {**knees, **turned}):
        if highest == len(scales):
            break
        q = robot.q(pose)
        found = rank(q)
        if found > highest:
            best, highest = q, found
    count = int(np.count_nonzero(best != posture.q))
    if not count:
        return posture
    are = "joint is" if count == 1 else "joints are"
    return Posture(best, f"{posture.why}, but {count} {are} bent, as the matrix is singular there")


def _side(joint: Joint, bend: float) -> float:
    """Return an angle on the wider side of the limits of a joint, inside the limits."""
    return _clipped(joint, bend if joint.upper >= -joint.lower else -bend)


def _clipped(joint: Joint, value: float) -> float:
    return min(max(value, joint.lower), joint.upper)


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
    ranges = _limits(robot)
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


def pose_of(robot: Robot, bend: float = 0.0) -> dict[str, float]:
    """Return positions within the limits of joints, by name [rad, m]: 0, or the middle.

    A hip turns back by half of the angle of its knee, if the limits of the knee exclude 0: a leg
    then stands below its hip. Joints with several entries in q are left out.

    Parameters
    ----------
    bend : angle of knees whose limits do not exclude 0, on the wider side of their limits [rad];
        their ankles turn back as the hips do.
    """
    found: dict[str, float] = {}
    bent: set[str] = set()
    is_closed = robot.clustered.is_closed
    parents = [joint.parent for joint in robot.joints]
    for joint in robot.joints:
        if joint.kind.nq != 1:
            continue
        inside = joint.lower <= 0.0 <= joint.upper
        found[joint.name] = 0.0 if inside else _middle(joint)
        if (inside and not bend) or is_closed or joint.parent == WORLD:
            continue
        hip = robot.joints[joint.parent]
        if not JointKind.REVOLUTE is joint.kind is hip.kind:
            continue
        parallel = float(joint.placement.rotation @ joint.axis @ hip.axis)
        if abs(parallel) <= _PARALLEL:
            continue
        if inside and hip.name in bent:  # an ankle, which keeps its foot level
            found[joint.name] = _clipped(joint, -0.5 * parallel * found[hip.name])
        elif not found[hip.name] and not (inside and parents.count(joint.parent) > 1):
            # Not so a shoulder on a torso.
            if inside:
                found[joint.name] = _side(joint, bend)
                bent.add(joint.name)
            found[hip.name] = _clipped(hip, -0.5 * parallel * found[joint.name])
    return found


def _middle(joint: Joint) -> float:
    limits = [limit for limit in (joint.lower, joint.upper) if math.isfinite(limit)]
    return sum(limits) / len(limits)


def _count(names: Sized) -> str:
    return f"{len(names)} joint{'s' if len(names) > 1 else ''}"
