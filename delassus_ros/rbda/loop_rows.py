"""Rows of one loop over scalars: the gap between the loop's two frames, and its derivative.

Both branches of a loop, from the body that carries them to its two frames, are described in
frames whose z axis is the joint's axis. In a planar linkage all of their constant rotations are
then about z, so rows that are always satisfied become structural zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from delassus_ros.model.constraints import Loop, LoopKind
from delassus_ros.model.loops import LoopBranch, branches_of
from delassus_ros.model.robot import JointKind, Robot
from delassus_ros.model.spatial import Array, Transform, rotation_between
from delassus_ros.rbda.unknown_constants import constants
from delassus_ros.scalars.functions import (
    Matrix,
    Scalar,
    Vector,
    dot,
    identity,
    matmul,
    sincos,
    transpose,
)

_CLEAN = 1e-12
"""Entries of constant rotations this near to 0 or ±1, and lengths below this share of the loop's
longest length or below the rounding of the mount's position, are rounding errors of the robot's
description."""
_UP = np.array([0.0, 0.0, 1.0])


@dataclass(frozen=True, eq=False)
class Segment:
    """A joint on a branch, after the constant pose that leads to it.

    Attributes
    ----------
    joint : index of the joint.
    q_index : index of the joint's entry in q.
    revolute : True for a joint that turns about z, False for one that slides along z.
    rotation, translation : pose of the joint's frame in the previous frame; z is the joint's axis.
    """

    joint: int
    q_index: int
    revolute: bool
    rotation: Matrix
    translation: Vector


@dataclass(frozen=True, eq=False)
class TracedBranch:
    """The joints from the common body to one end of a loop, and the loop's frame behind them.

    Attributes
    ----------
    segments : the joints, the common body's child first.
    rotation, translation : pose of the loop's frame in the last segment's; z is the loop's axis.
    """

    segments: tuple[Segment, ...]
    rotation: Matrix
    translation: Vector


@dataclass(frozen=True, eq=False)
class End:
    """The end of a branch of a loop at a configuration, in the axes shared by both branches.

    Attributes
    ----------
    axes : x, y and z of the loop's frame.
    origin : position of the loop's frame.
    joints : per joint of the branch (index, revolute, axis, origin).
    """

    axes: Matrix
    origin: Vector
    joints: list[tuple[int, bool, Vector, Vector]]


def loop_rows(
    robot: Robot, loop: Loop, q: Sequence[Scalar], unit: float = 1.0
) -> tuple[Vector, list[dict[int, Scalar]]]:
    """Return the rows of a loop.

    Parameters
    ----------
    q : (nq,) configuration of the spanning tree; [rad, m].
    unit : length that counts as 1 in linear rows [m].

    Returns
    -------
    residual : linear rows first, then angular ones; all 0 where the loop is closed.
    derivative : per row, the derivatives by the positions of the loop's joints, by joint index
        [1/rad, 1/m]; joints that never affect the row have the float 0.0.
    """
    scalars_of = constants((robot, loop, unit))
    ends = [_end(branch, q, unit, scalars_of) for branch in _branches(robot, loop, unit)]
    predecessor, successor = ends
    gap = [s - p for p, s in zip(predecessor.origin, successor.origin, strict=True)]
    residual: Vector = []
    derivative: list[dict[int, Scalar]] = []
    for name in _ROWS[loop.kind]:
        row = _FORMS[name](predecessor, successor, gap)
        residual.append(row.value)
        derivative.append(_slopes(predecessor, successor, row, unit))
    return residual, derivative


def is_turned(robot: Robot, loop: Loop, q: Sequence[float]) -> bool:
    """Return True if the loop's frames are half a turn apart where they should agree.

    The rows of the loop vanish in this case, too.
    """
    first, second = (
        _end(branch, q, 1.0, constants((robot, loop, 1.0)))
        for branch in _branches(robot, loop, 1.0)
    )
    agreeing = {LoopKind.POINT: (), LoopKind.HINGE: (2,), LoopKind.PLANAR: (2,)}
    axes = agreeing.get(loop.kind, (0, 1, 2))
    return any(dot(first.axes[k], second.axes[k]) <= 0.0 for k in axes)


class _Row(NamedTuple):
    """A row r with ṙ = predecessor · ω_p + successor · ω_s + direction · d/dt gap.

    ω are the angular velocities of the two frames.
    """

    value: Scalar
    predecessor: Vector
    successor: Vector
    direction: Vector


_Form = Callable[[End, End, Vector], _Row]
_NONE = [0.0, 0.0, 0.0]


def _along(k: int) -> _Form:
    """Return the row: the gap along axis k of the shared axes."""

    def form(predecessor: End, successor: End, gap: Vector) -> _Row:
        return _Row(gap[k], _NONE, _NONE, identity(3)[k])

    return form


def _across(k: int) -> _Form:
    """Return the row: the gap along axis k of the predecessor's frame."""

    def form(predecessor: End, successor: End, gap: Vector) -> _Row:
        axis = predecessor.axes[k]
        return _Row(dot(axis, gap), cross(axis, gap), _NONE, axis)

    return form


def _turned(i: int, j: int) -> _Form:
    """Return the row: axis i of the predecessor's frame · axis j of the successor's."""

    def form(predecessor: End, successor: End, gap: Vector) -> _Row:
        p, s = predecessor.axes[i], successor.axes[j]
        return _Row(dot(p, s), cross(p, s), cross(s, p), _NONE)

    return form


_FORMS: dict[str, _Form] = {
    "x": _along(0),
    "y": _along(1),
    "z": _along(2),
    "across x": _across(0),
    "across y": _across(1),
    "across z": _across(2),
    "about x": _turned(2, 1),
    "about y": _turned(0, 2),
    "about z": _turned(1, 0),
    "tilt x": _turned(1, 2),
}
_ROWS: dict[LoopKind, tuple[str, ...]] = {
    LoopKind.POINT: ("x", "y", "z"),
    LoopKind.HINGE: ("x", "y", "z", "tilt x", "about y"),
    LoopKind.SLIDER: ("across x", "across y", "about x", "about y", "about z"),
    LoopKind.PLANAR: ("across z", "tilt x", "about y"),
    LoopKind.WELD: ("x", "y", "z", "about x", "about y", "about z"),
}


def _slopes(predecessor: End, successor: End, row: _Row, unit: float) -> dict[int, Scalar]:
    """Return the derivatives of a row by the joints."""
    slopes: dict[int, Scalar] = {}
    back = [-value for value in row.direction]
    for end, moment, direction in (
        (predecessor, row.predecessor, back),
        (successor, row.successor, row.direction),
    ):
        for joint, revolute, axis, origin in end.joints:
            if revolute:
                arm = [t - o for t, o in zip(end.origin, origin, strict=True)]
                # w · m + (w × arm) · u = w · (m + arm × u)
                lever = cross(arm, direction)
                slopes[joint] = dot(axis, [m + v for m, v in zip(moment, lever, strict=True)])
            else:
                slopes[joint] = dot(axis, direction) * (1.0 / unit)
    return slopes


def _end(
    branch: TracedBranch,
    q: Sequence[Scalar],
    unit: float,
    scalars_of: Callable[[Matrix], Matrix],
) -> End:
    """Return the end of a branch; `scalars_of` turns the branch's constants into scalars."""
    turn: Matrix = identity(3)
    origin: Vector = [0.0, 0.0, 0.0]
    joints = []
    for segment in branch.segments:
        turn, origin = _placed(turn, origin, segment, scalars_of)
        axis = [row[2] for row in turn]
        value = q[segment.q_index]
        joints.append((segment.joint, segment.revolute, axis, list(origin)))
        if segment.revolute:
            s, c = sincos(value)
            turn = [[c * x + s * y, c * y - s * x, z] for x, y, z in turn]
        else:
            origin = [o + a * (value * (1.0 / unit)) for o, a in zip(origin, axis, strict=True)]
    turn, origin = _placed(turn, origin, branch, scalars_of)
    return End(transpose(turn), origin, joints)


def _placed(
    turn: Matrix,
    origin: Vector,
    at: Segment | TracedBranch,
    scalars_of: Callable[[Matrix], Matrix],
) -> tuple[Matrix, Vector]:
    """Return rotation and origin behind a constant pose."""
    translation = scalars_of([at.translation])[0]
    moved = [o + dot(row, translation) for o, row in zip(origin, turn, strict=True)]
    return matmul(turn, scalars_of(at.rotation)), moved


def cross(a: Vector, b: Vector) -> Vector:
    """Return a × b."""
    return [
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    ]


@lru_cache(maxsize=256)
def _branches(robot: Robot, loop: Loop, unit: float) -> tuple[TracedBranch, TracedBranch]:
    """Return the predecessor's and the successor's branch, lengths in units of `unit`."""
    ways = branches_of(robot, loop)
    first = next(joint for way in ways for joint in way.joints)
    # The axes shared by both branches: z along the first joint.
    shared = Transform(robot.joints[first].placement.rotation @ _to_axis(robot, first))
    to_axis = Transform(rotation_between(_UP, loop.axis))
    chains = [_chain(robot, way, shared, to_axis) for way in ways]
    longest = max(float(np.abs(pose.translation).max()) for chain in chains for pose in chain)
    scale = longest / unit or 1.0
    rounding = max(_CLEAN * scale, *(way.rounding / unit for way in ways))

    def branch(way: LoopBranch, chain: list[Transform]) -> TracedBranch:
        segments = tuple(
            Segment(
                joint,
                robot.q_offsets[joint],
                robot.joints[joint].kind is JointKind.REVOLUTE,
                _clean(pose.rotation, 1.0, _CLEAN),
                _clean(pose.translation[None] / unit, scale, rounding)[0],
            )
            for joint, pose in zip(way.joints, chain, strict=False)
        )
        last = chain[-1]
        translation = _clean(last.translation[None] / unit, scale, rounding)[0]
        return TracedBranch(segments, _clean(last.rotation, 1.0, _CLEAN), translation)

    first_branch, second_branch = (
        branch(way, chain) for way, chain in zip(ways, chains, strict=True)
    )
    return first_branch, second_branch


def _to_axis(robot: Robot, joint: int) -> Array:
    """Return the rotation from a frame whose z is the joint's axis to the joint's frame."""
    return rotation_between(_UP, robot.joints[joint].axis)


def _chain(
    robot: Robot, way: LoopBranch, shared: Transform, to_axis: Transform
) -> list[Transform]:
    """Return the constant poses along a branch: of the joints' frames, then of the end."""
    poses, before = [], shared.inverse()
    for joint, placement in zip(way.joints, way.placements, strict=False):
        aligned = Transform(_to_axis(robot, joint))
        poses.append(before @ placement @ aligned)
        before = aligned.inverse()
    return [*poses, before @ way.placements[-1] @ to_axis]


def _clean(values: Array, scale: float, rounding: float) -> Matrix:
    """Return rows without rounding errors at multiples of `scale`: at 0, of rotations at ±1."""

    def cleaned(value: float) -> float:
        nearest = round(value / scale) * scale
        return nearest + 0.0 if abs(value - nearest) < rounding else value

    return [[cleaned(float(value)) for value in row] for row in values]
