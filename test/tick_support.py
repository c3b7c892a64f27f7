"""A tick without a node, whose every message is checked against the dense reference.

Positions are a function of the stamp: a matrix is right if it is the one for its stamp.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import robots
from builtin_interfaces.msg import Time
from delassus_msgs.msg import (
    ActiveContacts,
    ContactPlacements,
    ContactSchedule,
    DelassusMatrix,
)
from delassus_msgs_py import matrix_to_numpy
from geometry_msgs.msg import Pose
from nav_msgs.msg import Odometry
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import Imu, JointState

from delassus import Contact, DelassusSolver, Problem, Robot
from delassus_ros.inputs.findings import Reason
from delassus_ros.inputs.joints import InputStatus, JointGate
from delassus_ros.inputs.limits import Limits
from delassus_ros.inputs.schedule import ScheduleInput
from delassus_ros.node.matrix import make_layout
from delassus_ros.node.tick import DelassusTick
from delassus_ros.ros.health import InputHealth
from delassus_ros.ros.stream import Messages

MS = 1_000_000
START = 1_700_000_000 * 1000 * MS
OK, DEGRADED = DelassusMatrix.VALIDITY_OK, DelassusMatrix.VALIDITY_DEGRADED
INVALID = DelassusMatrix.VALIDITY_INVALID


def swing(joints: Sequence[str]) -> Callable[[int], dict[str, float]]:
    """Return joint positions as a function of the stamp [ns]; each moves by itself."""

    def positions(stamp: int) -> dict[str, float]:
        t = (stamp - START) / (1000.0 * MS)
        return {name: 0.7 * float(np.sin(3.0 * t + 1.7 * k)) for k, name in enumerate(joints)}

    return positions


def to_message(time: int) -> Time:
    return Time(sec=time // 10**9, nanosec=time % 10**9)


@functools.lru_cache(maxsize=8)
def reference(problem: Problem) -> DelassusSolver:
    """Return the dense solver, which shares no code with the others but the kinematics."""
    return DelassusSolver(problem, "dense" if not problem.robot.is_closed else "ltl")


_UNKNOWN_SET = (
    Reason.NO_CONTACTS_RECEIVED | Reason.CONTACTS_STALE | Reason.CONTACTS_MALFORMED
    | Reason.DUPLICATE_CONTACT
)  # fmt: skip
"""Reasons of matrices of all rows without a set of active contacts."""
_LEVEL = (0.0, 0.0, 0.0, 1.0)
_FEET = ("LF", "RF", "LH", "RH")


def sensed(
    orientation: Sequence[float],
    stamp: int,
    frame: str = "",
    world: str | None = None,
    rates: Sequence[float] | None = (0.0, 0.0, 0.0),
    velocity: Sequence[float] = (0.0, 0.0, 0.0),
) -> Odometry | Imu:
    """Return the message of an orientation: an odometry, or without a world that of an Imu.

    Parameters
    ----------
    orientation : quaternion x, y, z, w of `frame`, along whose axes rates and velocity are.
    stamp : stamp [ns]; 0 for none.
    rates : angular velocity [rad/s]; None for an Imu that does not measure it.
    """
    if world is None:
        message: Odometry | Imu = Imu()
        message.header.frame_id, at, spin = frame, message.orientation, message.angular_velocity
        message.angular_velocity_covariance[0] = -1.0 if rates is None else 0.0
    else:
        message = Odometry(child_frame_id=frame)
        message.header.frame_id, at = world, message.pose.pose.orientation
        linear, spin = message.twist.twist.linear, message.twist.twist.angular
        linear.x, linear.y, linear.z = map(float, velocity)
    message.header.stamp = to_message(stamp)
    at.x, at.y, at.z, at.w = map(float, orientation)
    spin.x, spin.y, spin.z = map(float, (0.0, 0.0, 0.0) if rates is None else rates)
    return message


class Rig:
    """A tick with its clock and its published messages.

    Parameters
    ----------
    solver : solver of the tick.
    truth : positions of the joints by name as a function of the stamp [ns].
    full : positions of all joints (nq,) as a function of the stamp; by default those of truth.
    **options : for the tick.

    Attributes
    ----------
    now : time of the clock [ns].
    messages : all that was published; each was checked.
    warnings : kind and text of each.
    touching : contacts that the matrix is expected to have; None after a set that is refused.
    status : status of the contacts of the last set.
    motion : velocity and effort of the joints in joint states, by field.
    following : messages that followed the last matrix, by topic.
    """

    def __init__(
        self,
        solver: DelassusSolver,
        truth: Callable[[int], dict[str, float]] | None = None,
        full: Callable[[int], Sequence[float]] | None = None,
        limits: Limits | None = None,
        all_rows: bool = False,
        **options: Any,
    ) -> None:
        self.problem = solver.problem
        self.joints = list(self.problem.robot.joint_names)
        self.truth = truth or swing(self.joints)
        self.full = full or (lambda stamp: list(self.truth(stamp).values()))
        self.now = START
        self.messages: list[DelassusMatrix] = []
        self.warnings: list[tuple[str, str]] = []
        self.touching: tuple[str, ...] | None = None
        self.status: dict[str, int] = {}
        self.motion: dict[str, Sequence[float]] = {}
        self.following: dict[str, Any] = {}
        self.orientation: list[float] | None = None
        self._all_rows = all_rows
        self.layout = make_layout(self.problem, to_message(START), "odom")
        self.tick = DelassusTick(
            solver,
            self.layout,
            all_rows,
            lambda: self.now,
            lambda kind, text: self.warnings.append((kind, text)),
            limits or Limits(),
            **options,
        )

    # What comes in.

    def touch(
        self, *names: str, status: Sequence[int] | None = None, at: float | None = 0.0
    ) -> None:
        """Send a set of contacts stamped `at` ms from now, without a stamp if None."""
        message = ActiveContacts(names=list(names))
        message.status = [ActiveContacts.ACTIVE] * len(names) if status is None else list(status)
        if at is not None:
            message.header.stamp = to_message(self.now + round(at * MS))
        self.read("active_contacts", message)
        refused = len(set(names)) < len(names) or len(names) != len(message.status)
        known = [c for c in self.problem.contacts.names if c in names]
        self.touching = None if refused else tuple(known)
        self.status = dict(zip(names, message.status, strict=False))

    def turn(
        self,
        orientation: Sequence[float],
        child: str = "base",
        frame: str = "odom",
        at: float | None = 0.0,
        yaw_rate: float = 0.0,
    ) -> None:
        """Send an odometry, and expect matrices for its orientation from now on.

        It is stamped `at` ms from now, or has no stamp if None.
        """
        stamp = 0 if at is None else self.now + round(at * MS)
        message = sensed(orientation, stamp, child, frame, (0.0, 0.0, yaw_rate))
        self.read("odometry", message)
        self.orientation = list(orientation)

    def imu(
        self,
        orientation: Sequence[float],
        unknown: bool = False,
        yaw_rate: float = 0.0,
        unmeasured: bool = False,
        frame: str = "imu",
        rates: Sequence[float] | None = None,
    ) -> None:
        """Send a message of an inertial sensor, mounted at a frame."""
        turning = (0.0, 0.0, yaw_rate) if rates is None else rates
        message = sensed(orientation, self.now, frame, None, None if unmeasured else turning)
        message.orientation_covariance[0] = -1.0 if unknown else 0.0
        self.feel(message)

    def feel(self, message: Imu) -> None:
        """Send a message of an inertial sensor, in place of odometries."""
        inputs = self.tick.inputs
        inputs.accept(inputs.by_topic["odometry"], message, self.now)

    def state(
        self,
        names: Sequence[str] | None = None,
        at: float = 0.0,
        stamp: int | None = None,
        count: int | None = None,
        **changes: float,
    ) -> bytes:
        """Return a serialized joint state stamped `at` ms from now, with the positions there.

        Parameters
        ----------
        names : by default all joints.
        stamp : in place of `at` [ns].
        count : number of positions, up to one more than names; by default as many.
        **changes : positions of joints, or of other names.
        """
        names = self.joints if names is None else names
        stamp = self.now + round(at * MS) if stamp is None else stamp
        positions = {**self.truth(stamp), **changes}
        values = [positions.get(name, 0.1) for name in names]
        if count is not None:
            values = [*values, 0.1][:count]
        message = JointState(name=list(names), position=values, **self.motion)
        message.header.stamp = to_message(stamp)
        return serialize_message(message)

    def send(self, *args: Any, **options: Any) -> DelassusMatrix | None:
        """Send a joint state; return the published message after a check."""
        return self.publish(self.answer(self.state(*args, **options)))

    def read(self, topic: str, message: Any, sent: int = 0, count: int = 0) -> bool:
        """Send a message of a topic, serialized or not; return whether an answer is due."""
        data = message if isinstance(message, bytes) else serialize_message(message)
        return self.tick.read(topic, data, sent, count)

    def answer(self, joint_state: bytes | None = None) -> bytes | None:
        """Return the matrix for the joint state that waits, or for another one."""
        if joint_state is not None:
            self.read("joint_states", joint_state)
        return self.taken(self.tick.answer())

    def watch(self) -> bytes | None:
        """Return the matrix about a silence; None without a silence."""
        return self.taken(self.tick.watch())

    def taken(self, messages: Messages) -> bytes | None:
        """Return the first one of messages, which is a matrix; keep the following ones."""
        found = list(messages)
        assert not found or found[0][0] == "~/delassus"
        self.following = dict(found[1:])
        return found[0][1] if found else None

    def wait(self, ms: float) -> None:
        self.now += round(ms * MS)

    def good(self) -> DelassusMatrix | None:
        """Send good messages of all inputs; return the published message."""
        self.touch(*self.problem.contacts.names)
        if "odometry" in self.healths():
            self.turn(_LEVEL)
        return self.send()

    # What goes out.

    @property
    def text(self) -> str:
        """What is wrong, in words."""
        return self.tick.last.text

    def healths(self) -> dict[str, InputHealth]:
        """Return the health of each input by topic."""
        return self.tick.healths()

    def publish(self, data: bytes | None) -> DelassusMatrix | None:
        if data is None:
            return None
        message = deserialize_message(data, DelassusMatrix)
        self.messages.append(message)
        self.check(message)
        return message

    def check(self, message: DelassusMatrix) -> None:
        """Fail unless a message is marked INVALID, with a reason, or its matrix is right."""
        last = self.tick.last
        assert (int(last.validity), int(last.reasons)) == (message.validity, message.reasons)
        assert message.sequence == self.tick.sequence
        assert message.layout_id == self.layout.layout_id
        if message.validity == INVALID:
            assert message.reasons != 0 and last.text
            assert len(message.matrix) == 0 and not message.contacts
            return
        if message.validity == DEGRADED:
            assert message.reasons != 0 and last.text
        names = self.problem.contacts.names if self._all_rows else self.touching
        assert tuple(message.contacts) == names
        if message.reasons & _UNKNOWN_SET:
            assert set(message.status) == {ActiveContacts.UNKNOWN}
        elif self.status:
            inactive = ActiveContacts.INACTIVE
            assert list(message.status) == [self.status.get(each, inactive) for each in names]
        stamp = message.header.stamp.sec * 10**9 + message.header.stamp.nanosec
        expected = self.matrix(stamp, message.contacts)
        found = matrix_to_numpy(message)
        if message.damping:
            assert message.reasons & Reason.DAMPED
            return
        assert np.linalg.norm(found - expected) <= 1e-9 * np.linalg.norm(expected)

    def matrix(self, stamp: int, contacts: Sequence[str]) -> np.ndarray:
        """Return the matrix that is right for a stamp."""
        options = {} if self.orientation is None else {"base_orientation": self.orientation}
        q = np.array(self.full(stamp))
        dense = reference(self.problem)
        return dense.solve(q, active=tuple(contacts), **options).matrix.copy()


def said(message: DelassusMatrix | None) -> tuple[int, Reason]:
    """Return validity and reasons."""
    assert message is not None
    return message.validity, Reason(message.reasons)


def placed(
    names: Sequence[str],
    positions: Sequence[Sequence[float]],
    turns: Sequence[Sequence[float]] | None = None,
    stamp: int = 0,
) -> ContactPlacements:
    message = ContactPlacements(names=list(names))
    for position, turn in zip(positions, turns or [_LEVEL] * len(positions), strict=True):
        pose = Pose()
        pose.position.x, pose.position.y, pose.position.z = map(float, position)
        o = pose.orientation
        o.x, o.y, o.z, o.w = map(float, turn)
        message.poses.append(pose)
    message.header.stamp = to_message(stamp)
    return message


def moving_contacts(axes: Any = "contact") -> Problem:
    """Return the quadruped with a foot that rolls, a hand that touches anywhere, and a foot."""
    return Problem(
        Robot.from_urdf(robots.unlimited()),
        [
            Contact("rolls", "LF_FOOT", moving="position"),
            Contact("slides", "RF_FOOT", "surface", moving="pose"),
            Contact("stays", "LH_FOOT"),
        ],
        axes,
    )


class MovingRig(Rig):
    """A rig that knows where contacts are."""

    positions: dict[str, list[float]]
    turns: dict[str, list[float]]

    def place(self, name: str, position: Sequence[float], turn: Sequence[float] = _LEVEL) -> None:
        if not hasattr(self, "positions"):
            self.positions, self.turns = {}, {}
        self.positions[name], self.turns[name] = list(position), list(turn)
        self.read("contact_placements", placed([name], [position], [turn], self.now))

    def good(self) -> DelassusMatrix | None:
        """Send good messages of all inputs; return the published message."""
        for name in self.problem.moving:
            self.place(name, [0.0, 0.0, 0.01])
        return super().good()

    def matrix(self, stamp: int, contacts: Sequence[str]) -> np.ndarray:
        q = np.array(self.full(stamp))
        turning = {n: t for n, t in self.turns.items() if n in self.problem.turning}
        return reference(self.problem).solve(
            q, active=tuple(contacts), contact_positions=self.positions,
            contact_orientations=turning or None,
        ).matrix.copy()  # fmt: skip


_ACTIVE, _INACTIVE, _SLIPPING = (
    ActiveContacts.ACTIVE, ActiveContacts.INACTIVE, ActiveContacts.SLIPPING
)  # fmt: skip
TROT = (
    (_ACTIVE, _INACTIVE, _INACTIVE, _ACTIVE), (_INACTIVE, _ACTIVE, _SLIPPING, _INACTIVE)
)  # fmt: skip
"""Status of the feet in the two modes of a trot."""


class ScheduleRig(Rig):
    """A tick of the quadruped whose contacts are scheduled."""

    def __init__(self, timeout: float = 0.5) -> None:
        robot = Robot.from_urdf(robots.unlimited())
        problem = Problem(robot, [Contact(foot, f"{foot}_FOOT") for foot in _FEET])
        super().__init__(
            DelassusSolver(problem), limits=Limits(contacts_timeout=timeout),
            schedule=ScheduleInput(timeout),
        )  # fmt: skip

    def plan(self, at: float | None = 0.0, **changes: Any) -> ContactSchedule:
        """Send a trot of modes of 20 ms each, beginning `at` ms from now; no stamp if None."""
        message = ContactSchedule(
            names=list(_FEET), times=[0.02 * k for k in range(4)], end=0.08,
            status=[value for k in range(4) for value in TROT[k % 2]],
        )  # fmt: skip
        if at is not None:
            message.header.stamp = to_message(self.now + round(at * MS))
        for name, value in changes.items():
            setattr(message, name, value)
        self.read("contact_schedule", message)
        return message

    def good(self) -> DelassusMatrix:
        """Send a good schedule; return the published message."""
        self.plan()
        return self.ask(mode(0))

    def ask(self, expected: tuple[str, ...] | None) -> DelassusMatrix:
        """Send a joint state; its matrix is checked to have these contacts."""
        self.touching = expected
        answer = self.send()
        assert answer is not None
        return answer


def mode(k: int) -> tuple[str, ...]:
    return tuple(f for f, s in zip(_FEET, TROT[k % 2], strict=True) if s != _INACTIVE)


class GateRig:
    """A gate of joint states without a tick, and the positions that it lets through.

    Parameters
    ----------
    robot : robot of the joint states.
    **limits : for the gate.
    """

    def __init__(self, robot: Robot, **limits: float) -> None:
        self.robot, self.joints = robot, list(robot.joint_names)
        self.gate = JointGate(robot, **limits)
        self.gate.reset(START)
        self.q = np.full(robot.nq, np.nan)

    def send(
        self,
        names: Sequence[str] | None = None,
        values: Any = None,
        stamp: float = 0.0,
        now: float | None = None,
        count: int = 0,
    ) -> InputStatus:
        """Read a joint state stamped `stamp` ms after START, which comes at `now` ms.

        By default it has all joints at random positions, and comes at its stamp.
        """
        names = self.joints if names is None else names
        if values is None:
            values = np.random.default_rng(1).uniform(-1, 1, len(names))
        stamp, now = (START + round(each * MS) for each in (stamp, stamp if now is None else now))
        positions = np.asarray(values, dtype=float)
        return self.gate.read(names, stamp, positions, now, self.q, count=count)
