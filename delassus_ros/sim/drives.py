"""Drives of a simulated robot: actuators that turn commands, or a gait, into joint torques."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

import mujoco
import numpy as np

from delassus.errors import InputError
from delassus_ros.sim.reference import FloatArray, IntArray
from delassus_ros.sim.settings import STEP_S, PlantSettings

_SHARE_OF_DAMPING, _SHARE_OF_STIFFNESS = 0.5, 0.2
"""Shares of inertia / period and inertia / period² above which drives with one update per period
make a light link oscillate."""


class Joints:
    """The driven joints in MuJoCo's data.

    Parameters
    ----------
    names : names of the joints, with one degree of freedom per joint.

    Attributes
    ----------
    q, v : indices of the joints in MuJoCo's positions and velocities (n,).
    limits : largest torques by the description (n,) [N m].
    """

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData, names: Sequence[str]) -> None:
        self.model, self.data, self.names = model, data, tuple(names)
        numbers = [model.joint(name).id for name in names]
        self.q: IntArray = model.jnt_qposadr[numbers]
        self.v: IntArray = model.jnt_dofadr[numbers]
        self.limits: FloatArray = model.jnt_actfrcrange[numbers, 1]

    @property
    def positions(self) -> FloatArray:
        """Joint positions (n,) [rad]; a copy."""
        return np.array(self.data.qpos[self.q])

    @property
    def velocities(self) -> FloatArray:
        """Joint velocities (n,) [rad/s]; a copy."""
        return np.array(self.data.qvel[self.v])

    @property
    def torques(self) -> FloatArray:
        """Torques of the drives during the last substep (n,) [N m]; a copy."""
        return np.array(self.data.qfrc_actuator[self.v])


class Drives(ABC):
    """Actuators of the driven joints, and their inputs in every period."""

    takes_torques = False
    """Whether the drives obey :meth:`command`."""
    silent = False
    """Whether commands have stopped, so that the drives brake or hold."""

    @abstractmethod
    def add(self, spec: mujoco.MjSpec, joint: str) -> None:
        """Add the actuator of a joint to the description of the simulation."""

    @abstractmethod
    def start(self, joints: Joints, random: np.random.Generator) -> FloatArray | None:
        """Store the compiled robot in its first posture, with the base at the origin.

        The initial joint positions (n,) are returned [rad]; None stands for the posture's.
        """

    @abstractmethod
    def controls(self, time: float) -> FloatArray:
        """Return the values of the actuators (n,) for the period that begins at a time [s]."""

    @abstractmethod
    def end_period(self, time: float) -> None:
        """Note the state at the end of a period [s]."""

    def command(self, torques: Sequence[float] | FloatArray, time: float) -> None:
        """Command torques (n,) [N m] from a time [s] on.

        Raises
        ------
        InputError
            If the drives accept no torques, or `torques` are not n finite numbers.
        """
        raise InputError(f"drives of type {type(self).__name__} take no torques")


class TorqueDrives(Drives):
    """Drives that apply commanded torques, and brake or hold their joints without a command."""

    takes_torques = True

    def __init__(self, settings: PlantSettings) -> None:
        self._settings = settings
        self._commanded, self._time = -math.inf, 0.0

    def add(self, spec: mujoco.MjSpec, joint: str) -> None:
        """Add a motor."""
        spec.add_actuator(name=joint, target=joint).trntype = mujoco.mjtTrn.mjTRN_JOINT

    def start(self, joints: Joints, random: np.random.Generator) -> FloatArray | None:
        """Store the joints, and limit braking and holding gains by the inertia of the links."""
        settings, model = self._settings, joints.model
        self._joints, self._random = joints, random
        inertia = model.dof_M0[joints.v] + settings.armature
        self._braking = np.minimum(settings.braking, _SHARE_OF_DAMPING * inertia / STEP_S)
        self._holding = np.minimum(settings.holding, _SHARE_OF_STIFFNESS * inertia / STEP_S**2)
        self._command = np.zeros(len(joints.names))
        self._held = joints.positions
        self._limits = settings.torque_limit * joints.limits
        return None

    @property
    def silent(self) -> bool:  # type: ignore[override]
        """Whether commands have stopped, so that the drives brake or hold their joints."""
        return self._time - self._commanded > self._settings.silence

    def command(self, torques: Sequence[float] | FloatArray, time: float) -> None:
        """Command torques; after a refusal the previous command stays in force."""
        values = np.asarray(torques, dtype=np.float64)
        if values.shape != self._command.shape or not np.isfinite(values).all():
            raise InputError(
                f"torques are {values.tolist()}; expected {len(self._command)} finite numbers"
            )
        self._command[:] = values
        self._commanded = time

    def controls(self, time: float) -> FloatArray:
        """Return the torques within their limits (n,) [N m]."""
        self._time = time
        return np.clip(self._torques(), -self._limits, self._limits)

    def _torques(self) -> FloatArray:
        settings, joints = self._settings, self._joints
        if self.silent:
            torques = -self._braking * joints.velocities
            # Before the first command they keep the robot on its feet.
            if settings.on_silence == "hold" or self._commanded == -math.inf:
                # With the torques that carried the robot until then.
                torques += self._command + self._holding * (self._held - joints.positions)
            return np.asarray(torques)
        noise = settings.torque_noise * self._random.normal(size=len(self._command))
        return np.asarray(self._command + noise)

    def end_period(self, time: float) -> None:
        """Store the joint positions, to be held once commands stop."""
        self._time = time
        if not self.silent:
            self._held = self._joints.positions
