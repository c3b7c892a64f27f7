"""How the feet move, and how they would accelerate if nothing touched: Pinocchio's part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pinocchio as pin

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class RobotState:
    """Measurements of a state estimator and the joints' sensors at one instant.

    Attributes
    ----------
    position : (3,) origin of the base in the world, m.
    orientation : (4,) of the base in the world, quaternion x, y, z, w.
    twist : (6,) of the base in its own axes, linear then angular, m/s and rad/s.
    q, velocity, effort : (n,) of the joints, rad, rad/s and Nm.
    """

    position: FloatArray
    orientation: FloatArray
    twist: FloatArray
    q: FloatArray
    velocity: FloatArray
    effort: FloatArray


@dataclass(frozen=True)
class FootMotion:
    """Motion of a foot frame; the spatial vectors are rows of the node's 6-row contacts.

    They are linear first, then angular, at the origin and in the axes of the frame.

    Attributes
    ----------
    rotation : (3, 3) axes of the frame in the world.
    position : (3,) of the frame in the world, m.
    velocity : (6,).
    free_acceleration : (6,) without contact forces: of the origin (classical), and angular.
    free_acceleration_of_joints : (6,) the part J q̈ of it, without J̇ q̇.
    """

    rotation: FloatArray
    position: FloatArray
    velocity: FloatArray
    free_acceleration: FloatArray
    free_acceleration_of_joints: FloatArray


class FreeMotion:
    """Motion of the feet from the robot's description and state.

    Parameters
    ----------
    urdf : text of the robot description, of a robot with a floating base.
    joints : names of the joints, in the order of the state's vectors.
    frames : names of the foot frames.

    Raises
    ------
    ValueError
        A joint or a frame is not in the description.
    """

    def __init__(self, urdf: str, joints: Sequence[str], frames: Sequence[str]) -> None:
        self._model = pin.buildModelFromXML(urdf, pin.JointModelFreeFlyer())
        self._data = self._model.createData()
        own = self._model.names[2:]
        if sorted(joints) != sorted(own):
            raise ValueError(f"joints {sorted(joints)}; the description has {sorted(own)}")
        for frame in frames:
            if not self._model.existFrame(frame):
                raise ValueError(f"no frame {frame!r} in the robot description")
        self._frames = [self._model.getFrameId(frame) for frame in frames]
        moved = [self._model.joints[self._model.getJointId(name)] for name in joints]
        self._q = [joint.idx_q for joint in moved]
        self._v = [joint.idx_v for joint in moved]

    def feet(self, state: RobotState) -> list[FootMotion]:
        """Return the motion of every foot frame."""
        model, data = self._model, self._data
        q, v, tau = np.zeros(model.nq), np.zeros(model.nv), np.zeros(model.nv)
        q[:3], q[3:7], q[self._q] = state.position, state.orientation, state.q
        v[:6], v[self._v] = state.twist, state.velocity
        tau[self._v] = state.effort
        acceleration = pin.aba(model, data, q, v, tau).copy()
        pin.forwardKinematics(model, data, q, v, acceleration)
        pin.computeJointJacobians(model, data, q)
        pin.updateFramePlacements(model, data)
        # J q̈ depends on the coordinates. MuJoCo's has the base's linear velocity along the axes
        # of the world, whose derivative is v̇ + ω × v in Pinocchio's, along those of the base.
        in_mujoco = acceleration.copy()
        in_mujoco[:3] += np.cross(v[3:6], v[:3])
        return [self._foot(frame, in_mujoco) for frame in self._frames]

    def _foot(self, frame: int, acceleration: FloatArray) -> FootMotion:
        model, data = self._model, self._data
        placement = data.oMf[frame]
        free = pin.getFrameClassicalAcceleration(model, data, frame, pin.LOCAL)
        return FootMotion(
            rotation=placement.rotation.copy(),
            position=placement.translation.copy(),
            velocity=pin.getFrameVelocity(model, data, frame, pin.LOCAL).vector.copy(),
            free_acceleration=free.vector.copy(),
            free_acceleration_of_joints=pin.getFrameJacobian(model, data, frame, pin.LOCAL)
            @ acceleration,
        )

    def inverse_masses(self) -> FloatArray:
        """Return how light each foot is with all joints at zero, (k,), 1/kg.

        The mean over the three directions; MuJoCo calls it ``body_invweight0``.
        """
        model, data = self._model, self._data
        q = pin.neutral(model)
        M = pin.crba(model, data, q)
        M = np.triu(M) + np.triu(M, 1).T
        pin.computeJointJacobians(model, data, q)
        pin.updateFramePlacements(model, data)
        masses = []
        for frame in self._frames:
            J = pin.getFrameJacobian(model, data, frame, pin.LOCAL)[:3]
            masses.append(np.trace(J @ np.linalg.solve(M, J.T)) / 3.0)
        return np.array(masses)
