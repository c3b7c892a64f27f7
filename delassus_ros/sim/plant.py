"""A robot in MuJoCo that obeys joint torques: what a controller has to stand on.

Drives with rotors, friction and limits; sensors with noise; contacts of its own, told by force
with hysteresis; and what drives do when commands stop.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

import mujoco
import numpy as np
import numpy.typing as npt

from delassus_ros.errors import ContactError, InputError, unknown
from delassus_ros.sim.gait import TouchFilter, TouchState
from delassus_ros.sim.reference import FloatArray, contact_forces, contact_wrenches

PERIOD = 1e-3
"""Simulated time of one :meth:`Plant.step` [s]."""
_SUBSTEPS = 2
_PALE = (0.85, 0.87, 0.9, 1.0)
_DEPTH = {int(mujoco.mjtGeom.mjGEOM_SPHERE): 0, int(mujoco.mjtGeom.mjGEOM_BOX): 2}  # of a size
ON_SILENCE = ("damp", "hold")
"""What drives do when commands stop: brake each joint, or keep it where it was then."""


@dataclass(frozen=True)
class PlantSettings:
    """How drives, sensors and floor are.

    Attributes
    ----------
    friction : of the floor and the feet.
    armature : rotor inertia seen at each joint [kg m^2].
    joint_friction : Coulomb friction of each joint [N m].
    joint_damping : viscous friction of each joint [N m s].
    torque_limit : share of the effort limits of the URDF that drives give.
    torque_noise : standard deviation of the torque of a drive [N m].
    effort_noise : the same of what drives say of it; they say what they give, without noise.
    position_noise, velocity_noise : of the encoders [rad], [rad/s].
    base_noise : of the base's velocity [m/s], [rad/s]; of its position and orientation a tenth
        of that [m], [rad].
    silence : time without a command after which drives brake or hold [s].
    on_silence : which of the two, of :data:`ON_SILENCE`.
    holding, braking : stiffness and damping of drives then, at most: less where a link is so
        light that it would ring [N m/rad], [N m s/rad].
    seed : of all noise.
    """

    friction: float = 0.8
    armature: float = 0.0
    joint_friction: float = 0.0
    joint_damping: float = 0.0
    torque_limit: float = 1.0
    torque_noise: float = 0.0
    effort_noise: float = 0.0
    position_noise: float = 0.0
    velocity_noise: float = 0.0
    base_noise: float = 0.0
    silence: float = 0.02
    on_silence: str = "damp"
    holding: float = 300.0
    braking: float = 6.0
    seed: int = 0

    def __post_init__(self) -> None:
        """Check them.

        Raises
        ------
        InputError
            If a number is negative or not finite, or on_silence is something else.
        """
        if self.on_silence not in ON_SILENCE:
            raise InputError(unknown("on_silence", self.on_silence, ON_SILENCE, "choices"))
        for name, value in vars(self).items():
            if not isinstance(value, str) and not 0.0 <= value < math.inf:
                raise InputError(f"{name} is {value}; expected a finite number, 0 or more")


@dataclass(frozen=True)
class Sensed:
    """What the sensors say.

    Attributes
    ----------
    q, velocity, effort : of the joints [rad], [rad/s], [N m].
    position, orientation : of the base in the world [m], unit quaternion x, y, z, w; where it is
        bolted down, these and its twist stay as they are.
    twist : of the base in its own axes, linear first [m/s], [rad/s].
    """

    q: FloatArray
    velocity: FloatArray
    effort: FloatArray
    position: FloatArray
    orientation: FloatArray
    twist: FloatArray


@dataclass(frozen=True)
class Floor:
    """What the robot touches.

    Attributes
    ----------
    height : of the plane, or of the highest line of the cylinder [m].
    radius : of a cylinder that lies along y instead of a plane; 0 for a plane [m].
    x : where that is highest [m].
    softness : time in which it gives way to a blow, two steps of the simulation or more [s].
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
    """Return a robot of a URDF on a floor, which it touches but not itself.

    Parameters
    ----------
    urdf : text of the description.
    friction : of floor and robot.
    floating : the base is free; else it is bolted down at the origin.
    floor : by default a plane at the origin.
    visible : with what the description has for the eye alone, and light.
    """
    floor = Floor() if floor is None else floor
    if visible:
        # Here, as what is for the eye alone is dropped while the description is read.
        tree = ElementTree.fromstring(urdf)
        options = ElementTree.SubElement(tree, "mujoco")
        ElementTree.SubElement(options, "compiler", discardvisual="false")
        urdf = ElementTree.tostring(tree, encoding="unicode")
    spec = mujoco.MjSpec.from_string(urdf)
    spec.compiler.fusestatic = False  # contact frames are fixed bodies
    spec.visual.headlight.ambient = [0.5, 0.5, 0.5]
    spec.option.timestep = PERIOD / _SUBSTEPS
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    if floating:
        spec.worldbody.first_body().add_freejoint()
    for geom in spec.geoms:
        # What is for the eye alone touches nothing.
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
    for each in spec.geoms:
        each.solref[0] = floor.softness
    return spec


class Plant:
    """A robot with torque-controlled joints and feet or a tool that touch, 1 ms at a time.

    Parameters
    ----------
    urdf : text of the description.
    contacts : frames of the feet by contact name, each a link with one sphere, or one box whose
        z axis is up where it stands.
    posture : joint positions at the start by name; others are zero [rad].
    settings : drives, sensors and floor.
    floating : the base is free, and begins where the lowest foot touches; else it is bolted down.
    floor : what it touches.

    Attributes
    ----------
    joint_names : in the order of torques and sensors.
    contact_names : in the order of :attr:`contact_states` and :meth:`contact_forces`.
    limits : largest torques (n,) [N m].
    urdf, floating : as given.
    root : name of the root link.
    weight : of the robot [N].

    Raises
    ------
    ContactError
        For a frame that is no such link.
    """

    def __init__(
        self,
        urdf: str,
        contacts: Mapping[str, str],
        posture: Mapping[str, float] | None = None,
        settings: PlantSettings | None = None,
        floating: bool = True,
        floor: Floor | None = None,
    ) -> None:
        self._settings = settings = PlantSettings() if settings is None else settings
        self.urdf, self.floating = urdf, floating
        spec = on_floor(urdf, settings.friction, floating, floor, visible=True)
        hinges = [j for j in spec.joints if j.type == mujoco.mjtJoint.mjJNT_HINGE]
        for joint in hinges:
            motor = spec.add_actuator(name=joint.name, target=joint.name)
            motor.trntype = mujoco.mjtTrn.mjTRN_JOINT
        self.joint_names = tuple(joint.name for joint in hinges)
        self.limits = np.array([settings.torque_limit * j.actfrcrange[1] for j in hinges])
        model = self._model = spec.compile()
        data = self._data = mujoco.MjData(model)
        self._q = model.jnt_qposadr[[model.joint(name).id for name in self.joint_names]]
        self._v = model.jnt_dofadr[[model.joint(name).id for name in self.joint_names]]
        model.dof_armature[self._v] = settings.armature
        model.dof_frictionloss[self._v] = settings.joint_friction
        model.dof_damping[self._v] = settings.joint_damping
        # No more than links as light as these take from drives that look once in a period.
        inertia = model.dof_M0[self._v] + settings.armature
        self._braking = np.minimum(settings.braking, 0.5 * inertia / PERIOD)
        self._holding = np.minimum(settings.holding, 0.2 * inertia / PERIOD**2)
        self.contact_names = tuple(contacts)
        self._feet = [self._foot(frame) for frame in contacts.values()]
        # From the middle of a foot down to where it touches.
        self._depths = [
            float(model.geom_size[geom, _DEPTH[kind]])
            for geom, kind in zip(self._feet, model.geom_type[self._feet], strict=True)
        ]
        self._filters = [TouchFilter() for _ in self._feet]
        self._random = np.random.default_rng(settings.seed)
        self._command = np.zeros(len(self.joint_names))
        self._commanded, self._held = -math.inf, np.zeros(len(self.joint_names))
        self._push, self._push_until = np.zeros(6), -math.inf
        self._renderer: mujoco.Renderer | None = None
        self._ticks = 0
        self._body = 1 if floating else model.nbody - 1
        self.root = str(model.body(1).name)
        self.weight = -float(model.body_mass.sum() * model.opt.gravity[2])
        for name, value in (posture or {}).items():
            data.joint(name).qpos[0] = value
        mujoco.mj_kinematics(model, data)
        lowest = min(
            data.geom_xpos[geom, 2] - depth
            for geom, depth in zip(self._feet, self._depths, strict=True)
        )
        if floating:
            data.qpos[2] -= lowest
        self._held[:] = data.qpos[self._q]
        mujoco.mj_forward(model, data)

    def _foot(self, frame: str) -> int:
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

    @property
    def time(self) -> float:
        """Simulated time [s]."""
        return self._ticks * PERIOD

    @property
    def silent(self) -> bool:
        """Whether commands have stopped, so that the drives look after themselves."""
        return self.time - self._commanded > self._settings.silence

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
    def contact_states(self) -> tuple[TouchState, ...]:
        """State of each contact."""
        return tuple(touch.state for touch in self._filters)

    def contact_forces(self) -> FloatArray:
        """Return the floor's forces on the feet (k, 3) along the axes of the world [N]."""
        return contact_forces(self._model, self._data, self._feet)

    def contact_wrenches(self) -> FloatArray:
        """Return the same with moments about the contact frames (k, 6) [N], [N m]."""
        return contact_wrenches(self._model, self._data, self._feet)

    def command(self, torques: Sequence[float] | FloatArray) -> None:
        """Have the drives give these torques (n,) from now on; not finite ones are refused.

        Raises
        ------
        InputError
            If they are not n finite numbers; the command before it holds.
        """
        given = np.asarray(torques, dtype=np.float64)
        if given.shape != self._command.shape or not np.isfinite(given).all():
            raise InputError(
                f"torques are {given.tolist()}; expected {len(self._command)} finite numbers"
            )
        self._command[:] = given
        self._commanded = self.time

    def push(self, force: Sequence[float], duration: float) -> None:
        """Push the base, of an arm its last link, along the axes of the world [N], [s]."""
        self._push[:3] = force
        self._push_until = self.time + duration

    def step(self) -> None:
        """Advance by :data:`PERIOD`."""
        model, data = self._model, self._data
        data.ctrl[:] = np.clip(self._torques(), -self.limits, self.limits)
        pushed = self.time < self._push_until
        data.xfrc_applied[self._body] = self._push if pushed else 0.0
        mujoco.mj_step(model, data, _SUBSTEPS)
        self._ticks += 1
        if not self.silent:
            self._held[:] = data.qpos[self._q]
        self._touch()

    def sense(self) -> Sensed:
        """Return what the sensors say at present."""
        settings, data, normal = self._settings, self._data, self._random.normal
        n = len(self.joint_names)
        q = data.qpos[self._q] + settings.position_noise * normal(size=n)
        velocity = data.qvel[self._v] + settings.velocity_noise * normal(size=n)
        effort = data.qfrc_actuator[self._v].copy()
        if settings.effort_noise:
            effort += settings.effort_noise * normal(size=n)
        if not self.floating:
            rest = np.array([0.0, 0.0, 0.0, 1.0])
            return Sensed(q, velocity, effort, np.zeros(3), rest, np.zeros(6))
        R = np.zeros(9)
        mujoco.mju_quat2Mat(R, data.qpos[3:7])
        twist = np.concatenate([R.reshape(3, 3).T @ data.qvel[:3], data.qvel[3:6]])
        orientation = np.zeros(4)
        # Of a small rotation vector.
        turned = np.array([1.0, *(0.05 * settings.base_noise * normal(size=3))])
        mujoco.mju_normalize4(turned)
        mujoco.mju_mulQuat(orientation, data.qpos[3:7], turned)
        return Sensed(
            q=q,
            velocity=velocity,
            effort=effort,
            position=data.qpos[:3] + 0.1 * settings.base_noise * normal(size=3),
            orientation=np.roll(orientation, -1),
            twist=twist + settings.base_noise * normal(size=6),
        )

    @property
    def posture(self) -> FloatArray:
        """Where all of the robot is, as :meth:`place` takes it; a copy."""
        return np.array(self._data.qpos)

    def place(self, posture: FloatArray) -> None:
        """Put the robot somewhere, as to take a picture of it there."""
        self._data.qpos[:] = posture
        mujoco.mj_forward(self._model, self._data)

    def picture(self, width: int = 320, height: int = 240) -> npt.NDArray[np.uint8]:
        """Return a picture of the robot, (height, width, 3); the camera follows it.

        Raises
        ------
        RuntimeError
            If there is nothing to draw with: MUJOCO_GL=egl or osmesa choose without a display.
        """
        if self._renderer is None:
            if os.environ.get("MUJOCO_GL") not in ("egl", "osmesa"):
                _need_display()
            try:
                self._renderer = mujoco.Renderer(self._model, height, width)
            except Exception as error:
                # What a missing library raises depends on the library.
                raise RuntimeError(f"no picture can be drawn here: {error}") from error
        camera = mujoco.MjvCamera()
        camera.lookat[:] = self._data.subtree_com[1]
        size = self._model.stat.extent
        camera.distance, camera.elevation, camera.azimuth = 1.9 * size, -20.0, 130.0
        self._renderer.update_scene(self._data, camera)
        return np.array(self._renderer.render())

    def view(self) -> Callable[[], bool]:
        """Open MuJoCo's viewer; return what shows the present state, False once it is closed.

        Raises
        ------
        RuntimeError
            If there is no display.
        """
        _need_display()
        # Here, as it looks for a display.
        import mujoco.viewer

        window = mujoco.viewer.launch_passive(self._model, self._data)

        def show() -> bool:
            window.sync()
            return bool(window.is_running())

        return show

    def _torques(self) -> FloatArray:
        """Return what the drives are to give."""
        settings, data = self._settings, self._data
        if self.silent:
            torques = -self._braking * data.qvel[self._v]
            # Before the first command they keep the robot on its feet.
            if settings.on_silence == "hold" or self._commanded == -math.inf:
                # With what carried the robot until then.
                torques += self._command + self._holding * (self._held - data.qpos[self._q])
            return np.asarray(torques)
        noise = settings.torque_noise * self._random.normal(size=len(self._command))
        return np.asarray(self._command + noise)

    def _touch(self) -> None:
        """Update the contact states from the contacts of the last substep."""
        model, data = self._model, self._data
        forces = self.contact_forces()
        velocity = np.zeros(6)
        for geom, depth, force, touch in zip(
            self._feet, self._depths, forces, self._filters, strict=True
        ):
            speed = 0.0
            if force[2] > 0.0:
                mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_GEOM, geom, velocity, 0)
                # Of where it touches: v + ω × (0, 0, -depth).
                wx, wy, _, vx, vy, _ = velocity.tolist()
                speed = math.hypot(vx - depth * wy, vy + depth * wx)
            touch.update(float(force[2]), speed)


def _need_display() -> None:
    """Raise a RuntimeError where GLFW, which looks for a display, would end the process."""
    displays = ("DISPLAY", "WAYLAND_DISPLAY")
    if sys.platform == "linux" and not any(os.environ.get(name) for name in displays):
        raise RuntimeError(
            f"there is no display: none of {', '.join(displays)} is set; pictures alone can do "
            "with MUJOCO_GL=egl or osmesa"
        )
