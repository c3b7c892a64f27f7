"""Feet of a simulated robot: forces of the floor on the feet, and contact states."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import mujoco
import numpy as np

from delassus.errors import ContactError, unknown
from delassus_ros.sim.gait import TouchFilter
from delassus_ros.sim.reference import FloatArray

_DEPTH = {int(mujoco.mjtGeom.mjGEOM_SPHERE): 0, int(mujoco.mjtGeom.mjGEOM_BOX): 2}
"""Per shape of a foot, the index of the size entry from the foot's centre to the floor."""


class Feet:
    """Shapes that touch the floor, one per contact.

    Parameters
    ----------
    frames : links with one sphere, or with one box whose z axis points up where the robot stands.

    Attributes
    ----------
    geoms : geoms of the feet, in the order of the frames.
    filters : filters of the contact states, in the order of the frames.

    Raises
    ------
    ContactError
        For a frame that is not such a link.
    """

    def __init__(self, model: mujoco.MjModel, frames: Iterable[str]) -> None:
        self._model = model
        self.geoms = [self._geom(frame) for frame in frames]
        # From the centre of a foot down to its contact point.
        self._depths = [
            float(model.geom_size[geom, _DEPTH[kind]])
            for geom, kind in zip(self.geoms, model.geom_type[self.geoms], strict=True)
        ]
        self.filters = [TouchFilter() for _ in self.geoms]

    def _geom(self, frame: str) -> int:
        """Return the geom of a foot."""
        model = self._model
        names = [model.body(i).name for i in range(model.nbody)]
        if frame not in names:
            raise ContactError(unknown("link", frame, names[1:]))
        body = model.body(frame)
        first, count = int(body.geomadr[0]), int(body.geomnum[0])
        touching = [geom for geom in range(first, first + count) if model.geom_contype[geom]]
        if len(touching) != 1 or model.geom_type[touching[0]] not in _DEPTH:
            raise ContactError(
                f"link {frame!r} has {len(touching)} shapes that collide; a foot has one, a "
                "sphere or a box"
            )
        return touching[0]

    def lowest(self, data: mujoco.MjData) -> float:
        """Return the height of the lowest point of all feet [m]."""
        return min(
            float(data.geom_xpos[geom, 2]) - depth
            for geom, depth in zip(self.geoms, self._depths, strict=True)
        )

    def wrenches(self, data: mujoco.MjData) -> FloatArray:
        """Return forces and moments of all contacts of the feet (k, 6), in the world's axes.

        Linear first, about the origins of the links that the feet belong to [N], [N m].
        """
        return contact_wrenches(self._model, data, self.geoms)

    def update(self, data: mujoco.MjData) -> FloatArray:
        """Update the contact states from the contacts of the last substep; return the wrenches."""
        velocity, wrenches = np.zeros(6), self.wrenches(data)
        forces = wrenches[:, 2].tolist()
        for geom, depth, force, touch in zip(
            self.geoms, self._depths, forces, self.filters, strict=True
        ):
            speed = 0.0
            if force > 0.0:
                kind = mujoco.mjtObj.mjOBJ_GEOM
                mujoco.mj_objectVelocity(self._model, data, kind, geom, velocity, 0)
                # Velocity of the contact point: v + ω × (0, 0, -depth).
                wx, wy, _, vx, vy, _ = velocity.tolist()
                speed = math.hypot(vx - depth * wy, vy + depth * wx)
            touch.update(force, speed)
        return wrenches


def contact_wrenches(
    model: mujoco.MjModel, data: mujoco.MjData, geoms: Sequence[int]
) -> FloatArray:
    """Return forces and moments (k, 6) of all contacts on geoms, along the world's axes.

    Linear first, about the origins of the links that the geoms belong to [N], [N m].
    """
    wrenches, wrench, turned = np.zeros((len(geoms), 6)), np.zeros(6), np.zeros(3)
    place = {geom: k for k, geom in enumerate(geoms)}
    # As arrays: one object per contact would dominate the time.
    pairs, axes = data.contact.geom.tolist(), data.contact.frame.reshape(-1, 3, 3)
    places = data.contact.pos
    for i, pair in enumerate(pairs):
        # MuJoCo returns the force on the second geom of a contact, in axes of the contact.
        for geom, sign in zip(pair, (-1.0, 1.0), strict=True):
            if geom in place:
                mujoco.mj_contactForce(model, data, i, wrench)
                force, moment = (sign * (part @ axes[i]) for part in (wrench[:3], wrench[3:]))
                mujoco.mju_cross(turned, places[i] - data.xpos[model.geom_bodyid[geom]], force)
                wrenches[place[geom], :3] += force
                wrenches[place[geom], 3:] += moment + turned
    return wrenches
