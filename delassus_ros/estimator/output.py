"""The messages of the estimator."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
from delassus_msgs.msg import Estimate
from geometry_msgs.msg import Vector3, Wrench

from delassus.measured import SparseDynamics
from delassus.model.spatial import Array
from delassus_ros.inputs.findings import Findings
from delassus_ros.ros.arrival import write_stamp


class EstimateOutput:
    """Messages of an estimation.

    Parameters
    ----------
    joints : joints with independent rates, without a floating base.
    """

    def __init__(
        self, system: SparseDynamics, joints: Sequence[str], frames: Sequence[str]
    ) -> None:
        self.sequence = 0
        self._joints, self._frames = list(joints), list(frames)
        n, wrenches = len(self._joints), len(self._frames)
        values = n + 6 * wrenches
        self._torques, self._wrenches = slice(0, n), slice(n, values)
        # Variances are lower triangles by row: one number per torque, 21 numbers per wrench, which
        # become full 6 x 6 blocks.
        self._variances = slice(values, values + n)
        lower = np.zeros((6, 6), dtype=np.intp)
        lower[np.tril_indices(6)] = range(21)
        block = np.maximum(lower, lower.T).ravel()
        self._covariances = np.concatenate(
            [values + n + 21 * k + block for k in range(wrenches)] or [np.empty(0, np.intp)]
        )
        self._squared, self._redundant = system.squared_at, system.redundant

    def message(
        self, stamp: int, findings: Findings, numbers: Array | None, compute_time: float
    ) -> Estimate:
        """Return the message of an estimate.

        Parameters
        ----------
        stamp : stamp of the joint state [ns]; 0 if it has none.
        numbers : the estimate; None if INVALID.
        compute_time : time that the estimate took [s].
        """
        message = Estimate(
            sequence=self.sequence, validity=int(findings.validity),
            reasons=int(findings.reasons), text=findings.text,
        )  # fmt: skip
        self.sequence += 1
        write_stamp(message.header.stamp, stamp)
        if numbers is not None:
            self._fill(message, numbers)
            message.compute_time = compute_time
        return message

    def _fill(self, message: Estimate, numbers: Array) -> None:
        message.joints, message.frames = self._joints, self._frames
        message.torques = _array(numbers[self._torques])
        message.torque_variances = _array(numbers[self._variances])
        message.wrenches = [
            Wrench(force=Vector3(x=fx, y=fy, z=fz), torque=Vector3(x=mx, y=my, z=mz))
            for fx, fy, fz, mx, my, mz in numbers[self._wrenches].reshape(-1, 6).tolist()
        ]
        message.wrench_covariances = _array(numbers[self._covariances])
        message.squared, message.redundant = float(numbers[self._squared]), self._redundant


def _array(values: Array) -> array[float]:
    return array("d", values.tobytes())
