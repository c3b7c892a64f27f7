"""Contact forces in their friction cones: shares of the cone, places on the robot, surfaces."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from delassus.model.spatial import Array, rotation_between

BOUNDARY = 0.999
"""Share of its cone from which a force counts as sliding: the solve is exact to 1e-6."""


@dataclass(frozen=True)
class ForceInCone:
    """Force of a contact, split along its normal.

    Attributes
    ----------
    normal : part along the normal [N].
    sideways : norm of the part across the normal [N].
    share : share of the largest sideways force that friction allows; NaN without normal force.
    """

    normal: float
    sideways: float
    share: float

    @property
    def slides(self) -> bool:
        """Whether the force is at the boundary of its cone."""
        return self.share >= BOUNDARY

    @classmethod
    def of(cls, force: Array, normal: Array, friction: float) -> ForceInCone:
        """Return the parts of a force.

        Parameters
        ----------
        force, normal : (3,) force [N] and unit normal in the same axes.
        friction : coefficient of friction.
        """
        pushes = float(force @ normal)
        sideways = float(np.linalg.norm(force - pushes * normal))
        if not pushes > 0.0:
            share = np.nan
        elif friction > 0.0:
            share = sideways / (friction * pushes)
        else:
            # A contact without friction has no cone but its normal, and always slides.
            share = 1.0
        return cls(pushes, sideways, share)


@dataclass(frozen=True)
class PlacedForce:
    """Contact force on the robot, in the axes of the root link.

    Attributes
    ----------
    point : (3,) contact, of a surface its centre of pressure [m].
    force, normal : (3,) force [N] and unit normal.
    parts : force along the normal and sideways, and share of the cone.
    """

    contact: str
    point: Array
    force: Array
    normal: Array
    friction: float
    parts: ForceInCone

    @property
    def upright(self) -> Array:
        """Rotation (3, 3) of a cone about z into the friction cone."""
        return rotation_between((0.0, 0.0, 1.0), self.normal)

    @classmethod
    def of(
        cls, contact: str, pose: Array, axes: Array, wrench: Array, normal: Array, friction: float
    ) -> PlacedForce:
        """Return the force of a contact.

        Parameters
        ----------
        pose : (4, 4) pose of the contact in the root link.
        axes : (3, 3) axes of the rows as columns, in the root link.
        wrench : (3,) or (6,) force and moment along the rows [N, N m].
        normal : (3,) unit normal along the rows.
        """
        force = wrench[:3]
        return cls(
            contact, pose[:3, 3] + axes @ pressure(wrench), axes @ force, axes @ normal, friction,
            ForceInCone.of(force, normal, friction),
        )  # fmt: skip


def force_scale(size: float, forces: Iterable[Array]) -> float:
    """Return the length per force [m/N] by which the largest one is a fifth of the robot's size.

    Without a force above 0 N the length is 0.

    Parameters
    ----------
    size : size of the robot [m].
    forces : (3,) each [N].
    """
    largest = max((float(np.linalg.norm(force)) for force in forces), default=0.0)
    return size / (5.0 * largest) if largest else 0.0


def pressure(wrench: Array) -> Array:
    """Return the centre of pressure (3,) of a wrench in the plane z = 0 of its axes [m].

    The origin for a force alone, (3,), and for a surface that does not push.
    """
    found = np.zeros(3)
    if len(wrench) == 6 and wrench[2] > 0.0:
        found[:2] = -wrench[4] / wrench[2], wrench[3] / wrench[2]
    return found


def cone_surface(height: float, friction: float) -> tuple[Array, NDArray[np.int64]]:
    """Return vertices (n, 3) and triangles (k, 3) of a cone about z with its tip at the origin."""
    count = 32
    around = np.linspace(0.0, 2.0 * np.pi, count, endpoint=False)
    rim = height * np.stack(
        [friction * np.cos(around), friction * np.sin(around), np.ones(count)], axis=1
    )
    k = np.arange(count)
    faces = np.stack([np.zeros(count, dtype=int), 1 + k, 1 + (k + 1) % count], axis=1)
    return np.concatenate([np.zeros((1, 3)), rim]), faces
