"""The demo quadrupeds with servos: a cycle of standing, leaning and steps."""

from __future__ import annotations

import math

import mujoco
import numpy as np

from delassus.robots.built_in import demo_urdf
from delassus_ros.sim.drives import Drives, Joints
from delassus_ros.sim.gait import LEGS, Gait, LegGeometry, Stance, stepping_cycle
from delassus_ros.sim.plant import Plant
from delassus_ros.sim.reference import FloatArray

FEET = {leg: f"{leg}_FOOT" for leg in LEGS}
"""Frames of the contacts; contacts are named after their legs."""
POSTURE = {
    f"{leg}_{joint}": angle
    for leg in LEGS
    for joint, angle in (("HAA", 0.0), ("HFE", 0.7), ("KFE", -1.4))
}
"""Joint positions in which the foot frames are level [rad]."""
_HELD = 4  # periods [1 ms] for which the servos keep their targets: the gait runs at 250 Hz
_CRANK = "LIFT_CRANK"
_STIFFNESS, _DAMPING = 500.0, 10.0  # of the servos in the legs [N m/rad], [N m s/rad]
_CRANK_STIFFNESS, _CRANK_DAMPING = 50.0, 1.0  # of the servo in the crank of a lift
_CRANK_SWING = 0.4  # rad
_CRANK_SPEED = 2.0  # rad/s of the phase
_SINGULAR = 1e-6  # regularization of the load balance, singular for two feet


def stepping_quadruped(robot: str = "quadruped") -> Plant:
    """Return a demo robot on its floor that steps by a fixed gait; runs are repeatable.

    The joints are those of the legs LF, RF, LH, RH, in the order HAA, HFE, KFE, then the crank of
    a lift. Rotors and the other joints of the lift follow from these joints.

    Parameters
    ----------
    robot
        A name of `delassus.robots.built_in.ROBOTS`.
    """
    return Plant(demo_urdf(robot), FEET, POSTURE, drives=GaitDrives())


class GaitDrives(Drives):
    """Servos that follow a cycle of steps; the crank of a lift swings meanwhile."""

    def __init__(self) -> None:
        self._periods = 0

    def add(self, spec: mujoco.MjSpec, joint: str) -> None:
        """Add a servo with the effort limit of the description."""
        servo = spec.add_actuator(name=joint, target=joint)
        servo.trntype = mujoco.mjtTrn.mjTRN_JOINT
        servo.biastype = mujoco.mjtBias.mjBIAS_AFFINE
        in_crank = joint == _CRANK
        servo.gainprm[0] = stiffness = _CRANK_STIFFNESS if in_crank else _STIFFNESS
        servo.biasprm[1:3] = -stiffness, -(_CRANK_DAMPING if in_crank else _DAMPING)

    def start(self, joints: Joints, random: np.random.Generator) -> FloatArray | None:
        """Begin the cycle at the foot positions of the posture."""
        model, data = joints.model, joints.data
        places = [model.body(frame).id for frame in FEET.values()]
        # Feet are placed around the centre of mass, not around the origin of the trunk.
        x, y, _ = self._middle = data.subtree_com[0].tolist()
        feet = [(p[0] + x, p[1] + y, p[2]) for p in data.xpos[places].tolist()]
        self._weight = -float(model.body_mass.sum() * model.opt.gravity[2])
        self._legs = [_leg_geometry(model, leg) for leg in LEGS]
        self._gait = Gait(feet, stepping_cycle(feet))
        self._has_lift = _CRANK in joints.names
        self._targets = self._at(0.0)
        return self._targets

    def controls(self, time: float) -> FloatArray:
        """Return the servos' targets (n,) [rad]."""
        if self._periods % _HELD == 0:
            self._targets = self._at(time)
        self._periods += 1
        return self._targets

    def end_period(self, time: float) -> None:
        """Servos need no state: the gait is a function of time."""

    def _at(self, time: float) -> FloatArray:
        """Return the gait's angles (n,) [rad], corrected for the servos' deflection by weight."""
        stance = self._gait.stance(time)
        loads = self._loads(stance)
        targets: list[float] = []
        for leg, foot, load in zip(self._legs, stance.feet, loads, strict=True):
            angles = leg.angles(foot)
            torques = leg.torques(angles, load)
            targets += [q + t / _STIFFNESS for q, t in zip(angles, torques, strict=True)]
        if self._has_lift:
            targets.append(_CRANK_SWING * math.sin(_CRANK_SPEED * time))
        return np.array(targets)

    def _loads(self, stance: Stance) -> list[float]:
        """Distribute the weight over the feet by weighted least squares, without moment."""
        x, y, _ = self._middle
        arms = np.array([(1.0, foot[0] - x, foot[1] - y) for foot in stance.feet])
        shared = arms * np.array(stance.share)[:, np.newaxis]
        balance = np.linalg.solve(
            arms.T @ shared + _SINGULAR * np.eye(3), np.array([self._weight, 0.0, 0.0])
        )
        loads: list[float] = (shared @ balance).tolist()
        return loads


def _leg_geometry(model: mujoco.MjModel, leg: str) -> LegGeometry:
    hip, thigh, shank, foot = (
        [float(x) for x in model.body(f"{leg}_{part}").pos]
        for part in ("HIP", "THIGH", "SHANK", "FOOT")
    )
    return LegGeometry((hip[0], hip[1], hip[2]), thigh[1], -shank[2], -foot[2])
