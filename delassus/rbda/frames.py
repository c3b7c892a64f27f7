"""The choice of link frames: the same robot, in the coordinates in which a recursion is cheap.

A link's joint axis lies along a coordinate axis, and its frame may be turned about that axis
(a constant is added to the joint's angle) and slid along it. Where the axis is skew to the
parent's axes, the constant rotation between them is split into turns about coordinate axes. Of a
few candidates, among them those of the convention of Denavit and Hartenberg, the frame is taken
that needs fewest operations for the children's turns and offsets and the contacts' rows. The frame
of a free body sits on the axis of one of its children (S. McMillan, D. Orin, R. McGhee, IEEE
Transactions on Systems, Man and Cybernetics 25, 1995): forces that this child passes on have no
moment about that axis.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeAlias

import numpy as np

from delassus.contacts import RelativeContact
from delassus.model.robot import WORLD, Joint, JointKind
from delassus.model.spatial import Array, Inertia, Transform
from delassus.problem import Problem
from delassus.rbda.frame_choice import FrameChoice, about, rotation_of, snap, split, steps_of
from delassus.rbda.tree import (
    NO_ENTRY,
    ContactRows,
    Link,
    Motion,
    MovingPlacement,
    SharedRows,
    Tree,
    Turn,
)
from delassus.scalars.functions import Matrix

Placed: TypeAlias = dict[int, tuple[int, Transform]]
"""Per body: index of the link, and the pose of the link's frame in the body's frame."""


def built(
    problem: Problem, regrouped: bool = True, on_child_axis: bool = False
) -> tuple[Tree, Placed]:
    """Return the spanning tree of a problem, and the link and pose of every body.

    Parameters
    ----------
    regrouped : move inertia that a joint cannot feel to the parent link; if False, forces between
        links are the forces between the bodies.
    on_child_axis : as for :class:`~delassus.rbda.frame_choice.FrameChoice`.
    """
    builder = _Builder(problem, on_child_axis)
    for i in range(len(problem.robot.joints)):
        builder.add(i)
    return builder.tree(regrouped), builder.placed


@dataclass
class _Draft:
    """A link whose inertia is not final; see :class:`~delassus.rbda.tree.Link`.

    Attributes
    ----------
    placement : rotation of the joint's frame in the parent link.
    at_zero : pose in the parent link at q = 0.
    frame : pose in the frame of the body it moves.
    body : index of the moved body; None for the massless links of a planar joint.
    """

    joint: Joint
    parent: int
    motion: Motion
    axis: int
    sign: float
    angle: float
    offset: Array
    turns: tuple[Turn, ...]
    placement: Array
    at_zero: Transform
    frame: Transform
    q_index: int
    body: int | None
    inertia: Inertia


class _Builder:
    """Walks the robot's joints and chooses the links' frames."""

    def __init__(self, problem: Problem, on_child_axis: bool) -> None:
        self._problem = problem
        self._drafts: list[_Draft] = []
        self.placed: Placed = {WORLD: (WORLD, Transform())}
        self._choice = FrameChoice(problem, on_child_axis)
        # Per end of a contact its first row, then the number of rows.
        self._first_rows = list(accumulate((end.rows for _, end in problem.ends), initial=0))

    def add(self, i: int) -> None:
        """Append the link of joint i; for a planar joint, after two massless links."""
        robot = self._problem.robot
        joint = robot.joints[i]
        q_index = NO_ENTRY if joint.kind is JointKind.ROOT else robot.q_offsets[i]
        parent, parent_frame = self.placed[joint.parent]
        placement = joint.placement
        steps = steps_of(joint)
        for step, (motion, direction) in enumerate(steps):
            body = i if step == len(steps) - 1 else None
            pose = parent_frame.inverse() @ placement
            axis, sign, angle = 0, 1.0, 0.0
            turns: tuple[Turn, ...] = ()
            offset = np.zeros(3)
            if direction is None:
                axis, frame = self._choice.of_free_body(i)
            else:
                axis, sign, turns = split(pose.rotation @ direction)
                turned = rotation_of(turns)
                frame = Transform(pose.rotation.T @ turned)
                offset = turned.T @ pose.translation
                # The distance of a robot's mount from the world's origin has no effect on G;
                # sliding the first frame along its axis towards the origin would add inertia.
                slide = 0.0 if parent == WORLD else -offset[axis]
                if motion == "revolute" and body is not None:
                    angle, slide = self._choice.about(i, axis, frame, slide)
                along = slide * np.eye(3)[axis]
                offset = offset + along
                rotation = frame.rotation @ about(axis, math.sin(angle), math.cos(angle))
                frame = Transform(rotation, frame.rotation @ along)
            self._drafts.append(
                _Draft(
                    joint, parent, motion, axis, sign, angle, snap(offset, 1.0), turns,
                    pose.rotation, pose @ frame, frame,
                    q_index if motion == "free" else q_index + step, body,
                    Inertia() if body is None else
                    robot.bodies[i].inertia.in_parent(frame.inverse()),
                )
            )  # fmt: skip
            parent, parent_frame, placement = len(self._drafts) - 1, frame, Transform()
        self.placed[i] = parent, parent_frame

    def tree(self, regrouped: bool) -> Tree:
        """Return the tree, with its inertias grouped or not."""
        drafts = self._drafts
        for draft in reversed(drafts) if regrouped else ():
            if draft.motion == "free" or draft.parent == WORLD:
                continue
            part = unfelt(draft.inertia, draft.motion, draft.axis)
            draft.inertia = without(draft.inertia, part)
            above = drafts[draft.parent]
            above.inertia = above.inertia + part.in_parent(draft.at_zero)
        links = tuple(self._link(draft) for draft in drafts)
        shared, sums = self._combined()
        return Tree(links, self._first_rows[-1], shared=shared, sums=sums)

    def _combined(self) -> tuple[tuple[SharedRows, ...], tuple[tuple[int, ...], ...]]:
        """Return the contacts of several frames, and per row of G the rows that are added."""
        problem, frames = self._problem, self._problem.robot.frames
        if all(len(contact.ends) == 1 for contact in problem.rows_of_contacts):
            return (), ()
        shared = []
        sums: list[tuple[int, ...]] = []
        for index, contact in enumerate(problem.rows_of_contacts):
            present = iter([k for k, (owner, _) in enumerate(problem.ends) if owner == index])
            ends = tuple(
                None if frames[end.frame].body == WORLD else next(present) for end in contact.ends
            )
            firsts = [self._first_rows[end] for end in ends if end is not None]
            sums += [tuple(first + r for first in firsts) for r in range(contact.rows)]
            if len(ends) < 2:
                continue
            K: Matrix = []
            if ends[0] is None:
                pose = frames[contact.frame].placement @ contact.placement
                motion = motion_at(pose)
                if problem.axes_of(index) == "world":
                    motion = np.kron(np.eye(2), pose.rotation) @ motion
                K = (contact.selection @ motion).tolist()
            together = isinstance(contact, RelativeContact)
            shared.append(SharedRows(ends, contact.weights, together, K))
        return tuple(shared), tuple(sums)

    def _link(self, draft: _Draft) -> Link:
        inertia, free = draft.inertia, draft.motion == "free"
        # Rounding noise of the grouping is relative to the parameters of the whole body.
        whole = Inertia() if draft.body is None else self._problem.robot.bodies[draft.body].inertia
        moment_scale = max(whole.mass, float(np.abs(inertia.moment).max()))
        rotational_scale = max(
            float(np.abs(whole.rotational).max()), float(np.abs(inertia.rotational).max())
        )
        return Link(
            name=draft.joint.name,
            parent=draft.parent,
            motion=draft.motion,
            axis=draft.axis,
            sign=draft.sign,
            angle=draft.angle,
            offset=draft.offset.tolist(),
            turns=draft.turns,
            mass=inertia.mass,
            moment=snap(inertia.moment, moment_scale).tolist(),
            rotational=snap(inertia.rotational, rotational_scale).tolist(),
            armature=draft.joint.armature,
            q_index=draft.q_index,
            contacts=() if draft.body is None else self._contacts_on(draft.body, draft.frame),
            wrenches=() if draft.body is None else self._wrenches_on(draft.body, draft.frame),
            compensated=() if draft.body is None else self._compensated(draft.body, draft.frame),
            placement=snap(draft.placement, 1.0).tolist() if free else None,
            axes=snap(draft.frame.rotation, 1.0).tolist() if free else None,
            origin=tuple(snap(draft.frame.translation, 1.0).tolist()) if free else (0.0, 0.0, 0.0),
        )

    def _contacts_on(self, body: int, frame: Transform) -> tuple[ContactRows, ...]:
        problem = self._problem
        found = []
        for index, (owner, contact) in enumerate(problem.ends):
            robot_frame = problem.robot.frames[contact.frame]
            if robot_frame.body != body:
                continue
            frame_in_link = frame.inverse() @ robot_frame.placement
            pose = frame_in_link @ contact.placement
            motion = motion_at(pose)
            found.append(
                ContactRows(
                    index=index,
                    first_row=self._first_rows[index],
                    K=(contact.selection @ motion).tolist(),
                    motion=motion.tolist(),
                    selection=contact.selection.tolist(),
                    to_link=snap(pose.rotation, 1.0).tolist(),
                    in_world=problem.axes_of(owner) == "world",
                    moving=self._moving(contact.name, frame_in_link),
                )
            )
        return tuple(found)

    def _wrenches_on(self, body: int, frame: Transform) -> tuple[tuple[int, Matrix], ...]:
        frames = self._problem.robot.frames
        found = []
        for index, name in enumerate(self._problem.wrenches):
            if frames[name].body == body:
                found.append((index, motion_at(frame.inverse() @ frames[name].placement).tolist()))
        return tuple(found)

    def _compensated(self, body: int, frame: Transform) -> tuple[float, ...]:
        if not self._problem.robot.bodies[body].is_compensated:
            return ()
        part = self._problem.robot.bodies[body].compensated.in_parent(frame.inverse())
        return part.mass, *snap(part.moment, float(np.abs(part.moment).max())).tolist()

    def _moving(self, contact: str, frame: Transform) -> MovingPlacement | None:
        """Return the source of a moving contact's placement, for a frame pose in the link."""
        problem = self._problem
        if contact not in problem.moving:
            return None
        turns = contact in problem.turning
        return MovingPlacement(
            position=3 * problem.moving.index(contact),
            orientation=4 * problem.turning.index(contact) if turns else None,
            rotation=snap(frame.rotation, 1.0).tolist(),
            origin=snap(frame.translation, 1.0).tolist(),
        )


def motion_at(pose: Transform) -> Array:
    """Return (6, 6) twist of a link, angular first → twist of a frame at `pose`, linear first."""
    x = pose.motion_to_child()
    return snap(np.vstack([x[3:], x[:3]]), 1.0)


def unfelt(inertia: Inertia, motion: Motion, axis: int) -> Inertia:
    """Return the part of a link's inertia that acts on the parent alike at every q.

    Parameters
    ----------
    motion, axis : of the joint: ``"revolute"`` or ``"prismatic"`` about or along a coordinate
        axis.
    """
    if motion == "prismatic":
        return Inertia(0.0, np.zeros(3), inertia.rotational)
    a, b = (axis + 1) % 3, (axis + 2) % 3
    moment, rotational = np.zeros(3), np.zeros((3, 3))
    moment[axis] = inertia.moment[axis]
    rotational[a, a] = rotational[b, b] = inertia.rotational[b, b]
    return Inertia(inertia.mass, moment, rotational)


def without(inertia: Inertia, part: Inertia) -> Inertia:
    """Return `inertia` less `part`."""
    return Inertia(
        inertia.mass - part.mass,
        inertia.moment - part.moment,
        inertia.rotational - part.rotational,
    )
