"""Cost of link frames in operations, and the choice of the cheapest frames."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from delassus.contacts import Contact
from delassus.model.mechanism import builds_of
from delassus.model.robot import WORLD, Joint, JointKind
from delassus.model.spatial import Array, Transform, rotation_between
from delassus.problem import Problem
from delassus.rbda.tree import Motion, Turn

SNAP = 2e-13
"""Relative rounding noise of composed rotations and offsets; smaller entries are zero."""
ALIGNED = 5 * SNAP
"""Component of a unit vector (no unit) below which the component counts as zero."""

_TURN = (64, 12)
"""Operations of a constant turn: of an inertia, and per row that passes the joint."""
_SHIFT = (28, 4)
"""Operations per component of an offset: of an inertia, and per row that passes the joint."""
_MEETING, _PASSING = 36, 4
"""Operations per nonzero entry of a contact's K: where the rows of several contacts meet, which
multiplies K with several 6×6 matrices, and where the rows only start towards the root."""
_CARRIED = 2
"""Operations per entry of the rotation that takes a moving contact's place to the link."""
_SOMEWHERE = Transform.from_xyz_rpy((0.31, -0.17, 0.23), (0.7, 0.4, -0.9))
"""A placement along no axis, in place of the unknown placement of a moving contact."""


class _Placed(NamedTuple):
    """A contact on a body, with the part of its placement that is known before run time.

    Attributes
    ----------
    selection : (k, 6) rows of the contact.
    pose : in the body's frame.
    axes : rotations from the body's axes to axes along which the link's axes are cheap.
    moving : rotation of the frame in which a moving contact moves; None for fixed contacts.
    """

    selection: Array
    pose: Transform
    axes: tuple[Array, ...]
    moving: Array | None

    @classmethod
    def of(cls, contact: Contact, frame: Transform) -> _Placed:
        """Return a contact whose frame is at this pose in the body's."""
        pose = frame @ contact.placement
        if contact.moving == "nothing":
            return cls(contact.selection, pose, (pose.rotation,), None)
        if contact.moving == "position":
            somewhere = Transform(pose.rotation, _SOMEWHERE.translation)
            axes = (pose.rotation, frame.rotation)
            return cls(contact.selection, somewhere, axes, frame.rotation)
        return cls(contact.selection, _SOMEWHERE, (frame.rotation,), frame.rotation)


class FrameChoice:
    """Chooses the frames of a problem's bodies.

    Parameters
    ----------
    on_child_axis : put a free body's frame on the axis of a child with rows in any case: the
        privileged child of McMillan, Orin and McGhee. Otherwise only if the robot has no limb of
        the same build as this child.
    """

    def __init__(self, problem: Problem, on_child_axis: bool = False) -> None:
        self._on_child_axis = on_child_axis
        self._joints = problem.robot.joints
        self._children: list[list[int]] = [[] for _ in self._joints]
        self._contacts: list[list[_Placed]] = [[] for _ in self._joints]
        self._rows = [0] * len(self._joints)
        for _, contact in problem.ends:
            frame = problem.robot.frames[contact.frame]
            self._contacts[frame.body].append(_Placed.of(contact, frame.placement))
            self._rows[frame.body] += contact.rows
        for i, joint in reversed(list(enumerate(self._joints))):
            if joint.parent != WORLD:
                self._children[joint.parent].append(i)
                if joint.kind not in (JointKind.ROOT, JointKind.FLOATING):
                    self._rows[joint.parent] += self._rows[i]
        marks = list(zip(map(len, self._contacts), self._rows, strict=True))
        self._build = builds_of(self._joints, marks)

    def about(self, i: int, axis: int, frame: Transform, slide: float) -> tuple[float, float]:
        """Return the angle about and the slide along the revolute axis of body i's frame.

        Parameters
        ----------
        frame : pose in the body's frame for angle and slide 0.
        slide : position along the axis [m] where the body's offset has no axial component.
        """
        unit = np.eye(3)[axis]
        angles, slides = {0.0}, {slide}
        a, b = (axis + 1) % 3, (axis + 2) % 3
        for direction, origin in self._axes_on(i, frame):
            for v in (direction, origin):
                angles.add(_to_quarter(math.atan2(v[b], v[a])) if abs(v[a] * v[b]) > SNAP else 0.0)
            slides.add(_foot(unit, direction, origin))
        for placed in self._contacts[i]:
            for axes in placed.axes:
                turn = frame.rotation.T @ axes
                angles.add(_to_quarter(math.atan2(turn[b, a], turn[a, a])))
            if placed.moving is None:
                slides.add(float(unit @ (frame.inverse() @ placed.pose).translation))
        shift = _SHIFT[0] + _SHIFT[1] * min(6, self._rows[i])

        def cost(choice: tuple[float, float]) -> tuple[float, ...]:
            # Where costs are equal, the plain choice: alike limbs stay alike.
            angle, by = choice
            turn = about(axis, math.sin(angle), math.cos(angle))
            there = frame @ Transform(turn, by * unit)
            extra = shift * (abs(by - slide) > SNAP) + (angle != 0.0)
            return self._cost(i, there) + extra, abs(angle), abs(by - slide)

        return min(((x, s) for x in sorted(angles) for s in sorted(slides)), key=cost)

    def of_free_body(self, i: int) -> tuple[int, Transform]:
        """Return the frame of free body i, and the angular direction that most rows lack.

        Alike limbs get alike frames, so that the compiler can pack them into vectors.
        """
        candidates = [Transform()]
        builds = [self._build[child] for child in self._children[i]]
        for child, build in zip(self._children[i], builds, strict=True):
            alike = builds.count(build) > 1
            if not self._rows[child] or (alike and not self._on_child_axis):
                continue
            for direction, origin in self._axes_of(child, Transform()):
                rotation = rotation_of(split(direction)[2])
                foot = origin - (direction @ origin) * direction
                candidates.append(Transform(rotation, foot))
                placed = self._joints[child].placement
                for inner, where in self._axes_on(child, placed.inverse()):
                    slide = _foot(direction, inner, where - foot)
                    candidates.append(Transform(rotation, foot + slide * direction))

        def cost(frame: Transform) -> float:
            return self._cost(i, frame) - max(self._saved(i, frame))

        if self._on_child_axis and len(candidates) > 1:
            del candidates[0]
        best = min(candidates, key=cost)
        return int(np.argmax(self._saved(i, best))), best

    def _saved(self, i: int, frame: Transform) -> list[float]:
        """Return per axis the operations saved at the root by rows without a moment about it."""
        saved = [0.0, 0.0, 0.0]
        for child in self._children[i]:
            for direction, origin in self._axes_of(child, frame):
                axis, _, turns = split(direction)
                if not turns and not _components(origin, axis):
                    saved[axis] += self._rows[child] * (10 + self._rows[i])
        return saved

    def _cost(self, i: int, frame: Transform) -> float:
        """Return the operations of body i's children and contacts that depend on its frame."""
        total = 0.0
        below = 0
        for child in self._children[i]:
            rows = min(6, self._rows[child])
            below += self._rows[child]
            for direction, origin in self._axes_of(child, frame):
                axis, _, turns = split(direction)
                shifts = _components(rotation_of(turns).T @ origin, axis)
                total += len(turns) * (_TURN[0] + _TURN[1] * rows)
                total += shifts * (_SHIFT[0] + _SHIFT[1] * rows)
        for placed in self._contacts[i]:
            x = (frame.inverse() @ placed.pose).motion_to_child()
            K = placed.selection @ np.vstack([x[3:], x[:3]])
            total += (_MEETING if below else _PASSING) * int((np.abs(K) > SNAP).sum())
            if placed.moving is not None:
                turn = frame.rotation.T @ placed.moving
                total += _CARRIED * int((np.abs(turn) > SNAP).sum())
        return total

    def _axes_on(self, i: int, frame: Transform) -> Iterable[tuple[Array, Array]]:
        """Yield the axes (direction, origin) of body i's children in `frame`."""
        for child in self._children[i]:
            yield from self._axes_of(child, frame)

    def _axes_of(self, child: int, frame: Transform) -> Iterable[tuple[Array, Array]]:
        joint = self._joints[child]
        direction = steps_of(joint)[0][1]
        if direction is not None:
            pose = frame.inverse() @ joint.placement
            yield pose.rotation @ direction, pose.translation


def _components(offset: Array, axis: int) -> int:
    """Return how many components `offset` has across `axis`."""
    return sum(k != axis and abs(offset[k]) > SNAP for k in range(3))


def _to_quarter(angle: float) -> float:
    """Return the angle less the nearest multiple of π/2."""
    rest = angle - round(angle / (math.pi / 2)) * (math.pi / 2)
    return rest if abs(rest) > SNAP else 0.0


def _foot(axis: Array, direction: Array, origin: Array) -> float:
    """Return the point of `axis`, a line through 0, that is closest to another line."""
    cosine = float(axis @ direction)
    across = 1.0 - cosine * cosine
    if across < 1e-6:
        return float(axis @ origin)
    return float((axis - cosine * direction) @ origin) / across


def steps_of(joint: Joint) -> list[tuple[Motion, Array | None]]:
    """Return the one-freedom motions (or the free motion) that make up a joint, in order."""
    if joint.kind in (JointKind.ROOT, JointKind.FLOATING):
        return [("free", None)]
    if joint.kind is JointKind.REVOLUTE:
        return [("revolute", joint.axis)]
    if joint.kind is JointKind.PRISMATIC:
        return [("prismatic", joint.axis)]
    plane = rotation_between((0.0, 0.0, 1.0), joint.axis)
    return [
        ("prismatic", plane[:, 0]),
        ("prismatic", plane[:, 1]),
        ("revolute", joint.axis),
    ]


def split(direction: Array) -> tuple[int, float, tuple[Turn, ...]]:
    """Return axis, sign and the fewest turns that take sign·e_axis to the unit `direction`."""
    k = int(np.argmax(np.abs(direction)))
    sign = float(np.sign(direction[k]))
    turns: tuple[Turn, ...] = ()
    rest = direction
    # The last turn is undone first: a turn about a moves the component along b into axis k.
    for a, b in (((k + 2) % 3, (k + 1) % 3), ((k + 1) % 3, (k + 2) % 3)):
        if abs(rest[b]) > ALIGNED:
            length = sign * math.hypot(rest[k], rest[b])
            cos, sin = rest[k] / length, rest[b] / length
            # Rot(a) takes e_k to cos·e_k ± sin·e_b; + where k, b, a are in cyclic order.
            turn = Turn(a, sin if (k + 1) % 3 == b else -sin, cos)
            turns = (turn, *turns)
            rest = about(a, -turn.sin, turn.cos) @ rest
    return k, sign, turns


def about(axis: int, sin: float, cos: float) -> Array:
    """Return the rotation matrix about a coordinate axis."""
    a, b = (axis + 1) % 3, (axis + 2) % 3
    matrix = np.eye(3)
    matrix[a, a] = matrix[b, b] = cos
    matrix[b, a], matrix[a, b] = sin, -sin
    return matrix


def rotation_of(turns: tuple[Turn, ...]) -> Array:
    """Return the product of turns, the first applied first."""
    matrix = np.eye(3)
    for turn in turns:
        matrix = about(*turn) @ matrix
    return matrix


def snap(values: Array, scale: float) -> Array:
    """Return `values` with rounding noise around 0 and ±scale removed."""
    result = np.array(values)
    for exact in (0.0, scale, -scale):
        result[np.abs(result - exact) <= SNAP * scale] = exact
    return result + 0.0
