"""The tree as the recursive algorithms see it: axis-aligned one-freedom joints and free bodies.

The body frames of a URDF are wherever its author put them. The cost of a recursion depends on
them, its result does not, so each link gets a frame chosen for few operations, and inertia that
a joint cannot feel is counted with its parent; see :mod:`delassus_ros.algorithms.frames` and
:mod:`delassus_ros.algorithms.base_parameters`. A planar joint becomes two prismatic joints and a
revolute one with massless links between; a floating joint makes its body *free*.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple

from delassus_ros.algorithms.scalars import Matrix, Scalar, Vector
from delassus_ros.model.robot import WORLD
from delassus_ros.problem import Problem

Motion = Literal["revolute", "prismatic", "free"]

NO_ENTRY = -1
"""`q_index` of the free-flyer of a floating base, whose pose is not in q."""


class Turn(NamedTuple):
    """A constant rotation about coordinate axis 0, 1 or 2."""

    axis: int
    sin: Scalar
    cos: Scalar


@dataclass(frozen=True, eq=False)
class ContactRows:
    """One contact's rows on its link, for zero world rotation.

    Attributes
    ----------
    index : position in the contact set.
    first_row : its first row in G.
    K : (k, 6) link twist, angular first → the contact's rows in its own axes.
    motion : (6, 6) link twist (angular first) → twist of the contact frame in its own axes,
        linear first.
    selection : (k, 6), linear first.
    to_link : (3, 3) rotation from the contact's axes to the link's.
    """

    index: int
    first_row: int
    K: Matrix
    motion: Matrix
    selection: Matrix
    to_link: Matrix


def rows_of(contact: ContactRows) -> list[int]:
    """Return the rows of G that a contact owns."""
    return list(range(contact.first_row, contact.first_row + len(contact.K)))


@dataclass(frozen=True, eq=False)
class Link:
    """Link i of the tree, moved by joint i.

    A vector of the link reaches its parent by Rot(axis, sign·q + angle), then the shift by
    `offset`, then the `turns` in their order.

    Attributes
    ----------
    name : of the joint, as in the URDF.
    parent : index of the parent link, or WORLD.
    motion : how the joint moves; a free link feels no force from its parent.
    axis : coordinate axis 0, 1 or 2 of the joint; of a free link, the one about which most of
        what arrives has no moment.
    sign : +1 or -1, direction of positive q along the axis.
    angle : constant part of the joint's angle [rad].
    offset : (3,) the link's origin, from the parent's, in the axes between joint and turns [m].
    turns : constant rotations.
    mass, moment, rotational : rigid-body inertia about the link's origin, without what the
        joint cannot feel: that part is in the parent's.
    armature : joint-side inertia [kg·m² or kg].
    q_index : index in q of the joint's first entry, or NO_ENTRY.
    contacts : contacts on this link.
    placement, axes : of a free link, the rotations from its joint frame to the parent link and
        from its own axes to its body frame.
    origin : of a free link, its origin in its body frame [m].
    """

    name: str
    parent: int
    motion: Motion
    axis: int
    sign: float
    angle: Scalar
    offset: Vector
    turns: tuple[Turn, ...]
    mass: Scalar
    moment: Vector
    rotational: Matrix
    armature: Scalar
    q_index: int
    contacts: tuple[ContactRows, ...]
    placement: Matrix | None = None
    axes: Matrix | None = None
    origin: tuple[Scalar, ...] = (0.0, 0.0, 0.0)

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
        from delassus_ros.algorithms.frames import tree_of

        return _in_place.get() or tree_of(problem)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Make :meth:`of` return this tree: algorithms then run on its constants."""
        token = _in_place.set(self)
        try:
            yield
        finally:
            _in_place.reset(token)

    def only(self, contacts: Container[int]) -> Tree:
        """Return the tree with only these contacts, by index; the rows of G stay."""
        kept = [
            replace(link, contacts=tuple(c for c in link.contacts if c.index in contacts))
            for link in self.links
        ]
        return Tree(tuple(kept), self.rows)

    @cached_property
    def link_of(self) -> dict[int, int]:
        """Link of each contact, by the contact's index."""
        return {c.index: i for i, link in enumerate(self.links) for c in link.contacts}

    @cached_property
    def supporting(self) -> frozenset[int]:
        """Links that move a contact: those on the paths from contacts to their roots."""
        return frozenset(i for link in self.link_of.values() for i in self.path(link))

    def path(self, i: int) -> list[int]:
        """Return link i and its ancestors up to its root: a free body or a world's child."""
        path = []
        while i != WORLD:
            path.append(i)
            i = WORLD if self.links[i].motion == "free" else self.links[i].parent
        return path

    def closest_common_ancestor(self, first: int, second: int) -> int:
        """Return cca of two contacts' links, or WORLD if their roots differ."""
        above = set(self.path(self.link_of[first]))
        return next((i for i in self.path(self.link_of[second]) if i in above), WORLD)


_in_place: ContextVar[Tree | None] = ContextVar("tree in place", default=None)
