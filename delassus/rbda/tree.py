"""The tree of the recursive algorithms: axis-aligned one-freedom joints and free bodies.

The frames of links affect the cost of a recursion, not its result. So link frames differ from the
body frames of the URDF: they are chosen for few operations, and inertia that a joint cannot feel
is moved to the parent link; see :mod:`delassus.rbda.frames` and
:mod:`delassus.rbda.frame_choice`. A planar joint becomes two prismatic joints and a
revolute one with massless links between; a floating joint makes its body *free*. Links that are
coupled by gears, belts or loops form a :class:`LinkCluster`: one joint of several links.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple

from delassus.model.robot import WORLD
from delassus.scalars.functions import Matrix, Scalar, Vector
from delassus.scalars.ports import Inputs

Motion = Literal["revolute", "prismatic", "free"]

NO_ENTRY = -1
"""`q_index` of the free-flyer of a floating base, whose pose is not in q."""
NO_BASE = -1
"""`base` of a tree whose free link moves the robot's base, or that has none."""


class Turn(NamedTuple):
    """A constant rotation about coordinate axis 0, 1 or 2."""

    axis: int
    sin: Scalar
    cos: Scalar


@dataclass(frozen=True, eq=False)
class MovingPlacement:
    """The map from the inputs of a moving contact to its link.

    Attributes
    ----------
    position : index of the contact's x in the input ``contact_positions``, taken flat.
    orientation : index of the contact's quaternion in ``contact_orientations``; None where the
        contact's axes are fixed in its frame.
    rotation : (3, 3) rotation from the axes of the contact's frame to the link's.
    origin : (3,) origin of the frame in the link [m].
    """

    position: int
    orientation: int | None
    rotation: Matrix
    origin: Vector


@dataclass(frozen=True, eq=False)
class ContactRows:
    """The rows of one contact on its link, for zero world rotation.

    Attributes
    ----------
    index : position among the ends of the problem's contacts.
    first_row : the first row in the matrix of all ends, :attr:`Tree.rows`.
    K : (k, 6) link twist, angular first → rows in the axes of the contact; of a moving contact,
        rows at the origin of the frame in which the contact moves.
    motion : (6, 6) link twist (angular first) → twist of the contact frame in its axes,
        linear first.
    selection : (k, 6), linear first.
    to_link : (3, 3) rotation from the contact's axes to the link's.
    in_world : whether the rows have the axes of the world instead of the contact's.
    moving : source of the placement of a moving contact; None for a fixed contact.
    """

    index: int
    first_row: int
    K: Matrix
    motion: Matrix
    selection: Matrix
    to_link: Matrix
    in_world: bool
    moving: MovingPlacement | None = None


def rows_of(contact: ContactRows) -> list[int]:
    """Return the indices in G of a contact's rows."""
    return list(range(contact.first_row, contact.first_row + len(contact.K)))


class SharedRows(NamedTuple):
    """The rows of a contact of several frames: one force with an end on each frame.

    Attributes
    ----------
    ends : index of the end on each frame; None for a frame of the world.
    weights : factor of the rows of each end.
    together : whether all twists are taken at the origin of the first frame; else each at the
        origin of its frame. Their axes are those of the first frame, or of the world.
    K : (k, 6) rows at the origin of the world, for a first frame of the world.
    """

    ends: tuple[int | None, ...]
    weights: tuple[float, ...]
    together: bool
    K: Matrix


@dataclass(frozen=True, eq=False)
class Link:
    """Link i of the tree, moved by joint i.

    A vector of the link reaches its parent by Rot(axis, sign·q + angle), then the shift by
    `offset`, then the `turns` in their order.

    Attributes
    ----------
    name : name of the joint, as in the URDF.
    parent : index of the parent link, or WORLD.
    motion : kind of the joint's motion; a free link feels no force from its parent.
    axis : coordinate axis 0, 1 or 2 of the joint; of a free link, the axis about which most
        arriving forces have no moment.
    sign : +1 or -1, direction of positive q along the axis.
    angle : constant part of the joint's angle [rad].
    offset : (3,) the link's origin, from the parent's, in the axes between joint and turns [m].
    turns : constant rotations.
    mass, moment, rotational : rigid-body inertia about the link's origin [kg, kg·m, kg·m²],
        without the part that the joint cannot feel, which the parent link includes.
    armature : joint-side inertia [kg·m² or kg].
    q_index : index in q of the joint's first entry, or NO_ENTRY.
    contacts : contacts on this link.
    placement, axes : of a free link, the rotations from the joint frame to the parent link and
        from link axes to the body frame; `axes` also of the link :attr:`Tree.base`.
    origin : of a free link, the link's origin in the body frame [m].
    couple : (3,) moment on the parent link per unit of the joint's acceleration [kg·m²], in
        addition to `moment` and `rotational`: the spin of a redistributed rotor.
    wrenches : per frame of the body with an external wrench: the frame's index in the input,
        and (6, 6) link twist, angular first → twist of the frame in its axes, linear first.
    compensated : (4,) mass and first moment of the part of the body whose weight is compensated,
        about the link's origin [kg, kg·m]; empty without gravity compensation.
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
    couple: tuple[Scalar, ...] = (0.0, 0.0, 0.0)
    wrenches: tuple[tuple[int, Matrix], ...] = ()
    compensated: tuple[Scalar, ...] = ()

    @property
    def freedom(self) -> int:
        """Index of the joint's direction in a spatial vector, angular first."""
        return self.axis if self.motion == "revolute" else 3 + self.axis


@dataclass(frozen=True, eq=False)
class LinkCluster:
    """Links whose joints are coupled: a cluster joint.

    M. Chignoli, N. Adrian, S. Kim, P. Wensing, "A propagation perspective on recursive forward
    dynamics for systems with kinematic loops", and "Recursive rigid-body dynamics algorithms for
    systems with kinematic loops", 2023 to 2025.

    Attributes
    ----------
    links : parents first; none is free.
    parent : the link that carries all of them, or WORLD.
    freedoms : number of independent rates ẏ.
    jacobian : E = ∂q̇/∂ẏ (links, freedoms), its rows the rates of the links' joints along their
        coordinate axes; constant, or a function of the inputs.
    armature : (links, links) joint-side inertia between the joints, besides their armatures.
    """

    links: tuple[int, ...]
    parent: int
    freedoms: int
    jacobian: Matrix | Callable[[Inputs], Matrix]
    armature: Matrix

    def jacobian_at(self, x: Inputs) -> Matrix:
        """Return E at the inputs."""
        return self.jacobian(x) if callable(self.jacobian) else self.jacobian


class TreeJoint(NamedTuple):
    """A joint of the tree: the joint of one link, or a cluster joint.

    Attributes
    ----------
    links : the moved links, parents first.
    parent : the carrying link, or WORLD; WORLD for a free body, which feels no force from its
        parent.
    cluster : the cluster of the links; None for a joint of one link.
    """

    links: tuple[int, ...]
    parent: int
    cluster: LinkCluster | None = None

    @property
    def i(self) -> int:
        """Index of the joint's first link."""
        return self.links[0]


@dataclass(frozen=True, eq=False)
class Tree:
    """Links, parents first.

    `rows` is the number of rows of all ends of contacts: m without contacts of several frames.
    `clusters` are the joints of several links, or of links without effect; the joint of every
    other link moves that link alone. `numbers` is the same tree with numeric constants, for a
    tree whose constants are unknowns. `base` is the link that moves the robot's base, where the
    free joint is at another body (:mod:`delassus.rbda.roots`); else NO_BASE. `shared` are
    the contacts of several frames, and `sums` has per row of G the rows that are added.
    """

    links: tuple[Link, ...]
    rows: int
    clusters: tuple[LinkCluster, ...] = ()
    numbers: Tree | None = None
    base: int = NO_BASE
    shared: tuple[SharedRows, ...] = ()
    sums: tuple[tuple[int, ...], ...] = ()

    def only(self, contacts: Container[int]) -> Tree:
        """Return the tree with only these contacts, by index; the rows of G stay."""
        kept = [
            replace(link, contacts=tuple(c for c in link.contacts if c.index in contacts))
            for link in self.links
        ]
        return replace(self, links=tuple(kept))

    @property
    def is_ordinary(self) -> bool:
        """Whether every joint moves one link, as open-chain algorithms require."""
        return not self.clusters

    @cached_property
    def joints(self) -> tuple[TreeJoint, ...]:
        """Cluster joints and joints of one link; parents first."""
        grouped = {i for cluster in self.clusters for i in cluster.links}
        found = [TreeJoint(cluster.links, cluster.parent, cluster) for cluster in self.clusters]
        for i, link in enumerate(self.links):
            if i not in grouped:
                found.append(TreeJoint((i,), WORLD if link.motion == "free" else link.parent))
        # All links of a cluster descend from the carrying link.
        return tuple(sorted(found, key=lambda joint: joint.i))

    @cached_property
    def _joint_of(self) -> dict[int, TreeJoint]:
        """The joint of every link."""
        return {i: joint for joint in self.joints for i in joint.links}

    def _ways(self, i: int) -> dict[int, int]:
        """Return per joint that moves link i the joint's link on the path to the root, upwards.

        Keys are the first links of the joints.
        """
        ways: dict[int, int] = {}
        while i != WORLD:
            joint = self._joint_of[i]
            ways[joint.i] = i
            i = joint.parent
        return ways

    def root_of(self, i: int) -> int:
        """Return the root of link i: the first link of a joint on the world, or a free body."""
        return list(self._ways(i))[-1]

    @cached_property
    def link_of(self) -> dict[int, int]:
        """Link of each contact, by the contact's index."""
        return {c.index: i for i, link in enumerate(self.links) for c in link.contacts}

    @cached_property
    def contact(self) -> dict[int, ContactRows]:
        """The contacts by index."""
        return {c.index: c for link in self.links for c in link.contacts}

    @cached_property
    def supporting(self) -> frozenset[int]:
        """Links on the paths from contacts to their roots."""
        return frozenset(i for link in self.link_of.values() for i in self.path(link))

    def path(self, i: int) -> list[int]:
        """Return link i and its ancestors up to its root: a free body or a world's child."""
        path = []
        while i != WORLD:
            path.append(i)
            i = WORLD if self.links[i].motion == "free" else self.links[i].parent
        return path

    def closest_common_ancestor(self, first: int, second: int) -> int:
        """Return cca of two contacts' links, or WORLD if their roots differ.

        Where the contacts' paths meet in a cluster, the link on the path of the first contact.
        """
        ways = self._ways(self.link_of[first])
        above = self._ways(self.link_of[second])
        return next((ways[joint] for joint in above if joint in ways), WORLD)
