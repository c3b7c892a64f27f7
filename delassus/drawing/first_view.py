"""The camera of the first picture of a robot: beside the panel, and on phones above the panel."""

from __future__ import annotations

import numpy as np

from delassus.model.spatial import Array

BACK, _UP = np.array([0.8, -0.48, 0.36]), np.array([0.0, 0.0, 1.0])
"""Unit vector from the robot to the camera at first, and upwards."""
_DISTANCE, _ASIDE = 2.0, 0.5
"""Distance of the camera from the robot, and shift of the robot from the middle of the page to the
left, where no panel is, as shares of half the diagonal of the robot's bounding box."""
NARROW = 576
"""Largest width of pages whose panel is at the bottom [pixels], by viser."""
_PANEL = 0.6
"""Height of that panel as a share of the page's."""
_MARGIN = 1.4
"""Size of the shown part around a robot above the panel, for ellipsoids and names."""


def picture_plane() -> tuple[Array, Array]:
    """Return the directions (3,) to the right and up in the first picture, in the root link."""
    right = np.cross(_UP, BACK)
    up = np.cross(BACK, right)
    return right / np.linalg.norm(right), up / np.linalg.norm(up)


class FirstView:
    """Cameras that show a robot.

    Parameters
    ----------
    points : (n, 3) outermost points of the robot in the world [m].
    """

    def __init__(self, points: Array) -> None:
        low, high = points.min(axis=0), points.max(axis=0)
        self._centre = 0.5 * (low + high)
        self._radius = 0.5 * float(np.linalg.norm(high - low)) or 0.5
        seen = (points - self._centre) @ np.column_stack([*picture_plane(), BACK])
        self._halves = np.abs(seen).max(axis=0)

    def beside_panel(self) -> tuple[Array, Array]:
        """Return the point that the camera looks at, and the place of the camera (3,) [m]."""
        right, _ = picture_plane()
        at = self._centre + _ASIDE * self._radius * right
        return at, at + _DISTANCE * self._radius * BACK

    def above_panel(self, aspect: float, fov: float) -> tuple[Array, Array]:
        """Return the same of a narrow page, the lower part of which the panel covers.

        Parameters
        ----------
        aspect, fov : width of the page by its height, and vertical field of view [rad].
        """
        wide, high, deep = self._halves
        # Half the height of the picture at the robot: the free part has the share 1 - _PANEL.
        half = _MARGIN * max(high / (1.0 - _PANEL), wide / aspect, 0.1 * self._radius)
        _, up = picture_plane()
        at = self._centre - _PANEL * half * up
        return at, at + (half / np.tan(0.5 * fov) + deep) * BACK
