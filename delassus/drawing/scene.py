"""Scenes: the ellipsoids, couplings and captions of a matrix, placed on the robot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from delassus.drawing.ellipsoids import EffectiveMass, coupling, linear_blocks
from delassus.drawing.force_cones import PlacedForce
from delassus.drawing.skeleton import Skeleton, completed, homogeneous, size_of
from delassus.errors import InputError, unknown
from delassus.model.robot import Robot
from delassus.model.spatial import Array, Transform
from delassus.problem import Problem

_GRAVITY = 9.81
"""Acceleration of gravity [m/s²]."""
_FAINT = 0.02
"""Couplings below this are not drawn."""
GREEN, BLUE, BONE = (47, 174, 98), (63, 111, 216), (138, 147, 163)
"""Colours of ellipsoids, of couplings and forces, and of the robot."""


@dataclass(frozen=True)
class Placed:
    """A contact with its effective masses.

    Attributes
    ----------
    centre : (3,) position of the contact in the root link [m].
    mass : effective masses along contact axes or world axes, as the rows of the matrix.
    directions : (3, 3), directions of the masses as columns, in the root link.
    """

    name: str
    centre: Array
    mass: EffectiveMass
    directions: Array


@dataclass(frozen=True)
class Scene:
    """The drawn objects of a matrix, in the axes of the root link.

    Attributes
    ----------
    contacts : contacts with all three linear rows.
    couplings : couplings of the motions of pairs of `contacts`, by numbers, 0 to 1.
    unknown : joints without a measured position, drawn at the neutral position.
    G : (m, m) the matrix; (0, 0) without one.
    names, row_offsets : all contacts of the matrix, and their first rows, then m.
    """

    contacts: Sequence[Placed] = ()
    couplings: Mapping[tuple[int, int], float] = field(default_factory=dict)
    unknown: Sequence[str] = ()
    G: Array = field(default_factory=lambda: np.zeros((0, 0)))
    names: Sequence[str] = ()
    row_offsets: Sequence[int] = (0,)

    @property
    def lines(self) -> list[tuple[Array, float]]:
        """Ends (2, 3) at the contacts [m] of the couplings that are drawn, and the couplings."""
        return [
            (np.array([self.contacts[i].centre, self.contacts[j].centre]), share)
            for (i, j), share in self.couplings.items()
            if share >= _FAINT
        ]


class DrawnRobot:
    """A robot on which matrices are drawn.

    Parameters
    ----------
    frames : by contact, (frame of the robot, pose of the contact in the frame).

    Attributes
    ----------
    size : largest extent of the robot in its neutral configuration [m].
    weight : weight of the moving bodies [N].
    """

    def __init__(self, robot: Robot, frames: Mapping[str, tuple[str, Transform]]) -> None:
        self._robot, self._skeleton = robot, Skeleton(robot)
        self.frames = dict(frames)
        self.weight = _GRAVITY * sum(body.inertia.mass for body in robot.bodies)
        self.size = size_of(self._skeleton.bones(self._skeleton.poses(robot.neutral())))

    @classmethod
    def of(cls, problem: Problem) -> DrawnRobot:
        """Return the robot of a problem, with the contacts that are at a frame."""
        frames = {c.name: (c.frame, c.placement) for c in problem.contacts if c.ends}
        return cls(problem.robot, frames)

    def poses(self, q: Array) -> Array:
        """Return the pose (bodies, 4, 4) of each body in the root link at q (nq,)."""
        return self._skeleton.poses(q)

    def frame(self, poses: Array, name: str) -> Array:
        """Return the pose (4, 4) of a frame in the root link, from the poses of bodies."""
        return self._skeleton.frame(poses, name)

    def move(self, contact: str, placement: Transform) -> None:
        """Set the pose of a contact in its frame."""
        self.frames[contact] = self.frames[contact][0], placement

    def pose(self, poses: Array, contact: str) -> Array:
        """Return the pose (4, 4) of a contact in the root link, from the poses of bodies."""
        frame, placement = self.frames[contact]
        found: Array = self._skeleton.frame(poses, frame) @ homogeneous(placement)
        return found

    def scene(
        self,
        positions: Mapping[str, float] | Array,
        contacts: tuple[str, ...],
        row_offsets: tuple[int, ...],
        kinds: tuple[str, ...],
        G: Array,
        world: Array | None = None,
    ) -> Scene:
        """Return the drawn objects of a matrix.

        Parameters
        ----------
        positions : positions of joints by name [rad, m], or all positions (nq,).
        contacts, row_offsets, kinds : contacts of the matrix, as in DelassusMatrix.
        G : (m, m).
        world : (3, 3) world axes as columns in the root link, for rows along world axes; None
            for rows in contact axes.

        Raises
        ------
        InputError
            If a contact is unknown, or its block is not finite.
        """
        poses, untold = self._poses(positions)
        placed, rows = [], []
        for i, block in linear_blocks(G, row_offsets, kinds).items():
            if contacts[i] not in self.frames:
                raise InputError(unknown("contact", contacts[i], self.frames))
            pose = self.pose(poses, contacts[i])
            mass = EffectiveMass.of(G[block, block])
            axes = pose[:3, :3] if world is None else world
            placed.append(Placed(contacts[i], pose[:3, 3], mass, axes @ mass.directions))
            rows.append(block)
        couplings = {
            (i, j): coupling(placed[i].mass, placed[j].mass, G[rows[i], rows[j]])
            for i in range(len(rows))
            for j in range(i)
        }
        return Scene(placed, couplings, untold, G, contacts, row_offsets)

    def forces(
        self,
        positions: Mapping[str, float] | Array,
        contacts: tuple[str, ...],
        row_offsets: tuple[int, ...],
        forces: Array,
        friction: Array,
        normals: Array,
        world: Array | None = None,
    ) -> list[PlacedForce]:
        """Return contact forces on the robot.

        Parameters
        ----------
        positions, world : as for :meth:`scene`.
        contacts, row_offsets, forces, friction, normals : as in ContactDynamics.
        """
        poses, _ = self._poses(positions)
        found = []
        for k, contact in enumerate(contacts):
            if contact not in self.frames:
                raise InputError(unknown("contact", contact, self.frames))
            pose = self.pose(poses, contact)
            axes = pose[:3, :3] if world is None else world
            wrench = forces[row_offsets[k] : row_offsets[k + 1]]
            found.append(
                PlacedForce.of(contact, pose, axes, wrench, normals[k], float(friction[k]))
            )
        return found

    def _poses(self, positions: Mapping[str, float] | Array) -> tuple[Array, list[str]]:
        """Return the poses of bodies, and the names of joints with unknown position."""
        if not isinstance(positions, Mapping):
            return self._skeleton.poses(positions), []
        q, unknown = completed(self._robot, positions)
        return self._skeleton.poses(q), unknown


def coupling_colour(share: float) -> tuple[int, int, int]:
    """Return the colour of a coupling, from grey for 0 to :data:`BLUE` for 1."""
    red, green, blue = (int(c + (225 - c) * (1.0 - share)) for c in BLUE)
    return red, green, blue


def quaternion_of(rotation: Array) -> Array:
    """Return the unit quaternion x, y, z, w of a rotation matrix."""
    return Transform(rotation, np.zeros(3)).quaternion()
