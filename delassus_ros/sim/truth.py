"""What only a simulator knows for certain: base state, joint torques and contact forces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import mujoco
import numpy as np
import numpy.typing as npt

from delassus_ros.sim.reference import FloatArray

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Truth:
    """State and forces of one instant; all belong to the same joint positions.

    Attributes
    ----------
    position
        The base's origin in the world, (3,), m.
    orientation
        The base in the world, (4,), quaternion x, y, z, w.
    twist
        Velocity of the base in its own axes, (6,): linear, then angular, m/s and rad/s.
    effort
        Joint torques, (n,), Nm, in the order of the simulation's joints.
    forces
        Force of the floor on each foot, (k, 3), N, in world axes; zero in the air.
    """

    position: FloatArray
    orientation: FloatArray
    twist: FloatArray
    effort: FloatArray
    forces: FloatArray


class TruthProbe:
    """Read the truth off a running simulation without disturbing it.

    After a step, MuJoCo's data hold the positions of its end, but torques and forces of its
    beginning; they are computed anew here, for the end.

    Parameters
    ----------
    model
        The compiled model; its first joint is the free one of the base.
    dofs
        Degrees of freedom of the measured joints.
    feet
        Geoms of the feet, in the order of the contacts.
    """

    def __init__(self, model: mujoco.MjModel, dofs: IntArray, feet: Sequence[int]) -> None:
        self._model = model
        self._data = mujoco.MjData(model)
        self._dofs = dofs
        self._feet = list(feet)
        self._wrench = np.zeros(6)

    def read(self, simulated: mujoco.MjData) -> Truth:
        """Return the truth at the present state, under the present command of the servos."""
        model, data = self._model, self._data
        for name in ("qpos", "qvel", "ctrl", "qacc_warmstart"):
            getattr(data, name)[:] = getattr(simulated, name)
        mujoco.mj_forward(model, data)
        w, x, y, z = data.qpos[3:7].tolist()
        # The free joint's linear velocity is along the axes of the world, the angular one's of
        # the base.
        rotation = data.xmat[model.jnt_bodyid[0]].reshape(3, 3)
        return Truth(
            position=data.qpos[:3].copy(),
            orientation=np.array([x, y, z, w]),
            twist=np.concatenate([rotation.T @ data.qvel[:3], data.qvel[3:6]]),
            effort=data.qfrc_actuator[self._dofs],
            forces=self._forces(),
        )

    def _forces(self) -> FloatArray:
        forces = np.zeros((len(self._feet), 3))
        for i, contact in enumerate(self._data.contact):
            # MuJoCo gives the force on the second of the two geoms, in axes of the contact.
            for geom, sign in zip(contact.geom.tolist(), (-1.0, 1.0), strict=True):
                if geom in self._feet:
                    mujoco.mj_contactForce(self._model, self._data, i, self._wrench)
                    axes = contact.frame.reshape(3, 3)
                    forces[self._feet.index(geom)] += sign * (axes.T @ self._wrench[:3])
        return forces
