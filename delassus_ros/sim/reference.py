"""What a simulator knows for certain: the matrix from MuJoCo itself, base state, torques, forces.

The matrix is that of ``mj_jac`` and a solve with MuJoCo's mass matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import mujoco
import numpy as np
import numpy.typing as npt

from delassus_ros.errors import ContactError, InputError, unknown

FloatArray = npt.NDArray[np.float64]


class MujocoReference:
    """G = J M⁻¹ Jᵀ for point contacts at frames of a MuJoCo model, in contact axes.

    Works on data of its own, so it does not disturb a running simulation.

    Parameters
    ----------
    model
        A compiled model that keeps its fixed bodies (``fusestatic`` off): they are the frames.
    frames
        Names of bodies; rows come in this order, x, y, z of the frame for each.
    velocity_map
        For a robot with closed loops: from data with kinematics to E (nv, n), independent
        velocities → all.

    Raises
    ------
    ContactError
        A frame is not a body of the model.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        frames: Sequence[str],
        velocity_map: Callable[[mujoco.MjData], FloatArray] | None = None,
    ) -> None:
        bodies = [model.body(i).name for i in range(model.nbody)]
        for frame in frames:
            if frame not in bodies:
                raise ContactError(unknown("frame", frame, bodies))
        self.frames = tuple(frames)
        self._model = model
        self._data = mujoco.MjData(model)
        self._bodies = [bodies.index(frame) for frame in frames]
        self._in_world = np.zeros((3, model.nv))
        self._jacobian = np.zeros((3 * len(self._bodies), model.nv))
        self._solved = np.zeros_like(self._jacobian)
        self._velocity_map = velocity_map

    def matrix(self, qpos: FloatArray) -> FloatArray:
        """Compute the matrix of all frames; that of a subset is its sub-block.

        Parameters
        ----------
        qpos
            MuJoCo's generalised positions, (model.nq,).

        Returns
        -------
        ndarray
            (3k, 3k), 1/kg, symmetric up to rounding.

        Raises
        ------
        InputError
            `qpos` has another size, or an entry that is not finite.
        """
        model, data = self._model, self._data
        if qpos.shape != (model.nq,):
            raise InputError(f"qpos has shape {qpos.shape}; expected ({model.nq},)")
        if not np.isfinite(qpos).all():
            raise InputError(f"qpos has an entry that is not finite: {qpos}")
        data.qpos[:] = qpos
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_crb(model, data)
        mujoco.mj_factorM(model, data)
        for i, body in enumerate(self._bodies):
            mujoco.mj_jac(model, data, self._in_world, None, data.xpos[body], body)
            rotation = data.xmat[body].reshape(3, 3)
            np.matmul(rotation.T, self._in_world, out=self._jacobian[3 * i : 3 * i + 3])
        if self._velocity_map is not None:
            return self._constrained(self._velocity_map(data))
        mujoco.mj_solveM(model, data, self._solved, self._jacobian)
        matrix: FloatArray = self._jacobian @ self._solved.T
        return matrix

    def _constrained(self, E: FloatArray) -> FloatArray:
        """Return J E (Eᵀ M E)⁻¹ Eᵀ Jᵀ, the matrix of a robot that can move along E only."""
        # Column by column, as the signature of mj_fullM changed between versions.
        columns = np.ascontiguousarray(E.T)
        weighted = np.zeros_like(columns)
        for column, out in zip(columns, weighted, strict=True):
            mujoco.mj_mulM(self._model, self._data, out, column)
        J = self._jacobian @ E
        matrix: FloatArray = J @ np.linalg.solve(weighted @ E, J.T)
        return matrix


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
            forces=contact_forces(model, data, self._feet),
        )


def contact_forces(model: mujoco.MjModel, data: mujoco.MjData, geoms: Sequence[int]) -> FloatArray:
    """Return the forces (k, 3) of all contacts on some geoms, along the axes of the world [N]."""
    return contact_wrenches(model, data, geoms)[:, :3]


def contact_wrenches(
    model: mujoco.MjModel, data: mujoco.MjData, geoms: Sequence[int]
) -> FloatArray:
    """Return forces and moments (k, 6) of all contacts on some geoms, along the world's axes.

    Linear first, about the origins of the links that the geoms belong to [N], [N m].
    """
    wrenches, wrench, turned = np.zeros((len(geoms), 6)), np.zeros(6), np.zeros(3)
    place = {geom: k for k, geom in enumerate(geoms)}
    # As arrays: an object for each contact takes longer than all else.
    pairs, axes = data.contact.geom.tolist(), data.contact.frame.reshape(-1, 3, 3)
    places = data.contact.pos
    for i, pair in enumerate(pairs):
        # MuJoCo gives the force on the second of the two geoms, in axes of the contact.
        for geom, sign in zip(pair, (-1.0, 1.0), strict=True):
            if geom in place:
                mujoco.mj_contactForce(model, data, i, wrench)
                force, moment = (sign * (part @ axes[i]) for part in (wrench[:3], wrench[3:]))
                mujoco.mju_cross(turned, places[i] - data.xpos[model.geom_bodyid[geom]], force)
                wrenches[place[geom], :3] += force
                wrenches[place[geom], 3:] += moment + turned
    return wrenches
