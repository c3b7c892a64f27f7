"""The demo quadrupeds in MuJoCo: they stand, lean, lift their feet and land again."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import mujoco
import numpy as np

from delassus_ros.errors import ContactError, unknown
from delassus_ros.model import Robot
from delassus_ros.sim import demo_urdf
from delassus_ros.sim.closing import Closing, add_equalities
from delassus_ros.sim.gait import (
    LEGS,
    Gait,
    LegGeometry,
    Stance,
    TouchFilter,
    TouchState,
    stepping_cycle,
)
from delassus_ros.sim.plant import PERIOD, on_floor
from delassus_ros.sim.reference import FloatArray, MujocoReference, Truth, TruthProbe

_SUBSTEPS = 2
_HELD = 4  # periods for which the servos keep their targets, which a gait gives at 250 Hz
_STANCE = (0.0, 0.7, -1.4)  # the pose in which the foot frames are level
_STIFFNESS = 500.0  # of the joint servos, Nm/rad
_DAMPING = 10.0  # of the joint servos, Nm s/rad
_FRICTION = 0.8
_JOINTS = ("HAA", "HFE", "KFE")
_CRANK = "LIFT_CRANK"
_CRANK_STIFFNESS = 50.0  # Nm/rad
_CRANK_DAMPING = 1.0  # Nm s/rad
_CRANK_SWING = 0.4  # rad
_CRANK_SPEED = 2.0  # rad/s of the phase


def build_model(urdf: str) -> mujoco.MjModel:
    """Put the robot of a URDF on a floor, with a free base and a servo in every joint of its legs.

    The servos obey the effort limits of the URDF. The robot touches the floor but not itself.
    Couplings and loops of the URDF become equalities; a lift gets a servo in its crank.

    Parameters
    ----------
    urdf
        Text of the robot description, of a robot built like the demo's.
    """
    spec = on_floor(urdf, _FRICTION)
    for leg in LEGS:
        for joint in _JOINTS:
            _add_servo(spec, f"{leg}_{joint}", _STIFFNESS, _DAMPING)
    if spec.joint(_CRANK) is not None:
        _add_servo(spec, _CRANK, _CRANK_STIFFNESS, _CRANK_DAMPING)
    add_equalities(spec, Robot.from_urdf(urdf))
    return spec.compile()


def _add_servo(spec: mujoco.MjSpec, joint: str, stiffness: float, damping: float) -> None:
    servo = spec.add_actuator(name=joint, target=joint)
    servo.trntype = mujoco.mjtTrn.mjTRN_JOINT
    servo.biastype = mujoco.mjtBias.mjBIAS_AFFINE
    servo.gainprm[0] = stiffness
    servo.biasprm[1:3] = -stiffness, -damping


class QuadrupedSimulation:
    """A demo robot on its floor, 1 ms at a time; every run is the same.

    Parameters
    ----------
    robot
        One of `delassus_ros.sim.ROBOTS`.

    Attributes
    ----------
    joint_names
        The joints that are measured, in the order of `q`, `velocity` and `effort`: legs LF, RF,
        LH, RH, in each HAA, HFE, KFE, then the crank of a lift. Rotors and the other joints of
        the lift follow from these.
    contact_names
        The contacts, named after their legs; the order of `contact_states`.
    frames
        The foot frames of the contacts, by contact name.
    """

    def __init__(self, robot: str = "quadruped") -> None:
        self._ticks = 0
        urdf = demo_urdf(robot)
        self._model = build_model(urdf)
        self._data = mujoco.MjData(self._model)
        model, data = self._model, self._data
        # Those with a servo.
        self.joint_names = tuple(model.actuator(i).name for i in range(model.nu))
        measured = [model.joint(name) for name in self.joint_names]
        self._q = np.array([int(joint.qposadr[0]) for joint in measured])
        self._v = np.array([int(joint.dofadr[0]) for joint in measured])
        self._closing = Closing(model, Robot.from_urdf(urdf))
        self.contact_names: tuple[str, ...] = LEGS
        self.frames: Mapping[str, str] = {leg: f"{leg}_FOOT" for leg in LEGS}
        self._reference = MujocoReference(
            model,
            tuple(self.frames.values()),
            None if self._closing.is_trivial else self._closing.velocity_map,
        )

        self._feet = [model.body(frame).id for frame in self.frames.values()]
        geoms = [int(model.body_geomadr[body]) for body in self._feet]
        self._leg_of_geom = {geom: leg for leg, geom in enumerate(geoms)}
        self._probe = TruthProbe(model, self._v, geoms)
        self._radius = float(model.geom_size[geoms[0], 0])

        data.qpos[:7] = 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0
        legs = self._q[: len(LEGS) * len(_JOINTS)]
        data.qpos[legs] = _STANCE * len(LEGS)
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        # The feet stand around the centre of mass, not around the origin of the trunk.
        x, y, _ = self._middle = data.subtree_com[0].tolist()
        feet = [(p[0] + x, p[1] + y, p[2]) for p in data.xpos[self._feet].tolist()]
        self._weight = -float(model.body_mass.sum() * model.opt.gravity[2])
        self._legs = [self._leg_geometry(leg) for leg in LEGS]
        self._gait = Gait(feet, stepping_cycle(feet))
        data.qpos[2] = self._radius - min(foot[2] for foot in feet)
        self._command()
        data.qpos[self._q] = data.ctrl
        self._closing.close(data.qpos)

        self._velocity = np.zeros(6)
        self._wrench = np.zeros(6)
        self._filters = [TouchFilter() for _ in LEGS]
        mujoco.mj_forward(model, data)

    def _leg_geometry(self, leg: str) -> LegGeometry:
        hip, thigh, shank, foot = (
            [float(x) for x in self._model.body(f"{leg}_{part}").pos]
            for part in ("HIP", "THIGH", "SHANK", "FOOT")
        )
        return LegGeometry((hip[0], hip[1], hip[2]), thigh[1], -shank[2], -foot[2])

    @property
    def time(self) -> float:
        """Simulated time, s."""
        return self._ticks * PERIOD

    @property
    def q(self) -> FloatArray:
        """Joint positions, (n,), rad; a copy."""
        return np.array(self._data.qpos[self._q])

    @property
    def velocity(self) -> FloatArray:
        """Joint velocities, (n,), rad/s; a copy."""
        return np.array(self._data.qvel[self._v])

    @property
    def effort(self) -> FloatArray:
        """Joint torques of the servos during the last substep, (n,), Nm; a copy."""
        return np.array(self._data.qfrc_actuator[self._v])

    @property
    def contact_states(self) -> tuple[TouchState, ...]:
        """State of each contact, in the order of `contact_names`."""
        return tuple(touch.state for touch in self._filters)

    @property
    def active_contacts(self) -> tuple[str, ...]:
        """Names of the contacts that touch the floor, slipping ones included."""
        return tuple(
            name
            for name, touch in zip(self.contact_names, self._filters, strict=True)
            if touch.state.touches
        )

    def truth(self) -> Truth:
        """Return base state, torques and contact forces at the present `q`."""
        return self._probe.read(self._data)

    def step(self) -> None:
        """Advance by `PERIOD`, exactly."""
        if self._ticks % _HELD == 0:
            self._command()
        self._ticks += 1
        mujoco.mj_step(self._model, self._data, _SUBSTEPS)
        self._touch()

    def reference(self, active: Sequence[str] | None = None) -> FloatArray:
        """Delassus matrix of the active contacts at the present `q`, as MuJoCo has it.

        In contact axes it does not depend on where the trunk is.

        Parameters
        ----------
        active
            Contact names in the order of the rows; the contacts that touch if not given.

        Returns
        -------
        ndarray
            (3k, 3k), 1/kg.

        Raises
        ------
        ContactError
            A name is not one of `contact_names`.
        """
        names = self.active_contacts if active is None else active
        rows: list[int] = []
        for name in names:
            if name not in self.contact_names:
                raise ContactError(unknown("contact", name, self.contact_names))
            first = 3 * self.contact_names.index(name)
            rows += (first, first + 1, first + 2)
        return self.reference_all()[np.ix_(rows, rows)]

    def reference_all(self) -> FloatArray:
        """Delassus matrix of all contacts, in the order of `contact_names`, (12, 12), 1/kg."""
        qpos = self._data.qpos
        if not self._closing.is_trivial:
            qpos = qpos.copy()
            self._closing.close(qpos)
        return self._reference.matrix(qpos)

    def _command(self) -> None:
        """Set the servos to the gait's angles, ahead by what the weight will bend them back."""
        stance = self._gait.stance(self.time)
        loads = self._loads(stance)
        targets: list[float] = []
        for leg, foot, load in zip(self._legs, stance.feet, loads, strict=True):
            angles = leg.angles(foot)
            torques = leg.torques(angles, load)
            targets += [q + t / _STIFFNESS for q, t in zip(angles, torques, strict=True)]
        if len(self.joint_names) > len(targets):
            targets.append(_CRANK_SWING * math.sin(_CRANK_SPEED * self.time))
        self._data.ctrl[:] = targets

    def _loads(self, stance: Stance) -> list[float]:
        """Spread the weight over the feet: least weighted squares, no moment about the middle."""
        x, y, _ = self._middle
        arms = np.array([(1.0, foot[0] - x, foot[1] - y) for foot in stance.feet])
        shared = arms * np.array(stance.share)[:, np.newaxis]
        # Two feet in a line cannot balance all moments; the small diagonal leaves the rest undone.
        balance = np.linalg.solve(
            arms.T @ shared + 1e-6 * np.eye(3), np.array([self._weight, 0.0, 0.0])
        )
        loads: list[float] = (shared @ balance).tolist()
        return loads

    def _touch(self) -> None:
        """Update the contact states from the contacts of the last substep."""
        model, data = self._model, self._data
        force = [0.0] * len(self._feet)
        for contact, geoms in enumerate(data.contact.geom.tolist()):
            leg = self._leg_of_geom.get(geoms[0], self._leg_of_geom.get(geoms[1]))
            if leg is not None:
                mujoco.mj_contactForce(model, data, contact, self._wrench)
                force[leg] += float(self._wrench[0])
        for leg, touch in enumerate(self._filters):
            speed = 0.0
            if force[leg] > 0.0:
                mujoco.mj_objectVelocity(
                    model, data, mujoco.mjtObj.mjOBJ_XBODY, self._feet[leg], self._velocity, 0
                )
                # Of the lowest point of the ball: v + ω × (0, 0, -radius).
                wx, wy, _, vx, vy, _ = self._velocity.tolist()
                speed = math.hypot(vx - self._radius * wy, vy + self._radius * wx)
            touch.update(force[leg], speed)
