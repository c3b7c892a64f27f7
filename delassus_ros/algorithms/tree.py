"""The tree as the recursive algorithms see it: axis-aligned one-freedom joints and free bodies.

The body frames of a URDF are wherever its author put them. The cost of a recursion depends on
them, its result does not, so each link gets a frame chosen for few operations: its joint
axis along a coordinate axis, its axes those of its parent at q = 0 wherever that is possible
(the constant rotation is then the identity), its origin slid along the joint axis to where the
constant offset has no component along it. A planar joint becomes two prismatic joints and a
revolute one with massless links between; a floating joint makes its body *free*.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from delassus_ros.algorithms.scalars import Matrix, Vector
from delassus_ros.model.robot import WORLD, Joint, JointKind
from delassus_ros.model.spatial import Array, Inertia, Transform, rotation_between
from delassus_ros.problem import Problem

Motion = Literal["revolute", "prismatic", "free"]

_SNAP = 1e-14
"""Rounding noise of composed rotations and offsets, relative; below it an entry is zero."""

NO_ENTRY = -1
"""`q_index` of the free-flyer of a floating base, whose pose is not in q."""


@dataclass(frozen=True, eq=False)
class ContactRows:
    """One contact's rows on its link, for zero world rotation.

    Attributes
    ----------
    index : position in the contact set.
    first_row : its first row in G.
    motion : (6, 6) link twist (angular first) → twist of the contact frame in its own axes,
        linear first.
    selection : (k, 6), linear first.
    to_link : (3, 3) rotation from the contact's axes to the link's.
    """

    index: int
    first_row: int
    motion: Array
    selection: Array
    to_link: Array


@dataclass(frozen=True, eq=False)
class Link:
    """Link i of the tree, moved by joint i.

    Attributes
    ----------
    name : of the joint, as in the URDF.
    parent : index of the parent link, or WORLD.
    motion : how the joint moves; a free link feels no force from its parent.
    axis : coordinate axis 0, 1 or 2 of the joint (0 for free links).
    sign : +1 or -1, direction of positive q along the axis.
    rotation : (3, 3) child axes in the parent at q = 0, or None for the identity.
    translation : (3,) child origin in the parent at q = 0 [m].
    mass, moment, rotational : rigid-body inertia about the link's origin.
    armature : joint-side inertia [kg·m² or kg].
    q_index : index in q of the joint's first entry, or NO_ENTRY.
    contacts : contacts on this link.
    """

    name: str
    parent: int
    motion: Motion
    axis: int
    sign: float
    rotation: Matrix | None
    translation: Vector
    mass: float
    moment: Vector
    rotational: Matrix
    armature: float
    q_index: int
    contacts: tuple[ContactRows, ...]

    @property
    def freedom(self) -> int:
        """Index of the joint's direction in a spatial vector, angular first."""
        return self.axis if self.motion == "revolute" else 3 + self.axis


@dataclass(frozen=True, eq=False)
class Tree:
    """Links, parents first; `rows` is m, the number of rows of G."""

    links: tuple[Link, ...]
    rows: int

    @staticmethod
    def of(problem: Problem) -> Tree:
        """Return the tree of a problem (the last few are kept)."""
        return _tree(problem)


@lru_cache(maxsize=8)
def _tree(problem: Problem) -> Tree:
    builder = _Builder(problem)
    for i in range(len(problem.robot.joints)):
        builder.add(i)
    return Tree(tuple(builder.links), problem.contacts.rows)


class _Builder:
    """Walks the robot's joints and chooses the links' frames."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self.links: list[Link] = []
        # Per body: its link, and the pose of the link's frame in the body's frame.
        self._placed: dict[int, tuple[int, Transform]] = {WORLD: (WORLD, Transform())}

    def add(self, i: int) -> None:
        """Append the link of joint i, for a planar joint after two massless ones."""
        joint = self._problem.robot.joints[i]
        q_index = NO_ENTRY if joint.kind is JointKind.ROOT else self._problem.robot.q_offsets[i]
        parent, parent_frame = self._placed[joint.parent]
        placement = joint.placement
        steps = _steps(joint)
        for step, (motion, direction) in enumerate(steps):
            axis, sign, frame = _choose_frame(direction, placement, parent_frame)
            body = i if step == len(steps) - 1 else None
            in_parent = parent_frame.inverse() @ placement @ frame
            index = len(self.links)
            q = q_index if motion == "free" else q_index + step
            self._append(joint, motion, axis, sign, parent, in_parent, q, body, frame)
            parent, parent_frame, placement = index, frame, Transform()
        self._placed[i] = parent, parent_frame

    def _append(
        self,
        joint: Joint,
        motion: Motion,
        axis: int,
        sign: float,
        parent: int,
        in_parent: Transform,
        q_index: int,
        body: int | None,
        frame: Transform,
    ) -> None:
        """Append a link; `body` None makes it massless and without contacts."""
        inertia = Inertia()
        contacts: tuple[ContactRows, ...] = ()
        if body is not None:
            inertia = self._problem.robot.bodies[body].inertia.in_parent(frame.inverse())
            contacts = self._contacts_on(body, frame)
        rotation = _snap(in_parent.rotation, 1.0)
        moment_scale = max(inertia.mass, float(np.abs(inertia.moment).max()))
        self.links.append(
            Link(
                name=joint.name,
                parent=parent,
                motion=motion,
                axis=axis,
                sign=sign,
                rotation=None if np.array_equal(rotation, np.eye(3)) else rotation.tolist(),
                translation=_snap(in_parent.translation, 1.0).tolist(),
                mass=inertia.mass,
                moment=_snap(inertia.moment, moment_scale).tolist(),
                rotational=_snap(
                    inertia.rotational, float(np.abs(inertia.rotational).max())
                ).tolist(),
                armature=joint.armature,
                q_index=q_index,
                contacts=contacts,
            )
        )

    def _contacts_on(self, body: int, frame: Transform) -> tuple[ContactRows, ...]:
        problem = self._problem
        found = []
        for index, contact in enumerate(problem.contacts):
            robot_frame = problem.robot.frames[contact.frame]
            if robot_frame.body != body:
                continue
            pose = frame.inverse() @ robot_frame.placement @ contact.placement
            x = pose.motion_to_child()
            found.append(
                ContactRows(
                    index=index,
                    first_row=problem.contacts.row_offsets[index],
                    motion=_snap(np.vstack([x[3:], x[:3]]), 1.0),
                    selection=contact.selection,
                    to_link=_snap(pose.rotation, 1.0),
                )
            )
        return tuple(found)


def _steps(joint: Joint) -> list[tuple[Motion, Array | None]]:
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


def _choose_frame(
    direction: Array | None, placement: Transform, parent: Transform
) -> tuple[int, float, Transform]:
    """Return (coordinate axis, sign, pose of the link's frame in the joint's frame)."""
    if direction is None:
        return 0, 1.0, Transform()
    rotation = placement.rotation.T @ parent.rotation
    along = rotation.T @ direction
    k = int(np.argmax(np.abs(along)))
    sign = float(np.sign(along[k]))
    aligned = sign * np.eye(3)[k]
    if np.abs(along - aligned).max() > 100 * _SNAP:
        rotation = rotation @ rotation_between(aligned, along)
    in_parent = parent.inverse() @ placement @ Transform(rotation)
    slide = -(in_parent.rotation[:, k] @ in_parent.translation)
    return k, sign, Transform(rotation, rotation @ (slide * np.eye(3)[k]))


def _snap(values: Array, scale: float) -> Array:
    """Return `values` with rounding noise around 0 and ±scale removed."""
    result = np.array(values)
    for exact in (0.0, scale, -scale):
        result[np.abs(result - exact) <= _SNAP * scale] = exact
    return result + 0.0
