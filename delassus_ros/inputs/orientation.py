"""Orientation and twist of a floating base, from odometry or an inertial sensor.

Knows no ROS: names, stamps and quaternions x, y, z, w go in.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from delassus.errors import SAID, InputError, UnknownNames, listed
from delassus.model import Robot
from delassus.model.spatial import Array
from delassus_ros.inputs.findings import Finding, Reason, doubtful, joined
from delassus_ros.inputs.input import Faults, LatestInput, Words, shown
from delassus_ros.inputs.limits import LONGEST_TRUST_S, ORIENTATION_TIMEOUT_S
from delassus_ros.inputs.mounting import FrameMotion, Mounting, mountings
from delassus_ros.inputs.quaternions import (
    IDENTITY,
    Quaternion,
    Vector3,
    about,
    conjugate,
    cross,
    normalized,
    times,
    turned,
)
from delassus_ros.inputs.twist_axes import ANGULAR, TwistAxes

_UNIT_TOLERANCE = 1e-3
_CARRIED_S = 0.1
"""Longest extrapolation of an orientation [s]: the angular velocity may have changed by then."""
_SLOWEST, _FASTEST = 1e-15, 1e3
"""Rates below the first count as zero, rates above the second are refused [rad/s, m/s]."""
_WORDS = Words(
    "orientation", "the orientation of the base", "is", "orientation.timeout",
    "no orientation of the base has arrived yet",
)  # fmt: skip
_FAULTS = Faults(
    Reason.ORIENTATION_MISSING, Reason.ORIENTATION_INVALID, Reason.ORIENTATION_STALE
)
_NO_TWIST = Finding(
    Reason.TWIST_INVALID, "no twist of the base is known: an Imu without angular velocity"
)


class _Measured(NamedTuple):
    """Contents of a message.

    Attributes
    ----------
    orientation : unit quaternion x, y, z, w from the axes of `frame` to those of `world`.
    frame : name of the frame in the message; empty if it has none.
    world : name of the reference in the message; empty if it has none, None for a type of message
        without a reference.
    rates : angular velocity in the axes of `frame` [rad/s]; None if unknown. NaN, infinity and
        impossibly large rates are not used, and are a reason for doubt.
    velocity : linear velocity of the origin of `frame`, in the axes of `frame` [m/s]; zero if
        unknown.
    position : of that origin in `world` [m], by which the velocity is checked; None if unknown.
    """

    orientation: Sequence[float]
    frame: str
    world: str | None
    rates: Sequence[float] | None
    velocity: Sequence[float]
    position: Sequence[float] | None


class OrientationInput(LatestInput[_Measured]):
    """The latest orientation and twist of the robot's root link.

    A source (odometry or inertial sensor) measures the orientation of a frame. The frame is
    extrapolated by its measured angular velocity to the stamps of joint states, which come more
    often; the joint positions of that instant carry the orientation to the root link, over the
    joints between. The twist is used as received, less the velocities of the joints between. A
    message that is older than the previous one is therefore used, with a reason for doubt.

    Parameters
    ----------
    robot : robot that has the frame of the source.
    frame : frame of the source, which overrides that of the messages; empty for the frame of the
        messages.
    world : frame that the orientation has to be relative to; empty for any. Messages of an
        inertial sensor do not name it.

    Raises
    ------
    InputError
        For a frame that does not exist or that other joints than revolute and prismatic ones
        carry.
    """

    def __init__(
        self,
        robot: Robot,
        frame: str = "",
        world: str = "",
        timeout: float = ORIENTATION_TIMEOUT_S,
        topic: str = "odometry",
    ) -> None:
        self._mountings = mountings(robot)
        self._frames = robot.frames
        self._unknown_names = UnknownNames("frame", self._mountings)
        self._frame = frame
        self._world = world
        if frame and frame not in self._mountings:
            raise InputError(self._no_mounting(frame))
        self.topic = topic
        super().__init__(_WORDS, _FAULTS, timeout)

    def reset(self) -> None:
        """Return to the state before the first orientation."""
        super().reset()
        self._mounting: Mounting | None = None
        self._orientation: Quaternion = IDENTITY
        self._speed = 0.0
        self._rates: Vector3 = (0.0, 0.0, 0.0)
        self._velocity = self._rates
        self._is_turning_refused = self._is_turning_known = False
        self._no_twist: Finding | None = _NO_TWIST
        self._axes = TwistAxes()
        self._named = ("", "")
        self._link, self._link_before, self._link_changed = "", "", 0

    def _parse(self, message: Any) -> _Measured | Finding:
        """Return the contents of a nav_msgs/Odometry or sensor_msgs/Imu, or why it is refused.

        The child frame of an odometry is the frame of the source. An Imu does not name its
        reference frame, and has no linear velocity.
        """
        header = message.header
        if not hasattr(message, "child_frame_id"):
            # REP 145 and the comment of the message: -1 marks a missing estimate.
            if message.orientation_covariance[0] == -1.0:
                return self._refused("the Imu says that it has none")
            orientation, frame, world = message.orientation, header.frame_id, None
            known = message.angular_velocity_covariance[0] != -1.0
            rates, velocity, position = message.angular_velocity, (0.0, 0.0, 0.0), None
        else:
            orientation = message.pose.pose.orientation
            frame, world = message.child_frame_id, header.frame_id
            known, rates = True, message.twist.twist.angular
            linear = message.twist.twist.linear
            velocity = linear.x, linear.y, linear.z
            at = message.pose.pose.position
            position = at.x, at.y, at.z
        values = orientation.x, orientation.y, orientation.z, orientation.w
        turning = (rates.x, rates.y, rates.z) if known else None
        wrong = self._wrong(values, frame, world)
        if wrong:
            return self._refused(wrong)
        return _Measured(values, frame, world, turning, velocity, position)

    def _is_overtaken(self, stamp: int, now: int) -> bool:
        """Return False: an older orientation is used, with a reason for doubt."""
        return False

    def _keep(self, contents: _Measured, stamp: int, now: int) -> None:
        orientation, frame, world, rates, velocity, position = contents
        link = self._frame or frame
        if self._link and link != self._link:
            self._link_before, self._link_changed = self._link, now
        self._link = link
        mounting = self._mountings[link]
        self._orientation = measured = normalized(orientation)
        speed = 0.0 if rates is None else math.hypot(*rates)
        # Written so that NaN is refused.
        self._is_turning_refused = not speed < _FASTEST
        self._is_turning_known = rates is not None
        self._speed = speed if _SLOWEST < speed < _FASTEST else 0.0
        self._rates = (0.0, 0.0, 0.0) if rates is None else _vector(rates)
        self._velocity = _vector(velocity)
        self._mounting = mounting if mounting.joints else None
        if self._mounting is None:
            # Of the root link at once, which the ticks between two messages need not repeat.
            fixed = mounting.at()
            self._orientation = times(self._orientation, conjugate(fixed.rotation))
            self._velocity, self._rates = self._of_base(fixed)
        self._no_twist = _fault_of_twist(rates, velocity)
        if rates is not None and self._no_twist is None:
            self._named = world or "the world", link
            self._axes.note(stamp, position, measured, velocity, rates)

    @property
    def carrying(self) -> tuple[str, ...]:
        """Names of the joints between the root link and the frame of the latest good message."""
        return () if self._mounting is None else self._mounting.joints

    def write(self, stamp: int, target: Array, q: Array | None = None) -> Finding | None:
        """Write the latest good orientation (4,), extrapolated to a stamp of joint positions.

        Parameters
        ----------
        q : (nq,) joint positions; None if unknown.

        Returns
        -------
        None, or why there is no orientation; `target` is then unchanged.
        """
        if q is None and self._mounting is not None:
            return Finding(
                Reason.ORIENTATION_MISSING,
                f"the orientation of the base is unknown: {self._carried}, whose positions are "
                "unknown",
            )
        measured, taken = self._orientation, self.latest.taken
        if self._speed and stamp and taken:
            later = min(max(1e-9 * (stamp - taken), -_CARRIED_S), _CARRIED_S)
            x, y, z = (rate / self._speed for rate in self._rates)
            measured = times(measured, about((x, y, z), self._speed * later))
        if self._mounting is not None:
            measured = times(measured, conjugate(self._mounting.at(q).rotation))
        target[...] = measured
        return None

    def write_twist(
        self, target: Array, q: Array | None = None, rates: Array | None = None
    ) -> Finding | None:
        """Write the root link's twist (6,) to `target`: in the link's axes, linear part first.

        Parameters
        ----------
        q, rates : joint positions (nq,), and joint rates in the order of ``robot.joint_names``;
            None if unknown.

        Returns
        -------
        None, or why there is no twist; `target` is then unchanged.
        """
        if self._no_twist is not None:
            return self._no_twist
        if self._mounting is None:
            target[...] = (*self._velocity, *self._rates)
            return None
        if q is None or rates is None:
            return Finding(
                Reason.TWIST_INVALID,
                f"no twist of the base is known: {self._carried}, whose positions or velocities "
                "are unknown",
            )
        velocity, spin = self._of_base(self._mounting.at(q, rates))
        target[...] = (*velocity, *spin)
        return None

    def _of_base(self, frame: FrameMotion) -> tuple[Vector3, Vector3]:
        """Return the root link's velocities, from those that were measured of a frame on it."""
        ωx, ωy, ωz = turned(self._rates, frame.rotation)
        vx, vy, vz = turned(self._velocity, frame.rotation)
        spin = ωx - frame.rates[0], ωy - frame.rates[1], ωz - frame.rates[2]
        x, y, z = cross(spin, frame.place)
        dx, dy, dz = frame.velocity
        return (vx - dx - x, vy - dy - y, vz - dz - z), spin

    @property
    def _carried(self) -> str:
        return f"its sensor is carried by {listed('joint', self.carrying)}"

    def twist_doubt(self) -> Finding | None:
        """Return why the twist contradicts the motion of the pose, or None."""
        parts = self._axes.along_world
        if not parts:
            return None
        world, frame = self._named
        return doubtful(
            Reason.SOURCES_CONTRADICT,
            f"the pose of the base moves as if its {' and '.join(parts)} were along the axes of "
            f"{world!r}; expected a twist along those of {frame!r}, the child_frame_id of an "
            "Odometry or the header.frame_id of an Imu: its publisher has to turn the twist",
            "twist",
        )

    def doubt(
        self, now: int, max_skew: float, clock_step: int = 0, stamp: int = 0
    ) -> Finding | None:
        """Return why orientation and twist are in doubt, or None; see :meth:`Input.doubt`."""
        found = super().doubt(now, max_skew, clock_step)
        if self._link_before and abs(now - self._link_changed) <= 1e9 * LONGEST_TRUST_S:
            text = (
                f"the orientation of the base was that of frame {self._link_before!r}, and is now "
                f"that of frame {self._link!r}: expected one frame; two nodes publish it, or "
                "orientation.frame has to name the frame"
            )
            found = joined(found, doubtful(Reason.SOURCES_CONTRADICT, text, _WORDS.subject))
        taken = self.latest.taken
        apart = 1e-9 * (stamp - taken) if stamp and taken else 0.0
        if self._is_turning_refused:
            text = (
                "the angular velocity of the base is refused, so that its orientation cannot be "
                "carried on to the stamps of the joint positions; expected finite numbers below "
                f"{_FASTEST:g} rad/s"
            )
        elif taken and not self._is_turning_known and abs(apart) > max_skew:
            text = (
                f"the orientation of the base is {abs(apart):.4g} s away from the joint "
                "positions, and its source does not tell how the base turns, by which it is "
                "carried on"
            )
        elif self._speed and abs(apart) > _CARRIED_S:
            text = (
                f"the base turns, and its orientation is {abs(apart):.4g} s away from the joint "
                f"positions; it is carried on by {_CARRIED_S:g} s at most"
            )
        elif ANGULAR in self._axes.along_world:
            # The orientation is carried on by the angular velocity.
            return joined(found, self.twist_doubt())
        else:
            return found
        return joined(found, doubtful(Reason.ORIENTATION_STALE, text, _WORDS.subject))

    def _wrong(self, orientation: Sequence[float], frame: str, world: str | None) -> str:
        """Return the fault of an orientation, in words; empty for none."""
        if self._world and world is not None and world != self._world:
            if world:
                return (
                    f"it is in frame {world[:SAID]!r}, expected {self._world!r} "
                    "(orientation.world_frame)"
                )
            return (
                "its message does not say in which frame it is (header.frame_id); expected "
                f"{self._world!r} (orientation.world_frame)"
            )
        if not (self._frame or frame):
            return (
                "its message does not say of which link it is: set the parameter "
                "orientation.frame to that link, or have the driver name it (header.frame_id of "
                "an Imu, child_frame_id of an Odometry)"
            )
        if not self._frame and frame not in self._mountings:
            return self._no_mounting(frame)
        norm = math.hypot(*orientation)
        if norm == 0.0:
            return "its quaternion is zero: the publisher has not set it"
        if not abs(norm - 1.0) <= _UNIT_TOLERANCE:
            values = shown(orientation)
            return f"its quaternion x, y, z, w = {values} has norm {norm:.6g}; expected 1"
        return ""

    def _no_mounting(self, frame: str) -> str:
        if frame in self._frames:
            return (
                f"frame {frame!r} is not carried by the root link over revolute and prismatic "
                f"joints alone; frames that are: {listed('', list(self._mountings))}"
            )
        text = self._unknown_names.words(frame)
        return f"{text} (orientation.frame names it, if the messages do not)"


def _fault_of_twist(
    rates: Sequence[float] | None, velocity: Sequence[float]
) -> Finding | None:
    """Return why the twist of a frame is unusable; None for a good one."""
    if rates is None:
        return _NO_TWIST
    # Written so that NaN is refused.
    if math.hypot(*rates) < _FASTEST and math.hypot(*velocity) < _FASTEST:
        return None
    return Finding(
        Reason.TWIST_INVALID,
        f"the twist of the base is refused: it is {shown((*velocity, *rates))}; expected finite "
        f"numbers below {_FASTEST:g} m/s and rad/s",
    )


def _vector(values: Sequence[float]) -> Vector3:
    x, y, z = values
    return float(x), float(y), float(z)
