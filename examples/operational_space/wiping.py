"""Targets of the arm: down to a surface, circles on it, a tilt through a singularity, up."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pinocchio as pin

from .law import Rows, Task, Tool, touchdown_speed

Array = npt.NDArray[np.float64]
CENTRE = np.array([0.55, 0.0])
"""Of the circle, in x and y [m]."""
_CIRCLE, _TURN = 0.06, 4.0  # m, s
_ABOVE = 0.05  # m, where it comes down from
_APPROACH, _SETTLE, _TILT_TIME, _LEAVE = 1.5, 0.5, 4.0, 1.5  # s
_TILT = 1.25  # rad; the wrist is singular at some 1.05
_ASIDE = 0.15
_TOUCHED = 2.0  # N
_SHORT = 1e-4  # s, of differences


@dataclass(frozen=True)
class Surface:
    """A plane, or a cylinder along y; the centre of the tool's ball moves above it.

    Attributes
    ----------
    height : where it is highest [m].
    radius : of the cylinder; 0 for a plane [m].
    ball : radius of the tool's ball [m].
    """

    height: float
    radius: float = 0.0
    ball: float = 0.02

    def at(self, x: float, y: float) -> tuple[Array, Array]:
        """Return the place of the ball's centre over x, y, and the normal there."""
        if not self.radius:
            return np.array([x, y, self.height + self.ball]), np.array([0.0, 0.0, 1.0])
        R, across = self.radius + self.ball, x - CENTRE[0]
        up = float(np.sqrt(R**2 - across**2))
        place = np.array([x, y, self.height - self.radius + up])
        return place, np.array([across, 0.0, up]) / R


def smooth(s: float) -> tuple[float, float, float]:
    """Return a rise from 0 to 1 over s in 0 to 1, with its first two derivatives by s."""
    s = min(max(s, 0.0), 1.0)
    return (
        s**3 * (10.0 + s * (6.0 * s - 15.0)),
        30.0 * s**2 * (1.0 - s) ** 2,
        60.0 * s * (1.0 - s) * (1.0 - 2.0 * s),
    )


@dataclass(frozen=True)
class Gains:
    """Stiffness and damping of the tool's tasks [1/s²], [1/s], and of the force."""

    path: tuple[float, float] = (1600.0, 70.0)
    turn: tuple[float, float] = (900.0, 60.0)
    normal: float = 40.0
    """Damping along the normal while it touches [1/s]."""
    force: float = 3.0
    """Integral of the error of the force [1/s]."""
    friction: float = 0.3
    """Share of the newest friction in what is made up for, per tick."""
    posture: tuple[float, float] = (15.0, 3.0)
    """Of the joints, in what the tool does not feel [N m/rad], [N m s/rad]."""


class Kinematics:
    """Of the tool, by Pinocchio; joints in the order of the robot's description."""

    def __init__(self, urdf: str, tool: str) -> None:
        self.model = pin.buildModelFromXML(urdf)
        self.data = self.model.createData()
        self.frame = self.model.getFrameId(tool)

    def tool(self, q: Array, velocity: Array) -> Tool:
        """Return it at joint positions and velocities."""
        pin.forwardKinematics(self.model, self.data, q, velocity)
        pin.updateFramePlacement(self.model, self.data, self.frame)
        at = self.data.oMf[self.frame]
        axes = pin.LOCAL_WORLD_ALIGNED
        twist = pin.getFrameVelocity(self.model, self.data, self.frame, axes).vector
        return Tool(at.translation.copy(), at.rotation.copy(), twist.copy())


@dataclass
class Wiping:
    """The sequence; it goes on from approach to contact when it feels the surface.

    Attributes
    ----------
    surface : what is wiped.
    rest : joint positions (n,) that the posture tends to.
    pressure : normal force [N].
    impulse : largest impulse of touching down [N s].
    phase : ``"approach"``, ``"settle"``, ``"circle"``, ``"tilt"``, ``"leave"`` or ``"done"``.
    on_path : the tool is to be on its path and to press.
    wanted : where the tool is to be (3,).
    """

    surface: Surface
    rest: Array
    pressure: float = 20.0
    impulse: float = 0.15
    gains: Gains = field(default_factory=Gains)
    phase: str = "approach"
    wanted: Array = field(default_factory=lambda: np.zeros(3))
    speed: float = 0.0
    _time: float = 0.0
    _height: float = 0.0
    _sum: float = 0.0
    _start: Array | None = None
    _friction: Array = field(default_factory=lambda: np.zeros(3))

    @property
    def on_path(self) -> bool:
        """Whether the tool is to be on its path and to press."""
        return self.phase in ("circle", "tilt")

    def off(self, tool: Tool) -> Array:
        """Return how far the tool is from its path, along the surface (3,) [m]."""
        _, normal = self.surface.at(float(tool.place[0]), float(tool.place[1]))
        away = tool.place - self.wanted
        return np.asarray(away - normal * (normal @ away))

    def task(
        self, dt: float, q: Array, velocity: Array, tool: Tool, rows: Rows, contact: Array
    ) -> Task:
        """Go on by a time [s]; return what is wanted then.

        Parameters
        ----------
        q, velocity : of the joints (n,).
        tool : where it is.
        rows : of the same instant.
        contact : force of the surface on the tool (3,) [N].
        """
        self._time += dt
        place, speed, push = self._path(dt, tool, rows)
        surface, normal = self.surface.at(float(place[0]), float(place[1]))
        touches = self.phase in ("settle", "circle", "tilt")
        self.wanted = place
        gains = self.gains
        stiff, damping = gains.path
        linear = push + stiff * (place - tool.place) + damping * (speed - tool.twist[:3])
        wrench, felt = np.zeros(6), float(normal @ contact)
        if touches:
            along = np.eye(3) - np.outer(normal, normal)
            moving = float(normal @ (speed - tool.twist[:3]))
            linear = along @ linear + normal * (normal @ push + gains.normal * moving)
            self._sum += gains.force * (self.pressure - felt) * dt
            self._sum = min(max(self._sum, -self.pressure), self.pressure)
            wrench[:3] = -normal * (self.pressure + self._sum)
            # What is felt along the surface is friction, at the ball's lowest point.
            self._friction += gains.friction * (along @ contact - self._friction)
            wrench[:3] -= self._friction
            wrench[3:] += np.cross(self.surface.ball * normal, self._friction)
        stiff, damping = gains.turn
        # Where the tool points is all that matters.
        to, then = self._pointing(self._time), self._pointing(self._time + _SHORT)
        off = np.cross(tool.rotation[:, 2], to)
        spin = np.cross(to, (then - to) / _SHORT)
        angular = stiff * off + damping * (spin - tool.twist[3:])
        stiff, damping = gains.posture
        posture = stiff * (self.rest - q) - damping * velocity
        self._advance(felt)
        return Task(np.concatenate([linear, angular]), wrench, posture)

    def _path(self, dt: float, tool: Tool, rows: Rows) -> tuple[Array, Array, Array]:
        """Return place, velocity and acceleration of the tool."""
        t, zero = self._time, np.zeros(3)
        start = self.surface.at(CENTRE[0] + _CIRCLE, CENTRE[1])
        if self.phase in ("approach", "leave", "done"):
            place, normal = start
            self.speed = touchdown_speed(rows, tool, normal, self.impulse)
            way = -self.speed if self.phase == "approach" else 0.1
            if self.phase == "approach" and t < _APPROACH:
                self._height, way = _ABOVE, 0.0
            if self.phase == "done" or (self.phase == "leave" and self._height >= _ABOVE):
                way = 0.0
            self._height += way * dt
            above = place + normal * self._height
            if self.phase == "approach" and t < _APPROACH:
                if self._start is None:
                    self._start = tool.place
                share, rate, bend = smooth(t / _APPROACH)
                far = above - self._start
                speed, push = far * rate / _APPROACH, far * bend / _APPROACH**2
                return self._start + far * share, speed, push
            return above, way * normal, zero
        if self.phase != "circle":
            return start[0], zero, zero
        # Three places give velocity and acceleration on any surface.
        a, b, c = (self._on_circle(t + k * _SHORT) for k in (-1, 0, 1))
        return b, (c - a) / (2 * _SHORT), (c - 2 * b + a) / _SHORT**2

    def _pointing(self, time: float) -> Array:
        """Return where the tool is to point: down, or forward and from side to side."""
        if self.phase != "tilt":
            return np.array([0.0, 0.0, -1.0])
        s = min(time / _TILT_TIME, 1.0)
        forward = 0.5 * _TILT * (1.0 - np.cos(2.0 * np.pi * s))
        aside = _ASIDE * np.sin(2.0 * np.pi * s) * np.sin(np.pi * s) ** 2
        to = np.array([np.sin(forward), aside, -np.cos(forward)])
        return np.asarray(to / np.linalg.norm(to))

    def _on_circle(self, t: float) -> Array:
        """Return the place on the circle, with a smooth start and end."""
        s = t / _TURN
        angle = 2.0 * np.pi * smooth(s)[0]
        place, _ = self.surface.at(
            CENTRE[0] + _CIRCLE * float(np.cos(angle)), CENTRE[1] + _CIRCLE * float(np.sin(angle))
        )
        return place

    def _advance(self, felt: float) -> None:
        """Go on to the next phase."""
        after = {
            "approach": ("settle", felt > _TOUCHED),
            "settle": ("circle", self._time > _SETTLE),
            "circle": ("tilt", self._time > _TURN),
            "tilt": ("leave", self._time > _TILT_TIME),
            "leave": ("done", self._time > _LEAVE),
            "done": ("done", False),
        }
        following, now = after[self.phase]
        if now:
            self.phase, self._time, self._height = following, 0.0, 0.0
