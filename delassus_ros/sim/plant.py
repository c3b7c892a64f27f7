"""A robot in MuJoCo on a floor, open or closed: drives, sensors with noise, contacts.

Contact states follow from forces with hysteresis. Gears and linkages are equalities of the
simulation.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from xml.etree import ElementTree

import mujoco
import numpy as np
import numpy.typing as npt

from delassus.model import Robot
from delassus_ros.sim.closing import Closing, add_equalities, dependent_joints
from delassus_ros.sim.drives import Drives, Joints, TorqueDrives
from delassus_ros.sim.feet import Feet
from delassus_ros.sim.gait import TouchState
from delassus_ros.sim.reference import FloatArray, MujocoReference
from delassus_ros.sim.settings import STEP_S, PlantSettings

__all__ = ["STEP_S", "Floor", "Plant", "PlantSettings", "Sensed", "on_floor"]

_SUBSTEPS = 2  # steps of MuJoCo per period
_PALE = (0.85, 0.87, 0.9, 1.0)  # colour of the floor: red, green, blue, opacity


@dataclass(frozen=True)
class Sensed:
    """The readings of the sensors, or the true values of one instant.

    Attributes
    ----------
    q, velocity, effort : readings of the joints [rad], [rad/s], [N m].
    position, orientation : pose of the base in the world [m], unit quaternion x, y, z, w; constant
        for a fixed base.
    twist : twist of the base in its body axes, linear first [m/s], [rad/s]; constant for a fixed
        base.
    wrenches : forces and moments of the floor on the feet about the contact frames (k, 6), along
        the axes of the world, without noise [N], [N m]; zero in the air.
    """

    q: FloatArray
    velocity: FloatArray
    effort: FloatArray
    position: FloatArray
    orientation: FloatArray
    twist: FloatArray
    wrenches: FloatArray

    @property
    def forces(self) -> FloatArray:
        """Forces of the floor on the feet (k, 3) along the axes of the world [N]."""
        return self.wrenches[:, :3]


@dataclass(frozen=True)
class Floor:
    """The surface that the robot touches.

    Attributes
    ----------
    height : height of the plane, or of the highest line of the cylinder [m].
    radius : radius of a cylinder along y [m]; 0 for a plane.
    x : position of the cylinder's highest line along x [m].
    softness : time constant of the surface [s], at least two steps of the simulation.
    """

    height: float = 0.0
    radius: float = 0.0
    x: float = 0.0
    softness: float = 0.02


def on_floor(
    urdf: str,
    friction: float,
    floating: bool = True,
    floor: Floor | None = None,
    visible: bool = False,
) -> mujoco.MjSpec:
    """Return a robot of a URDF on a floor; the robot does not collide with itself.

    Parameters
    ----------
    urdf : text of the description.
    friction : friction coefficient of floor and robot.
    floating : the base is free; if False, the base is fixed at the origin.
    floor : by default a plane at the origin.
    visible : leave visual shapes of the description in place, and add light.
    """
    floor = Floor() if floor is None else floor
    if visible:
        # Set here, as visual shapes are dropped while the description is read.
        tree = ElementTree.fromstring(urdf)
        options = ElementTree.SubElement(tree, "mujoco")
        ElementTree.SubElement(options, "compiler", discardvisual="false")
        urdf = ElementTree.tostring(tree, encoding="unicode")
    spec = mujoco.MjSpec.from_string(urdf)
    spec.compiler.fusestatic = False  # contact frames are fixed bodies
    spec.visual.headlight.ambient = [0.5, 0.5, 0.5]
    spec.option.timestep = STEP_S / _SUBSTEPS
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    if floating:
        spec.worldbody.first_body().add_freejoint()
    for geom in spec.geoms:
        # Visual shapes do not collide.
        if geom.contype:
            geom.contype, geom.conaffinity = 2, 1
        geom.friction[0] = friction
    plane = mujoco.mjtGeom.mjGEOM_PLANE
    geom = spec.worldbody.add_geom(name="floor", type=plane, size=[0.0, 0.0, 0.1])
    geom.pos[2] = floor.height
    if floor.radius:
        geom.type, geom.size = mujoco.mjtGeom.mjGEOM_CYLINDER, [floor.radius, 2.0, 0.0]
        geom.pos[0], geom.pos[2] = floor.x, floor.height - floor.radius
        geom.quat = [math.sqrt(0.5), math.sqrt(0.5), 0.0, 0.0]
    geom.contype, geom.conaffinity = 1, 0
    geom.friction[0] = friction
    geom.rgba = _PALE
    for geom in spec.geoms:
        geom.solref[0] = floor.softness
    return spec


class Plant:
    """A simulated robot with drives, and feet or a tool in contact; advances in steps of 1 ms.

    In a robot with gears and linkages only independent joints have drives and sensors.

    Parameters
    ----------
    urdf : text of the description.
    contacts : frames of the feet by contact name: links with one sphere, or with one box whose
        z axis points up where the robot stands.
    posture : joint positions at the start by name; zero for joints that are not named [rad].
    floating : the base is free, and starts at the height at which the lowest foot touches; if
        False, the base is fixed.
    drives : drives of the joints; by default drives that obey torques.

    Attributes
    ----------
    joint_names : names of joints, in the order of torques and sensors.
    contact_names : names of contacts, in the order of :attr:`contact_states` and
        :meth:`contact_forces`.
    frames : frames of the contacts, by contact name.
    limits : largest torques (n,) [N m].
    takes_torques : the drives obey :meth:`command`.
    weight : weight of the robot [N].

    Raises
    ------
    ContactError
        For a frame that is not such a link.
    """

    def __init__(
        self,
        urdf: str,
        contacts: Mapping[str, str],
        posture: Mapping[str, float] | None = None,
        settings: PlantSettings | None = None,
        floating: bool = True,
        floor: Floor | None = None,
        drives: Drives | None = None,
    ) -> None:
        self.settings = settings = PlantSettings() if settings is None else settings
        self._drives = drives = TorqueDrives(settings) if drives is None else drives
        self.urdf, self.floating, self.takes_torques = urdf, floating, drives.takes_torques
        robot = Robot.from_urdf(urdf.encode(), base="floating" if floating else "fixed")
        spec = on_floor(urdf, settings.friction, floating, floor, visible=True)
        dependent = dependent_joints(robot)
        hinges = [j.name for j in spec.joints if j.type == mujoco.mjtJoint.mjJNT_HINGE]
        self.joint_names = tuple(name for name in hinges if name not in dependent)
        for name in self.joint_names:
            drives.add(spec, name)
        add_equalities(spec, robot)
        model = self._model = spec.compile()
        data = self._data = mujoco.MjData(model)
        self._closing = Closing(model, robot)
        joints = self._joints = Joints(model, data, self.joint_names)
        model.dof_armature[joints.v] = settings.armature
        model.dof_frictionloss[joints.v] += settings.joint_friction
        model.dof_damping[joints.v] += settings.joint_damping
        self.limits = settings.torque_limit * joints.limits
        self.contact_names, self.frames = tuple(contacts), dict(contacts)
        self._feet = Feet(model, contacts.values())
        self._random = np.random.default_rng(settings.seed)
        self._push, self._push_until = np.zeros(6), -math.inf
        self._renderer: mujoco.Renderer | None = None
        self._ticks = 0
        self._body = 1 if floating else model.nbody - 1
        self.root = str(model.body(1).name)
        self.weight = -float(model.body_mass.sum() * model.opt.gravity[2])
        for name, value in (posture or {}).items():
            data.joint(name).qpos[0] = value
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        start = drives.start(joints, self._random)
        if floating:
            data.qpos[2] -= self._feet.lowest(data)
        if start is not None:
            data.qpos[joints.q] = start
        self._closing.close(data.qpos)
        mujoco.mj_forward(model, data)
        self._wrenches = self._feet.wrenches(data)

    @property
    def time(self) -> float:
        """Simulated time [s]."""
        return self._ticks * STEP_S

    @property
    def silent(self) -> bool:
        """Whether commands have stopped, so that the drives brake or hold."""
        return self._drives.silent

    @property
    def height(self) -> float:
        """Height of the base above the floor [m]."""
        return float(self._data.qpos[2])

    @property
    def upright(self) -> float:
        """Cosine of the angle between the base's z axis and the vertical."""
        w, x, y, z = self._data.qpos[3:7]
        return float(w * w - x * x - y * y + z * z)

    @property
    def q(self) -> FloatArray:
        """Joint positions without noise (n,) [rad]; a copy."""
        return self._joints.positions

    @property
    def velocity(self) -> FloatArray:
        """Joint velocities without noise (n,) [rad/s]; a copy."""
        return self._joints.velocities

    @property
    def effort(self) -> FloatArray:
        """Torques of the drives during the last substep, without noise (n,) [N m]; a copy."""
        return self._joints.torques

    @property
    def contact_states(self) -> tuple[TouchState, ...]:
        """States of the contacts."""
        return tuple(touch.state for touch in self._feet.filters)

    @property
    def active_contacts(self) -> tuple[str, ...]:
        """Names of the contacts that touch the floor, slipping ones included."""
        states = zip(self.contact_names, self.contact_states, strict=True)
        return tuple(name for name, state in states if state.touches)

    def contact_forces(self) -> FloatArray:
        """Return the floor's forces on the feet (k, 3) along the axes of the world [N]."""
        return self.contact_wrenches()[:, :3]

    def contact_wrenches(self) -> FloatArray:
        """Return the floor's forces and moments about the contact frames (k, 6) [N], [N m].

        After a step they are those at the beginning of its last substep; a copy.
        """
        return np.array(self._wrenches)

    def command(self, torques: Sequence[float] | FloatArray) -> None:
        """Command the torques (n,) of the drives from now on [N m].

        Raises
        ------
        InputError
            If `torques` are not n finite numbers; the previous command then stays in force. If the
            drives follow a gait.
        """
        self._drives.command(torques, self.time)

    def push(self, force: Sequence[float], duration: float) -> None:
        """Push the base, or the last link of an arm, along the axes of the world [N], [s]."""
        self._push[:3] = force
        self._push_until = self.time + duration

    def step(self) -> None:
        """Advance by :data:`STEP_S`."""
        model, data = self._model, self._data
        data.ctrl[:] = self._drives.controls(self.time)
        pushed = self.time < self._push_until
        data.xfrc_applied[self._body] = self._push if pushed else 0.0
        mujoco.mj_step(model, data, _SUBSTEPS)
        self._ticks += 1
        self._drives.end_period(self.time)
        self._wrenches = self._feet.update(data)

    def sense(self) -> Sensed:
        """Return the present readings of the sensors."""
        settings, joints, normal = self.settings, self._joints, self._random.normal
        n = len(self.joint_names)
        q = joints.positions + settings.position_noise * normal(size=n)
        velocity = joints.velocities + settings.velocity_noise * normal(size=n)
        effort = joints.torques
        if settings.effort_noise:
            effort += settings.effort_noise * normal(size=n)
        position, orientation, twist = self._base(self._data)
        if self.floating:
            # The quaternion of a small rotation vector.
            turned = np.array([1.0, *(0.05 * settings.base_noise * normal(size=3))])
            mujoco.mju_normalize4(turned)
            exact = np.roll(orientation, 1)
            mujoco.mju_mulQuat(orientation, exact, turned)
            orientation = np.roll(orientation, -1)
            position = position + 0.1 * settings.base_noise * normal(size=3)
            twist = twist + settings.base_noise * normal(size=6)
        wrenches = self.contact_wrenches()
        return Sensed(q, velocity, effort, position, orientation, twist, wrenches)

    @cached_property
    def _probe(self) -> mujoco.MjData:
        """Separate data for the computation of forces, which must not change the simulation."""
        return mujoco.MjData(self._model)

    def truth(self) -> Sensed:
        """Return state and forces at the present positions, under the present command.

        After a step, MuJoCo's data hold the positions at the end of the step, but torques and
        forces at its beginning; this method computes torques and forces at the end.
        """
        data = self._probe
        for name in ("qpos", "qvel", "ctrl", "qacc_warmstart"):
            getattr(data, name)[:] = getattr(self._data, name)
        mujoco.mj_forward(self._model, data)
        there = Joints(self._model, data, self.joint_names)
        return Sensed(
            there.positions,
            there.velocities,
            there.torques,
            *self._base(data),
            self._feet.wrenches(data),
        )

    def _base(self, data: mujoco.MjData) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return position [m], orientation (x, y, z, w) and twist [m/s], [rad/s] of the base."""
        if not self.floating:
            return np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0]), np.zeros(6)
        R = np.zeros(9)
        mujoco.mju_quat2Mat(R, data.qpos[3:7])
        # The linear velocity of a free joint is along the axes of the world, the angular velocity
        # along the axes of the base.
        twist = np.concatenate([R.reshape(3, 3).T @ data.qvel[:3], data.qvel[3:6]])
        return np.array(data.qpos[:3]), np.roll(data.qpos[3:7], -1), twist

    @cached_property
    def _reference(self) -> MujocoReference:
        velocity_map = None if self._closing.is_trivial else self._closing.velocity_map
        return MujocoReference(self._model, tuple(self.frames.values()), velocity_map)

    def reference_all(self) -> FloatArray:
        """Return the Delassus matrix (3k, 3k) of all contacts as points, by MuJoCo [1/kg].

        Rows are in the order of :attr:`contact_names`. In contact axes the matrix does not depend
        on the pose of the base.
        """
        qpos = self.posture
        self._closing.close(qpos)
        return self._reference.matrix(qpos)

    @property
    def posture(self) -> FloatArray:
        """The pose of all parts of the robot, an argument for :meth:`place`; a copy."""
        return np.array(self._data.qpos)

    def place(self, posture: FloatArray) -> None:
        """Move the robot to a posture, for example for a picture."""
        self._data.qpos[:] = posture
        mujoco.mj_forward(self._model, self._data)
        self._wrenches = self._feet.wrenches(self._data)

    def picture(self, width: int = 320, height: int = 240) -> npt.NDArray[np.uint8]:
        """Return a picture of the robot, (height, width, 3); the camera follows the robot.

        Raises
        ------
        RuntimeError
            Without a renderer; MUJOCO_GL=egl or osmesa select renderers that need no display.
        """
        if self._renderer is None:
            if os.environ.get("MUJOCO_GL") not in ("egl", "osmesa"):
                _need_display()
            try:
                self._renderer = mujoco.Renderer(self._model, height, width)
            except Exception as error:
                # The type of the error depends on the missing library.
                raise RuntimeError(f"no picture can be drawn here: {error}") from error
        camera = mujoco.MjvCamera()
        camera.lookat[:] = self._data.subtree_com[1]
        size = self._model.stat.extent
        camera.distance, camera.elevation, camera.azimuth = 1.9 * size, -20.0, 130.0
        self._renderer.update_scene(self._data, camera)
        return np.array(self._renderer.render())

    def view(self) -> Callable[[], bool]:
        """Open MuJoCo's viewer; return a function that draws the state, False once closed.

        Raises
        ------
        RuntimeError
            Without a display.
        """
        _need_display()
        # Imported here, as the import needs a display.
        import mujoco.viewer

        window = mujoco.viewer.launch_passive(self._model, self._data)

        def show() -> bool:
            window.sync()
            return bool(window.is_running())

        return show


def _need_display() -> None:
    """Raise a RuntimeError where GLFW would end the process for lack of a display."""
    displays = ("DISPLAY", "WAYLAND_DISPLAY")
    if sys.platform == "linux" and not any(os.environ.get(name) for name in displays):
        raise RuntimeError(
            f"there is no display: none of {', '.join(displays)} is set; pictures alone can do "
            "with MUJOCO_GL=egl or osmesa"
        )
