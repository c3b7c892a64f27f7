"""A contact of a page that the user drags with the mouse; its joints follow."""

from __future__ import annotations

import html
import threading
from collections.abc import Callable, Mapping

import numpy as np
import viser

from delassus.drawing.panel import small
from delassus.drawing.reach import Reach
from delassus.drawing.robot_meshes import ROOT
from delassus.drawing.scene import quaternion_of
from delassus.errors import DelassusError
from delassus.model.spatial import Array, rotation_from_quaternion
from delassus.problem import Problem

_NONE = "none"
_SCALE = 0.18
"""Length of the arrows of the gizmo as a share of the robot's size."""


class ContactDrag:
    """A drop-down list of contacts, and a gizmo of viser at the chosen one.

    Points are moved along the axes of the root link, surfaces are moved and turned along and about
    their own. Contacts that move on their links, as those of wheels, and contacts of some
    directions alone are not in the list.

    Parameters
    ----------
    size : size of the robot [m].
    reach : returns the inverse kinematics; called when the first contact is chosen.
    changed : set when the user has chosen or dragged a contact.

    Attributes
    ----------
    list : the drop-down list.
    is_dragged : whether the user holds the gizmo.
    """

    def __init__(
        self,
        server: viser.ViserServer,
        problem: Problem,
        size: float,
        reach: Callable[[], Reach],
        changed: threading.Event,
    ) -> None:
        self._scene, self._scale, self._make = server.scene, _SCALE * size, reach
        self._reach: Reach | None = None
        self._kinds = {
            contact.name: contact.kind_name
            for contact in problem.contacts
            if contact.ends and contact.moving == "nothing"
            and contact.kind_name in ("point", "surface")
        }  # fmt: skip
        self.list = server.gui.add_dropdown("drag a contact", (_NONE, *self._kinds))
        self._words = server.gui.add_html("")
        self._chosen = _NONE
        self._gizmo: viser.TransformControlsHandle | None = None
        self._changed, self._has_moved, self.is_dragged = changed, False, False
        self.list.on_update(lambda _: changed.set())

    def follow(self, positions: Mapping[str, float]) -> dict[str, float]:
        """Return the positions of joints that a drag asks for [rad, m]; empty without one.

        Parameters
        ----------
        positions : present positions of the joints by name [rad, m].
        """
        if self.list.value != self._chosen:
            self._choose(self.list.value)
        if self._gizmo is None or self._reach is None:
            return {}
        found = dict[str, float]()
        if self._has_moved:
            self._has_moved = False
            found = self._reach.moved(self._chosen, self._target(), positions)
        if not self.is_dragged:
            try:
                pose = self._reach.pose(self._chosen, {**positions, **found})
            except DelassusError:
                return found  # the page has the message of the loops
            self._gizmo.position = pose[:3, 3]
            if self._kinds[self._chosen] == "surface":
                self._gizmo.wxyz = np.roll(quaternion_of(pose[:3, :3]), 1)
        return found

    def _choose(self, name: str) -> None:
        """Put the gizmo at another contact."""
        self._chosen, self.is_dragged = name, False
        if self._gizmo is not None:
            self._gizmo.remove()
            self._gizmo = None
        if name == _NONE:
            return
        try:
            if self._reach is None:
                self._words.content = small("compiling the Jacobian …")
                self._reach = self._make()
        except DelassusError as error:
            self._words.content = small(html.escape(str(error)))
            self.list.value = self._chosen = _NONE
            return
        self._words.content = ""
        gizmo = self._scene.add_transform_controls(
            f"{ROOT}/drag", self._scale, disable_rotations=self._kinds[name] == "point",
            depth_test=False,
        )  # fmt: skip

        async def note(event: viser.TransformControlsEvent) -> None:
            # Callbacks without async are called in threads, and not in order.
            self.is_dragged = event.phase != "end"
            self._has_moved |= event.phase == "update"
            self._changed.set()

        gizmo.on_update(note)
        self._gizmo = gizmo

    def _target(self) -> Array:
        assert self._gizmo is not None
        target = np.eye(4)
        target[:3, :3] = rotation_from_quaternion(np.roll(self._gizmo.wxyz, -1))
        target[:3, 3] = self._gizmo.position
        return target
