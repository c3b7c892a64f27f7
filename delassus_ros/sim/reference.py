"""The Delassus matrix by MuJoCo: ``mj_jac`` and a solve with MuJoCo's mass matrix."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import mujoco
import numpy as np
import numpy.typing as npt

from delassus.errors import ContactError, InputError, unknown

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


class MujocoReference:
    """G = J M⁻¹ Jᵀ for point contacts at frames of a MuJoCo model, in contact axes.

    The computation has separate data, so that a running simulation is not disturbed.

    Parameters
    ----------
    model
        A compiled model with its fixed bodies (``fusestatic`` off), which are the frames.
    frames
        Names of bodies; rows are in this order, with x, y, z per frame.
    velocity_map
        For a robot with closed loops: function from data with kinematics to E (nv, n),
        independent velocities → all velocities.

    Raises
    ------
    ContactError
        If a frame is not a body of the model.
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
        """Compute the matrix (3k, 3k) of all frames [1/kg], symmetric up to rounding.

        The matrix of a subset of frames is a sub-block.

        Parameters
        ----------
        qpos
            MuJoCo's generalised positions, (model.nq,).

        Raises
        ------
        InputError
            If `qpos` has another size, or an entry that is not finite.
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
        """Return J E (Eᵀ M E)⁻¹ Eᵀ Jᵀ, the matrix of a robot with motions E ẏ only."""
        # M column by column, as the signature of mj_fullM differs between versions of MuJoCo.
        columns = np.ascontiguousarray(E.T)
        weighted = np.zeros_like(columns)
        for column, out in zip(columns, weighted, strict=True):
            mujoco.mj_mulM(self._model, self._data, out, column)
        J = self._jacobian @ E
        matrix: FloatArray = J @ np.linalg.solve(weighted @ E, J.T)
        return matrix
