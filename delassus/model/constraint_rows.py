"""Rows of a loop or a function over scalars, and their derivatives.

Rows of a loop are the gap between the loop's two frames. Both branches of a loop, from the body
that carries them to its two frames, are described in frames whose z axis is the joint's axis. In
a planar linkage all of their constant rotations are then about z, so rows that are always
satisfied become structural zeros. A gap has two forms, :func:`sines` for kernels and
:func:`vectors` for searches from far.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np

from delassus.errors import RobotError
from delassus.model.constraints import FunctionConstraint, Loop, LoopKind
from delassus.model.joint import JointKind
from delassus.model.mechanism import Mechanism
from delassus.model.spatial import Array, Transform, rotation_between
from delassus.scalars.duals import differentiated
from delassus.scalars.functions import (
    Matrix,
    Scalar,
    Vector,
    cross,
    dot,
    identity,
    matmul,
    minus,
    plus,
    sincos,
    transpose,
)

POSITION_ROUNDING = 2e-15
"""Rounding error of a position that is a sum over fixed joints, relative to its size."""
SIZE_CONFIGURATIONS = 8
"""Random configurations from which the size of a loop is taken."""
ARM_ROUNDING = 1e-12
"""Length of an arm, relative to the constant distances along a loop, below which the arm is a
rounding error."""
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
class LoopBranch:
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
    robot: Mechanism,
    loop: Loop,
    q: Sequence[Scalar],
    unit: float,
    form: Form,
    scalars_of: Callable[[Matrix], Matrix] | None = None,
) -> tuple[Vector, list[dict[int, Scalar]]]:
    """Return the rows of a loop.

    Parameters
    ----------
    q : (nq,) configuration of the spanning tree; [rad, m].
    unit : length that counts as 1 in linear rows [m].
    form : :func:`sines` or :func:`vectors`.
    scalars_of : turns the loop's constants into scalars; None where they are numbers.

    Returns
    -------
    residual : the rows, all 0 where the loop is closed.
    derivative : per row, the derivatives by the positions of the loop's joints, by joint index
        [1/rad, 1/m]; joints that never affect the row have the float 0.0.
    """
    predecessor, successor = _ends(robot, loop, q, unit, scalars_of)
    residual: Vector = []
    derivative: list[dict[int, Scalar]] = []
    for row in form(loop.kind, predecessor, successor):
        residual.append(row.value)
        derivative.append(_slopes(predecessor, successor, row, unit))
    return residual, derivative


def function_rows(
    robot: Mechanism, constraint: FunctionConstraint, q: Sequence[Scalar]
) -> tuple[Vector, list[dict[int, Scalar]]]:
    """Return the rows of a function; of an explicit function q of its joints minus its values.

    Parameters
    ----------
    q : as for :func:`loop_rows`.

    Returns
    -------
    residual, derivative : as of :func:`loop_rows`, in the function's unit.

    Raises
    ------
    RobotError
        If the function returns more or fewer numbers than the constraint has rows.
    """
    index = {joint.name: i for i, joint in enumerate(robot.joints)}
    values, slopes = differentiated(
        constraint.function, [q[robot.q_offsets[index[name]]] for name in constraint.joints]
    )
    if len(values) != constraint.rows:
        raise RobotError(
            f"constraint {constraint.name!r}: its function returned {len(values)} numbers, "
            f"expected {constraint.rows}"
        )
    if constraint.dependent:
        slopes = [[-slope for slope in row] for row in slopes]
    joints = [index[name] for name in constraint.joints]
    derivative: list[dict[int, Scalar]] = [dict(zip(joints, row, strict=True)) for row in slopes]
    for k, name in enumerate(constraint.dependent):
        values[k] = q[robot.q_offsets[index[name]]] - values[k]
        derivative[k][index[name]] = 1.0
    return values, derivative


def loop_gap(loop: Loop, predecessor: Transform, successor: Transform) -> Vector:
    """Return by how much the frames of a loop are off, as :func:`vectors`; lengths in m."""
    to_axis = rotation_between(_UP, loop.axis)
    ends = (
        End((pose.rotation @ to_axis).T.tolist(), pose.translation.tolist(), [])
        for pose in (predecessor, successor)
    )
    return [row.value for row in vectors(loop.kind, *ends)]


def is_turned(robot: Mechanism, loop: Loop, q: Sequence[float]) -> bool:
    """Return True if the loop's frames are half a turn apart where they should agree.

    The rows of :func:`sines` vanish in this case, too.
    """
    first, second = _ends(robot, loop, q)
    agreeing = {LoopKind.POINT: (), LoopKind.HINGE: (2,), LoopKind.PLANAR: (2,)}
    axes = agreeing.get(loop.kind, (0, 1, 2))
    return any(dot(first.axes[k], second.axes[k]) <= 0.0 for k in axes)


@lru_cache(maxsize=256)
def size_of(robot: Mechanism, loop: Loop) -> float:
    """Return a typical length of a loop [m]: its longest lever arm, rounded to a power of two.

    A lever arm is the distance of a joint's axis from the frame at the end of the branch; the
    largest of a few configurations counts. Without arms the size is the longest constant distance,
    or 1 m. Distances that no motion shows do not count: the place of the loop, shifts along axes,
    the zero of a slide. Lengths are exact in units of a power of two.
    """
    # A fixed seed: the same loop must always have the same size.
    random = np.random.default_rng(0)
    arms, constant, q = [0.0], [0.0], [0.0] * robot.nq
    for branch in branches_of(robot, loop):
        constant += [math.hypot(*segment.translation) for segment in branch.segments]
        constant.append(math.hypot(*branch.translation))
        for _ in range(SIZE_CONFIGURATIONS):
            for segment in branch.segments:
                joint = robot.joints[segment.joint]
                q[segment.q_index] = (
                    random.uniform(-np.pi, np.pi)
                    if segment.revolute
                    else min(max(0.0, joint.lower), joint.upper)
                )
            end = _end(branch, q, 1.0, None)
            arms += [
                math.hypot(*cross(axis, minus(end.origin, origin)))
                for _, revolute, axis, origin in end.joints
                if revolute
            ]
    longest = max(arms)
    if longest <= ARM_ROUNDING * max(constant):
        longest = max(constant)
    return 2.0 ** round(math.log2(longest)) if longest > 0.0 else 1.0


class Row(NamedTuple):
    """A row r with ṙ = predecessor · ω_p + successor · ω_s + direction · d/dt gap.

    ω are the angular velocities of the two frames.
    """

    value: Scalar
    predecessor: Vector
    successor: Vector
    direction: Vector


Form: TypeAlias = Callable[[LoopKind, End, End], Iterable[Row]]
_Formula = Callable[[End, End, Vector], Row]
_NONE = [0.0, 0.0, 0.0]


def _along(k: int) -> _Formula:
    """Return the row: the gap along axis k of the shared axes."""

    def form(predecessor: End, successor: End, gap: Vector) -> Row:
        return Row(gap[k], _NONE, _NONE, identity(3)[k])

    return form


def _across(k: int) -> _Formula:
    """Return the row: the gap along axis k of the predecessor's frame."""

    def form(predecessor: End, successor: End, gap: Vector) -> Row:
        axis = predecessor.axes[k]
        return Row(dot(axis, gap), cross(axis, gap), _NONE, axis)

    return form


def _turned(i: int, j: int) -> _Formula:
    """Return the row: axis i of the predecessor's frame · axis j of the successor's."""

    def form(predecessor: End, successor: End, gap: Vector) -> Row:
        p, s = predecessor.axes[i], successor.axes[j]
        return Row(dot(p, s), cross(p, s), cross(s, p), _NONE)

    return form


_FORMS: dict[str, _Formula] = {
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
_SINES: dict[LoopKind, tuple[str, ...]] = {
    LoopKind.POINT: ("x", "y", "z"),
    LoopKind.HINGE: ("x", "y", "z", "tilt x", "about y"),
    LoopKind.SLIDER: ("across x", "across y", "about x", "about y", "about z"),
    LoopKind.PLANAR: ("across z", "tilt x", "about y"),
    LoopKind.WELD: ("x", "y", "z", "about x", "about y", "about z"),
}
ROWS: dict[LoopKind, tuple[int, ...]] = {
    LoopKind.POINT: (3, 4, 5),
    LoopKind.HINGE: (3, 4, 5, 0, 1),
    LoopKind.SLIDER: (0, 1, 2, 3, 4),
    LoopKind.PLANAR: (5, 0, 1),
    LoopKind.WELD: (0, 1, 2, 3, 4, 5),
}
"""Rows of :func:`vectors`: rotation about and translation along x, y, z; z is the axis."""


def sines(kind: LoopKind, predecessor: End, successor: End) -> Iterator[Row]:
    """Yield the rows of a loop as polynomials of the ends: linear rows, then sines of angles.

    They also vanish where the frames are half a turn apart, see :func:`is_turned`.
    """
    gap = minus(successor.origin, predecessor.origin)
    for name in _SINES[kind]:
        yield _FORMS[name](predecessor, successor, gap)


def vectors(kind: LoopKind, predecessor: End, successor: End) -> Iterator[Row]:
    """Yield the rows of a loop in the axes of the predecessor's frame: see :data:`ROWS`.

    Angles are those of rotation vectors [rad], which do not vanish at half a turn; their
    derivatives are exact where the loop is closed. For numbers alone.
    """
    gap = minus(successor.origin, predecessor.origin)
    angles = _angles(kind, predecessor, successor) if kind is not LoopKind.POINT else _NONE
    for k in ROWS[kind]:
        if k < 3:
            axis = predecessor.axes[k]
            yield Row(angles[k], [-a for a in axis], axis, _NONE)
        else:
            yield _across(k - 3)(predecessor, successor, gap)


def _angles(kind: LoopKind, predecessor: End, successor: End) -> Vector:
    """Return axis times angle of the turn between the ends, also near a half turn."""
    between: Array = np.array(matmul(predecessor.axes, transpose(successor.axes)))
    if kind in (LoopKind.HINGE, LoopKind.PLANAR):
        between = rotation_between(_UP, between[:, 2])
    x, y, z, w = Transform(between).quaternion().tolist()
    sine = math.hypot(x, y, z)
    factor = 2.0 * math.atan2(sine, w) / sine if sine > 0.0 else 2.0
    return [factor * x, factor * y, factor * z]


def _slopes(predecessor: End, successor: End, row: Row, unit: float) -> dict[int, Scalar]:
    """Return the derivatives of a row by the joints."""
    slopes: dict[int, Scalar] = {}
    back = [-value for value in row.direction]
    for end, moment, direction in (
        (predecessor, row.predecessor, back),
        (successor, row.successor, row.direction),
    ):
        for joint, revolute, axis, origin in end.joints:
            if revolute:
                # w · m + (w × arm) · u = w · (m + arm × u)
                lever = cross(minus(end.origin, origin), direction)
                slopes[joint] = dot(axis, plus(moment, lever))
            else:
                slopes[joint] = dot(axis, direction) * (1.0 / unit)
    return slopes


def _ends(
    robot: Mechanism,
    loop: Loop,
    q: Sequence[Scalar],
    unit: float = 1.0,
    scalars_of: Callable[[Matrix], Matrix] | None = None,
) -> tuple[End, End]:
    """Return the predecessor's and the successor's end, lengths in units of `unit`."""
    first, second = branches_of(robot, loop, unit)
    return _end(first, q, unit, scalars_of), _end(second, q, unit, scalars_of)


def _end(
    branch: LoopBranch,
    q: Sequence[Scalar],
    unit: float,
    scalars_of: Callable[[Matrix], Matrix] | None,
) -> End:
    """Return the end of a branch."""
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
    at: Segment | LoopBranch,
    scalars_of: Callable[[Matrix], Matrix] | None,
) -> tuple[Matrix, Vector]:
    """Return rotation and origin behind a constant pose."""
    rotation, translation = at.rotation, at.translation
    if scalars_of is not None:
        (translation,), rotation = scalars_of([translation]), scalars_of(rotation)
    moved = [o + dot(row, translation) for o, row in zip(origin, turn, strict=True)]
    return matmul(turn, rotation), moved


@lru_cache(maxsize=256)
def branches_of(robot: Mechanism, loop: Loop, unit: float = 1.0) -> tuple[LoopBranch, LoopBranch]:
    """Return the predecessor's and the successor's branch, lengths in units of `unit` [m]."""
    ways = [robot.path(body)[::-1] for body in (loop.predecessor, loop.successor)]
    while ways[0] and ways[1] and ways[0][0] == ways[1][0]:
        del ways[0][0], ways[1][0]
    first = (ways[0] or ways[1])[0]
    # The loop's origin: the carrier's axes at the first joint of the loop.
    origin = robot.joints[first].placement.translation
    rounding = POSITION_ROUNDING * float(np.abs(origin).max())
    ends = (loop.predecessor_placement, loop.successor_placement)
    # The axes shared by both branches: z along the first joint.
    shared = Transform(robot.joints[first].placement.rotation) @ _to_axis(robot, first)
    to_axis = Transform(rotation_between(_UP, loop.axis))
    chains = []
    for joints, end in zip(ways, ends, strict=True):
        placements = [*(robot.joints[joint].placement for joint in joints), end]
        at = placements[0].translation - origin
        # A rounding error instead of a zero would be taken for a length.
        at[np.abs(at) <= rounding] = 0.0
        placements[0] = Transform(placements[0].rotation, at)
        aligned = [shared, *(_to_axis(robot, joint) for joint in joints), to_axis]
        chains.append([
            before.inverse() @ placement @ after
            for before, placement, after in zip(aligned, placements, aligned[1:], strict=False)
        ])  # fmt: skip
    longest = max(float(np.abs(pose.translation).max()) for chain in chains for pose in chain)
    scale = longest / unit or 1.0
    rounding = max(_CLEAN * scale, rounding / unit)

    def cleaned(pose: Transform) -> tuple[Matrix, Vector]:
        (translation,) = _clean(pose.translation[None] / unit, scale, rounding)
        return _clean(pose.rotation, 1.0, _CLEAN), translation

    def branch(joints: list[int], chain: list[Transform]) -> LoopBranch:
        segments = (
            Segment(
                joint,
                robot.q_offsets[joint],
                robot.joints[joint].kind is JointKind.REVOLUTE,
                *cleaned(pose),
            )
            for joint, pose in zip(joints, chain, strict=False)
        )
        return LoopBranch(tuple(segments), *cleaned(chain[-1]))

    return branch(ways[0], chains[0]), branch(ways[1], chains[1])


def _to_axis(robot: Mechanism, joint: int) -> Transform:
    """Return the turn from a frame whose z is the joint's axis to the joint's frame."""
    return Transform(rotation_between(_UP, robot.joints[joint].axis))


def _clean(values: Array, scale: float, rounding: float) -> Matrix:
    """Return rows without rounding errors at multiples of `scale`: at 0, of rotations at ±1."""

    def cleaned(value: float) -> float:
        nearest = round(value / scale) * scale
        return nearest + 0.0 if abs(value - nearest) < rounding else value

    return [[cleaned(float(value)) for value in row] for row in values]
