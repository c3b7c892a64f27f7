"""Wheels: the lowest point of a wheel, which moves on the wheel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from delassus.contacts import Contact
from delassus.model.robot import Robot
from delassus.model.spatial import Array, Transform

_STEEP = 0.5
"""Largest part of the vertical along the axle of a wheel that stands."""


class Wheel:
    """A body that turns about its axle, seen from a frame on it.

    Parameters
    ----------
    frame : name of a frame on the wheel.
    """

    def __init__(self, robot: Robot, frame: str) -> None:
        placed = robot.frames[frame]
        self._axle: Array = placed.placement.rotation.T @ robot.joints[placed.body].axis
        self._origin = placed.placement.inverse().translation

    def across(self) -> Array:
        """Return unit vectors (4, 3) in the frame, across the axle."""
        start = np.eye(3)[int(np.argmin(np.abs(self._axle)))]
        first = np.cross(self._axle, start)
        first = first / np.linalg.norm(first)
        second = np.cross(self._axle, first)
        return np.array([first, second, -first, -second])

    def measured(self, points: Array) -> tuple[float, float]:
        """Return the radius of points (n, 3), and the place of their middle on the axle [m]."""
        along = (points - self._origin) @ self._axle
        radial = points - self._origin - np.outer(along, self._axle)
        radius = float(np.linalg.norm(radial, axis=1).max())
        return radius, float(0.5 * (along.min() + along.max()))

    def stands(self, pose: Array) -> bool:
        """Return whether the axle is about level at a pose (4, 4) of the frame."""
        return abs(float(pose[2, :3] @ self._axle)) <= _STEEP

    def lowest(self, pose: Array, radius: float, middle: float) -> Transform:
        """Return the lowest point in the frame, z upwards and x along the way of the wheel.

        Parameters
        ----------
        pose : (4, 4) of the frame in the root link, whose z axis points upwards.
        radius, middle : as :meth:`measured` returns them [m].
        """
        up = pose[2, :3]
        spoke = up - (up @ self._axle) * self._axle
        spoke = spoke / np.linalg.norm(spoke)
        x = np.cross(self._axle, up)
        x = x / np.linalg.norm(x)
        place = self._origin + middle * self._axle - radius * spoke
        return Transform(np.column_stack([x, np.cross(up, x), up]), place)


def lowest_points(
    robot: Robot, contacts: Iterable[Contact], poses: Mapping[str, Array]
) -> dict[str, Transform]:
    """Return the placements of the contacts of wheels, by name, at the poses of their frames.

    Parameters
    ----------
    contacts : those with a pose that moves are of wheels; the radius is that of their placement.
    poses : (4, 4) of the frames of contacts in the root link, by name of the frame.
    """
    found = {}
    for contact in contacts:
        if contact.moving == "pose":
            wheel = Wheel(robot, contact.frame)
            radius, middle = wheel.measured(contact.placement.translation[np.newaxis])
            found[contact.name] = wheel.lowest(poses[contact.frame], radius, middle)
    return found
