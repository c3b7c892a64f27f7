"""Outputs of motion, placements and estimates in a storm of bad inputs: what says OK is right.

The truth is a function of the stamp alone: joints that swing, a base with a constant twist, whose
orientation is an exponential, torques and placements that are constant. Some wrong inputs cannot
be told from right ones: of a second publisher, fresh and plausible values, until it is known that
two take turns. So those come here only while the nodes say that there are two.
"""

from __future__ import annotations

import itertools
import math
import random
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from delassus_msgs.msg import (
    ContactDynamics,
    ContactPlacements,
    DelassusMatrix,
    Estimate,
    Layout,
)
from delassus_msgs_py import ReceivedDynamics, dynamics_to_numpy, matrix_to_numpy
from friction import moving_residual
from geometry_msgs.msg import Pose, WrenchStamped
from hanging import HANG_S
from nav_msgs.msg import Odometry
from node_support import FEET, OK
from oracles import relative
from oracles.pinocchio_models import Peer
from processes import node_program, ros_program
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile
from rclpy.serialization import deserialize_message
from ros_support import LATCHED, Graph, stamp_of
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import String

from delassus import Contact, Problem, Robot
from delassus.model import Transform
from delassus.robots.built_in import demo_urdf
from delassus_ros.inputs.findings import Reason
from delassus_ros.node.matrix import make_layout
from delassus_ros.node.parameters import Settings

RATE = 500.0
SENSORS_EVERY = 5
"""Joint states between two messages of every other topic."""
HOSTILE_EVERY = 16
ALGORITHMS = ("efpa", "ltl", "kjr", "pv_osim", "pv_osimr", "dense", "nonsense")
LINEAR, ANGULAR = np.array([0.3, -0.1, 0.2]), np.array([0.02, -0.04, 0.4])
TILT = pin.rpy.rpyToMatrix(0.2, -0.15, 0.7)
GRAVITY = np.array([0.0, 0.0, -9.81])
TORQUES = np.linspace(-6.0, 7.0, 12)
MIDDLE = np.tile([0.0, 0.7, -1.4], 4)
HELD = np.array([4.0, -3.0, 60.0])
"""Force on the first foot, in its axes [N]; the others bear the rest."""
PLACES = {
    "LF": ((0.01, -0.02, 0.005), (0.0, 0.0, 0.0)),
    "RF": ((-0.015, 0.01, 0.02), (0.4, -0.3, 0.2)),
}
"""Positions and roll, pitch, yaw of the contacts that move on their links."""
SIGMA = {"base": 2.0, "joints": 5.0, "effort": 1.0, "imu": 0.3, "force": 0.5}
LATE, SLOW, AHEAD = -3600_000_000_000, -700_000_000, 300_000_000  # ns
SIGMAS = 3.0
"""Most that an estimate that is OK may be off, in its standard deviations."""
NAMES = ("INVALID", "DEGRADED", "OK")
TOLD = (
    Reason.ORIENTATION_INVALID, Reason.TORQUE_INVALID, Reason.WRENCH_INVALID, Reason.IMU_INVALID,
    Reason.PLACEMENT_INVALID, Reason.JOINT_OUTSIDE_LIMITS, Reason.JOINT_NOT_FINITE,
    Reason.STAMP_IN_FUTURE, Reason.SENSORS_CONTRADICT, Reason.STAMP_JUMPED_BACK,
)  # fmt: skip
"""Reasons that are told of hostile messages."""
PAIR_LASTS, PAUSE = 0.4, 1.2  # s
FRICTION, STRIKE = 0.5, 20.0  # m/s, above which a contact strikes

JOINTS, ODOMETRY, IMU, TORQUE, PLACEMENT, WRENCH = (
    "joint_states", "odometry", "imu", "joint_torques", "contact_placements", "wrenches/LF_FOOT",
)  # fmt: skip
KINDS = {
    JOINTS: JointState, ODOMETRY: Odometry, IMU: Imu, TORQUE: JointState,
    PLACEMENT: ContactPlacements, WRENCH: WrenchStamped,
}  # fmt: skip
TOPICS = tuple(KINDS)


def set_fields(target: Any, fields: str, values: Any) -> None:
    for field, value in zip(fields, values, strict=True):
        setattr(target, field, float(value))


class Truth:
    """The robot at each stamp, and the messages that say so.

    Parameters
    ----------
    urdf : the description of the robot on which the efforts act.
    """

    def __init__(self, urdf: str) -> None:
        self.epoch = time.time_ns()
        self.robot = Robot.from_urdf(urdf.encode())
        self.names = list(self.robot.joint_names)
        feet = [Contact(foot, f"{foot}_FOOT") for foot in FEET]
        self.peer = Peer(Problem(self.robot, feet, outputs=["h"]))
        self._phase = 1.7 * np.arange(len(self.names))

    def seconds(self, stamp: int) -> float:
        return 1e-9 * (stamp - self.epoch)

    def q(self, stamp: int) -> np.ndarray:
        return MIDDLE + 0.25 * np.sin(3.0 * self.seconds(stamp) + self._phase)

    def velocities(self, stamp: int) -> np.ndarray:
        return 0.75 * np.cos(3.0 * self.seconds(stamp) + self._phase)

    def accelerations(self, stamp: int) -> np.ndarray:
        return -2.25 * np.sin(3.0 * self.seconds(stamp) + self._phase)

    def pose(self, stamp: int) -> Any:
        """Return the pose of the base, which moves with its twist."""
        moved = pin.exp6(pin.Motion(LINEAR, ANGULAR) * self.seconds(stamp))
        return pin.SE3(TILT, np.zeros(3)) * moved

    def turn(self, stamp: int) -> np.ndarray:
        """Return the rotation from the base's axes to the world's."""
        return np.array(self.pose(stamp).rotation)

    def inputs(self, stamp: int, axes: str) -> dict[str, np.ndarray]:
        turn = self.turn(stamp)
        found = {
            "q": self.q(stamp), "rates": np.r_[LINEAR, ANGULAR, self.velocities(stamp)],
            "torques": np.r_[np.zeros(6), TORQUES], "gravity": GRAVITY,
        }  # fmt: skip
        if axes == "world":
            found["base_orientation"] = pin.Quaternion(turn).coeffs()
        else:
            found["gravity"] = turn.T @ GRAVITY
        return found

    def driven(self, stamp: int) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
        """Return torques of the joints, forces (4, 3) on the feet, and Pinocchio's terms."""
        terms = self.peer.at(self.inputs(stamp, "contact"))
        wanted = terms["M"][:, 6:] @ self.accelerations(stamp) + terms["h"]
        J, forces = terms["J"], np.zeros(12)
        forces[:3] = HELD
        base = (wanted - J.T @ forces)[:6]
        forces[3:] = np.linalg.lstsq(J[3:, :6].T, base, rcond=None)[0]
        return (wanted - J.T @ forces)[6:], forces.reshape(4, 3), terms

    def message(self, topic: str, stamp: int) -> Any:
        """Return the right message of a topic."""
        message = KINDS[topic]()
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, 10**9)
        if topic == JOINTS:
            message.name, message.position = list(self.names), self.q(stamp).tolist()
            message.velocity = self.velocities(stamp).tolist()
            message.effort = self.driven(stamp)[0].tolist()
        elif topic == ODOMETRY:
            message.header.frame_id, message.child_frame_id = "odom", "base"
            pose = self.pose(stamp)
            set_fields(message.pose.pose.position, "xyz", pose.translation)
            quaternion = pin.Quaternion(pose.rotation).coeffs()
            set_fields(message.pose.pose.orientation, "xyzw", quaternion)
            set_fields(message.twist.twist.linear, "xyz", LINEAR)
            set_fields(message.twist.twist.angular, "xyz", ANGULAR)
        elif topic == IMU:
            message.header.frame_id, turn = "base", self.turn(stamp)
            set_fields(message.orientation, "xyzw", pin.Quaternion(turn).coeffs())
            set_fields(message.angular_velocity, "xyz", ANGULAR)
            felt = np.cross(ANGULAR, LINEAR) - turn.T @ GRAVITY
            set_fields(message.linear_acceleration, "xyz", felt)
        elif topic == TORQUE:
            message.name, message.effort = list(self.names), TORQUES.tolist()
        elif topic == WRENCH:
            message.header.frame_id = "LF_FOOT"
            set_fields(message.wrench.force, "xyz", HELD)
        else:
            for name, (position, angles) in PLACES.items():
                pose = Pose()
                set_fields(pose.position, "xyz", position)
                turn = pin.Quaternion(pin.rpy.rpyToMatrix(*angles)).coeffs()
                set_fields(pose.orientation, "xyzw", turn)
                message.names.append(name)
                message.poses.append(pose)
        return message

    def wrong(self, topic: str, stamp: int) -> Any:
        """Return a message of a topic with values that are plausible and far off."""
        message = self.message(topic, stamp)
        if topic == JOINTS:
            message.position = [0.0, 0.5, -1.0] * 4
            message.velocity = [0.0] * 12
        elif topic == ODOMETRY:
            set_fields(message.pose.pose.orientation, "xyzw", (0.6, 0.0, 0.0, 0.8))
            set_fields(message.twist.twist.linear, "xyz", (-2.0, 1.0, 0.5))
            set_fields(message.twist.twist.angular, "xyz", (1.0, -2.0, 0.3))
        elif topic == IMU:
            set_fields(message.orientation, "xyzw", (0.6, 0.0, 0.0, 0.8))
            set_fields(message.linear_acceleration, "xyz", (30.0, -20.0, -9.81))
        elif topic == TORQUE:
            message.effort = (-3.0 * TORQUES + 1.0).tolist()
        elif topic == WRENCH:
            set_fields(message.wrench.force, "xyz", (-90.0, 80.0, -40.0))
        else:
            for pose in message.poses:
                set_fields(pose.position, "xyz", (0.2, 0.1, -0.15))
                set_fields(pose.orientation, "xyzw", (0.0, 0.8, 0.0, 0.6))
        return message

    # What estimates follow from, without the package.

    def covariances(self, terms: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Return variances of torques (12,) and covariances of forces (4, 3, 3).

        Dense least squares over accelerations (18,) and forces (12,), with the motion of the base
        as a constraint.
        """
        effect = np.hstack([terms["M"], -terms["J"].T])
        constraint, torques = effect[:6], effect[6:]
        unit = np.eye(30)
        measured = np.vstack([
            unit[:6] / SIGMA["base"], unit[6:18] / SIGMA["joints"], torques / SIGMA["effort"],
            unit[:3] / SIGMA["imu"], unit[18:21] / SIGMA["force"],
        ])  # fmt: skip
        free = np.linalg.svd(constraint)[2][6:].T
        spread = free @ np.linalg.inv((measured @ free).T @ (measured @ free)) @ free.T
        of_torques = np.einsum("ij,jk,ik->i", torques, spread, torques)
        forces = spread[18:, 18:]
        return of_torques, np.array([forces[k : k + 3, k : k + 3] for k in range(0, 12, 3)])


def hostile_messages() -> list[tuple[str, Callable[[Truth, int], Any]]]:
    """Return, by topic, makers of messages that nobody may believe, from the truth and a time.

    What only its order tells, as an older stamp within the timeout, has values that are right.
    """

    def stamped(topic: str, by: int, wrong: bool = True) -> tuple[str, Any]:
        def make(truth: Truth, now: int) -> Any:
            return (truth.wrong if wrong else truth.message)(topic, now + by)

        return topic, make

    def spoilt(topic: str, spoil: Callable[[Any], object]) -> tuple[str, Any]:
        def make(truth: Truth, now: int) -> Any:
            message = truth.wrong(topic, now)
            spoil(message)
            return message

        return topic, make

    def unstamped(message: Any) -> None:
        message.header.stamp.sec = message.header.stamp.nanosec = 0

    def base(field: str, axes: str, values: Any) -> tuple[str, Any]:
        """A refused twist leaves the orientation, which has to be right then."""

        def make(truth: Truth, now: int) -> Odometry:
            message = (truth.wrong if field == "pose" else truth.message)(ODOMETRY, now)
            target = {
                "pose": message.pose.pose.orientation, "linear": message.twist.twist.linear,
                "angular": message.twist.twist.angular,
            }[field]  # fmt: skip
            set_fields(target, axes, values)
            return message

        return ODOMETRY, make

    def felt(*values: float) -> tuple[str, Any]:
        """Of an Imu the accelerations, which are not those of the node for matrices."""

        def make(truth: Truth, now: int) -> Imu:
            message = truth.message(IMU, now)
            set_fields(message.linear_acceleration, "xyz", values)
            return message

        return IMU, make

    def named(target: str, name: str) -> Callable[[Any], object]:
        return lambda m: setattr(m.header if target == "frame_id" else m, target, name)

    nan = math.nan
    return [
        base("pose", "xyzw", (nan, 0, 0, 1)), base("pose", "xyzw", (0, 0, 0, 0)),
        base("pose", "xyzw", (1, 1, 1, 1)), base("linear", "xyz", (nan, 0, 0)),
        base("linear", "xyz", (1e9, 0, 0)), base("angular", "xyz", (0, math.inf, 0)),
        spoilt(ODOMETRY, named("frame_id", "map")), spoilt(ODOMETRY, named("frame_id", "")),
        spoilt(ODOMETRY, named("child_frame_id", "stranger")),
        spoilt(ODOMETRY, named("child_frame_id", "RF_FOOT")),
        spoilt(ODOMETRY, unstamped), stamped(ODOMETRY, AHEAD), stamped(ODOMETRY, -LATE),
        stamped(ODOMETRY, LATE), stamped(ODOMETRY, SLOW), stamped(ODOMETRY, -60_000_000, False),
        felt(nan, 0.0, 0.0), felt(30.0, -20.0, -9.81),
        spoilt(IMU, lambda m: m.orientation_covariance.__setitem__(0, -1.0)),
        spoilt(IMU, unstamped), stamped(IMU, LATE), stamped(IMU, SLOW), stamped(IMU, AHEAD),
        spoilt(TORQUE, lambda m: m.name.__setitem__(3, "stranger")),
        spoilt(TORQUE, lambda m: m.effort.__setitem__(5, nan)),
        spoilt(TORQUE, lambda m: m.effort.pop()), spoilt(TORQUE, unstamped),
        spoilt(TORQUE, lambda m: m.name.__setitem__(0, m.name[1])),
        stamped(TORQUE, LATE), stamped(TORQUE, SLOW), stamped(TORQUE, AHEAD),
        stamped(TORQUE, -LATE), stamped(TORQUE, -60_000_000, False),
        spoilt(WRENCH, named("frame_id", "RF_FOOT")), spoilt(WRENCH, named("frame_id", "world")),
        spoilt(WRENCH, lambda m: set_fields(m.wrench.force, "xyz", (nan, 0, 0))),
        spoilt(WRENCH, lambda m: None), spoilt(WRENCH, unstamped),
        stamped(WRENCH, LATE), stamped(WRENCH, SLOW), stamped(WRENCH, AHEAD),
        spoilt(PLACEMENT, lambda m: m.names.__setitem__(0, m.names[1])),
        spoilt(PLACEMENT, lambda m: m.poses.pop()),
        spoilt(PLACEMENT, lambda m: set_fields(m.poses[1].position, "xyz", (nan, 0, 0))),
        spoilt(PLACEMENT, lambda m: set_fields(m.poses[0].position, "xyz", (1e7, 0, 0))),
        stamped(PLACEMENT, LATE), stamped(PLACEMENT, SLOW),
        stamped(PLACEMENT, -60_000_000, False), stamped(PLACEMENT, AHEAD),
        spoilt(PLACEMENT, unstamped), stamped(PLACEMENT, -LATE),
        (PLACEMENT, _turned_twice), (PLACEMENT, _with_strangers),
        (JOINTS, partial(_joints, "position", lambda values: [nan, *values[1:]])),
        (JOINTS, partial(_joints, "velocity", lambda values: [nan, *values[1:]])),
        (JOINTS, partial(_joints, "velocity", lambda values: [])),
        (JOINTS, partial(_joints, "effort", lambda values: [values[0], nan, *values[2:]])),
        (JOINTS, partial(_joints, "effort", lambda values: [v + 80.0 for v in values])),
        (JOINTS, partial(_joints, "velocity", lambda values: [2e5, *values[1:]])),
        (JOINTS, partial(_joints, "effort", lambda values: [*values[:-1], 2e11])),
        (JOINTS, partial(_joints, "name", lambda values: ["stranger", *values[1:]])),
        (JOINTS, partial(_joints, "name", lambda values: [values[1], *values[1:]])),
        (JOINTS, partial(_joints, "position", lambda values: values[1:])),
        stamped(JOINTS, LATE, False), stamped(JOINTS, AHEAD, False),
    ]  # fmt: skip


def _joints(field: str, spoil: Callable[[Any], Any], truth: Truth, now: int) -> JointState:
    message = truth.message(JOINTS, now)
    setattr(message, field, spoil(list(getattr(message, field))))
    return message


def _in_degrees(truth: Truth, stamp: int) -> JointState:
    return _joints("position", lambda values: np.degrees(values).tolist(), truth, stamp)


def _turned_twice(truth: Truth, now: int) -> ContactPlacements:
    """Return places that are right with quaternions of norm 2, which count with contact axes."""
    message = truth.message(PLACEMENT, now)
    for pose in message.poses:
        set_fields(pose.orientation, "xyzw", (0.0, 1.6, 0.0, 1.2))
    return message


def _with_strangers(truth: Truth, now: int) -> ContactPlacements:
    message = truth.message(PLACEMENT, now)
    for name in ("LH", "stranger"):
        pose = Pose()
        set_fields(pose.position, "xyz", (1.0, 2.0, 3.0))
        message.names.append(name)
        message.poses.append(pose)
    return message


class Twin:
    """A variant of the robot in Pinocchio, with the contacts where they are in truth."""

    def __init__(self, urdf: str, parameters: dict[str, Any], truth: Truth) -> None:
        settings = Settings.from_parameters(parameters)
        problem = settings.problem(urdf)
        more = settings.layout_digest_text(problem)
        world = settings.orientation_world_frame
        self.layout_id = make_layout(problem, Layout().header.stamp, world, more).layout_id
        placed = [
            Contact(foot, f"{foot}_FOOT", placement=Transform.from_xyz_rpy(*PLACES[foot]))
            if foot in PLACES else Contact(foot, f"{foot}_FOOT")
            for foot in FEET
        ]  # fmt: skip
        self.axes, self.truth = problem.axes, truth
        self.peer = Peer(Problem(problem.robot, placed, problem.axes, ["a0"]))

    def at(self, stamp: int, contacts: list[str]) -> dict[str, np.ndarray]:
        """Return every block of a stamp, and G."""
        found = self.peer.at(self.truth.inputs(stamp, self.axes))
        rows = [3 * FEET.index(name) + k for name in contacts for k in range(3)]
        torques = np.r_[np.zeros(6), TORQUES]
        J, M = found["J"][rows], found["M"]
        found["MinvJT"] = np.linalg.solve(M, J.T)
        found["qdd0"] = np.linalg.solve(M, torques - found["h"])
        by_row = {"J": J} | {name: found[name][rows] for name in ("a0", "JdotV", "v", "material")}
        return {**found, **by_row, "G": J @ found["MinvJT"]}


class Pair:
    """A second publisher of a topic: right until the nodes say that there are two, then wrong.

    While matrices are still in doubt, joint states are in degrees until that is said.

    Attributes
    ----------
    told : kinds of messages that have said that there are two.
    in_degrees : whether joint states have to be.
    is_over : whether it has been said of them.
    """

    def __init__(self, topic: str, needed: set[type]) -> None:
        self.topic, self._needed = topic, needed
        self.told: set[type] = set()
        self.in_degrees = self.is_over = False
        self._wrong_until = math.inf

    def hear(self, kind: type, message: Any) -> None:
        if message.reasons & Reason.SOURCES_CONTRADICT:
            self.told.add(kind)
        # Of velocities as well, but for matrices.
        outside = kind is DelassusMatrix and message.reasons & Reason.JOINT_OUTSIDE_LIMITS
        self.is_over = self.is_over or bool(self.in_degrees and outside)

    def next(self, truth: Truth, now: int) -> Any:
        """Return its next message; None where it has ended."""
        if not self._needed <= self.told:
            return truth.message(self.topic, now)
        if self._wrong_until == math.inf:
            self._wrong_until = time.monotonic() + PAIR_LASTS
        if self.in_degrees or time.monotonic() > self._wrong_until:
            self.in_degrees = True
            return None
        return truth.wrong(self.topic, now)


class Storm:
    """The two nodes, whoever sends to them, and what they say.

    Parameters
    ----------
    graph : with a peer that sends.
    axes, source : of the rows; ``"odometry"`` or ``"imu"``.
    """

    def __init__(self, graph: Graph, axes: str, source: str) -> None:
        urdf, mass = demo_urdf(), 'mass value="'
        self.variants = [urdf.replace(mass, mass + digit, 1) for digit in ("", "1", "2")]
        self.truth, self.graph = Truth(urdf), graph
        outputs = ["G", "J", "MinvJT", "M", "forces"]
        # An Imu does not tell the velocity of the base, on which a0 in the world's axes does not
        # depend.
        outputs += ["a0"] if source == "imu" else ["a0", "JdotV", "h", "qdd0"]
        self.parameters: dict[str, Any] = {
            "outputs": outputs, "axes": axes, "orientation.source": source, "torques": "topic",
            "contacts.names": list(FEET), "orientation.world_frame": "odom",
            **{f"contacts.{foot}.frame": f"{foot}_FOOT" for foot in FEET},
            "contacts.LF.moving": "position", "contacts.RF.moving": "pose",
            # Contacts of a robot that flies slide, leave, and strike all the time.
            "friction": FRICTION, "strike_speed": STRIKE,
        }  # fmt: skip
        twins = [Twin(variant, self.parameters, self.truth) for variant in self.variants]
        self.twins = {twin.layout_id: twin for twin in twins}
        assert len(self.twins) == len(self.variants)
        self.received: dict[type, list[bytes]] = {}
        self._good: Counter[type] = Counter()
        self._looked: Counter[type] = Counter()
        self._untold = {*TOLD, Reason.ROBOT_CHANGED}
        self.layouts: list[Layout] = []
        self.pair: Pair | None = None
        self.sent = 0
        peer, deep = graph.peer, QoSProfile(depth=5000)
        for kind, topic in (
            (DelassusMatrix, "delassus_node/delassus"),
            (ContactDynamics, "delassus_node/dynamics"),
            (Estimate, "delassus_estimator/estimate"),
        ):
            self.received[kind] = []
            peer.create_subscription(kind, topic, partial(self._hear, kind), deep, raw=True)
        peer.create_subscription(Layout, "delassus_node/layout", self.layouts.append, LATCHED)
        self.first, self.second = (
            {topic: peer.create_publisher(kind, topic, 100) for topic, kind in KINDS.items()}
            for _ in range(2)
        )
        # Whose word is needed that there are two publishers.
        of_source: set[type] = {Estimate, ContactDynamics}
        self.needed: dict[str, set[type]] = {
            JOINTS: {DelassusMatrix, Estimate}, WRENCH: {Estimate}, PLACEMENT: {DelassusMatrix},
            ODOMETRY: of_source if source == ODOMETRY else {Estimate},
            IMU: of_source if source == IMU else {Estimate}, TORQUE: {ContactDynamics},
        }  # fmt: skip

    def _hear(self, kind: type, data: bytes) -> None:
        self.received[kind].append(data)
        if self.pair is not None:
            self.pair.hear(kind, deserialize_message(data, kind))

    def _has(self, least: int) -> bool:
        """Whether so many messages of each kind are OK, and all that was sent has been told."""
        for kind, received in self.received.items():
            newest = [deserialize_message(data, kind) for data in received[self._looked[kind] :]]
            self._looked[kind] += len(newest)
            self._good[kind] += sum(message.validity == OK for message in newest)
            told = Reason.NONE
            for message in newest:
                told |= Reason(message.reasons)
            self._untold -= {reason for reason in self._untold if told & reason}
        return not self._untold and all(self._good[kind] >= least for kind in self.received)

    def run(self, seconds: float, pairs: tuple[str, ...], swaps: int, least: int) -> None:
        """Send for at least this time [s].

        It ends once each pair of publishers has been, the robot has changed, so many messages of
        each kind are OK, and all reasons of hostile messages have been told.
        """
        graph, chance, truth = self.graph, random.Random(3), self.truth
        arguments = ["-p", "autostart:=true"]
        for name, value in self.parameters.items():
            shown = f"[{', '.join(value)}]" if isinstance(value, list) else value
            arguments += ["-p", f"{name}:={shown}"]
        feet = [f"{foot}_FOOT" for foot in FEET]
        others = ["-p", "autostart:=true", "-p", f"wrenches.names:=[{', '.join(feet)}]"]
        others += ["-r", "robot_description:=another_description", "-p", "imu.frame:=base"]
        others += ["-p", "wrenches.LF_FOOT.sensor:=true"]
        others += ["-p", f"wrenches.LF_FOOT.force_sigma:={SIGMA['force']}"]
        descriptions = graph.peer.create_publisher(String, "another_description", LATCHED)
        setting = graph.peer.create_client(SetParameters, "delassus_node/set_parameters")
        estimator = ros_program("delassus_ros.estimator.node", *others, domain=graph.domain)
        with node_program(*arguments, domain=graph.domain) as node, estimator:
            graph.describe(self.variants[0])
            descriptions.publish(String(data=self.variants[0]))
            node.wait_for("active: from ")
            estimator.wait_for("ready in")
            graph.until(setting.service_is_ready, "service of parameters")
            graph.until(lambda: self.layouts, "layout")
            hostile = itertools.cycle(hostile_messages())
            variants = itertools.cycle(self.variants[1:] + self.variants[:1])
            begun, order, seen = 0, 0, 0
            changed = ended = time.monotonic()
            is_changing = False
            begin = tick = time.monotonic()
            for k in itertools.count():
                now = time.monotonic()
                assert now - begin < seconds + HANG_S, node.output + estimator.output
                done = begun >= len(pairs) and self.pair is None and len(self.layouts) > swaps
                if now - begin >= seconds and done and self._has(least):
                    break
                order = stamp = max(time.time_ns(), order + 1)
                if k % SENSORS_EVERY == 0:
                    for topic in TOPICS:
                        if topic != JOINTS:
                            self.first[topic].publish(truth.message(topic, stamp))
                if k % HOSTILE_EVERY == 3:
                    topic, make = next(hostile)
                    self.first[topic].publish(make(truth, time.time_ns()))
                if k % 50 == 0:
                    graph.touch(chance.sample(FEET, 4 if self.pair else chance.randrange(5)))
                if k % 125 == 60:
                    algorithm = Parameter("algorithm", value=chance.choice(ALGORITHMS))
                    request = SetParameters.Request(parameters=[algorithm.to_parameter_msg()])
                    setting.call_async(request)
                if is_changing and len(self.layouts) > seen:
                    is_changing, changed = False, now
                # Another robot's inputs have yet to learn that there are two publishers.
                if self.pair is None and not is_changing and now - max(ended, changed) > PAUSE:
                    if begun < len(pairs) and chance.random() < 0.5:
                        self.pair, begun = Pair(pairs[begun], self.needed[pairs[begun]]), begun + 1
                    elif len(self.layouts) <= swaps or begun >= len(pairs):
                        is_changing, seen = True, len(self.layouts)
                        graph.describe(next(variants))
                if self.pair is not None and k % SENSORS_EVERY == 2:
                    message = self.pair.next(truth, time.time_ns())
                    if message is not None:
                        self.second[self.pair.topic].publish(message)
                    if self.pair.is_over:
                        self.pair, ended = None, now
                order = max(order, time.time_ns())
                is_strange = self.pair is not None and self.pair.in_degrees
                joints = _in_degrees if is_strange else partial(Truth.message, topic=JOINTS)
                self.first[JOINTS].publish(joints(truth, stamp=order))
                self.sent = k + 1
                tick = max(tick + 1.0 / RATE, time.monotonic() + 0.5 / RATE)
                graph.spin(tick)
            assert node.stop() == 0 and estimator.stop() == 0

    def check(self, least: int) -> Counter[str]:
        """Recompute every OK message; return how many of each kind and validity have come."""
        counts: Counter[str] = Counter()
        self.reasons: dict[type, Reason] = {}
        known: dict[Any, dict[str, np.ndarray]] = {}
        for kind, received in self.received.items():
            told = Reason.NONE
            for data in received:
                message = deserialize_message(data, kind)
                told |= Reason(message.reasons)
                counts[f"{kind.__name__} {NAMES[message.validity]}"] += 1
                if message.validity != OK:
                    continue
                if kind is Estimate:
                    self._check_estimate(message)
                    continue
                key = (message.layout_id, stamp_of(message), tuple(message.contacts))
                if key not in known:
                    twin = self.twins[message.layout_id]
                    known[key] = twin.at(stamp_of(message), list(message.contacts))
                if kind is DelassusMatrix:
                    found = {"G": matrix_to_numpy(message)}
                else:
                    every = dynamics_to_numpy(message)
                    blocks = [*set(self.parameters["outputs"]) - {"G", "forces"}]
                    found = {name: getattr(every, name) for name in blocks}
                    if every.forces is not None:
                        counts["sliding"] += self._check_forces(every, known[key])
                for name, values in found.items():
                    expected = known[key][name]
                    assert values is not None or not expected.size, name
                    if expected.size:
                        assert relative(values, expected) < 1e-8, (name, message.reasons)
            self.reasons[kind] = told
            counts[f"{kind.__name__} recomputed"] = counts[f"{kind.__name__} OK"]
            assert counts[f"{kind.__name__} OK"] >= least, counts
        return counts

    def _check_forces(self, found: ReceivedDynamics, truth: dict[str, np.ndarray]) -> int:
        """Hold forces against their law at the true G, accelerations and velocities.

        Returns the number of contacts that slide and push.
        """
        assert found.forces_validity == OK and found.forces_status == ContactDynamics.FORCES_SOLVED
        assert found.forces is not None
        count = len(found.contacts)
        v = truth["v"] if self.parameters["orientation.source"] == "odometry" else 0 * truth["v"]
        off = moving_residual(
            truth["G"], truth["material"], ["point"] * count, np.full(count, FRICTION),
            found.forces, v, strike=STRIKE,
        )  # fmt: skip
        assert off < 1e-6, (off, found.forces, v)
        slides = np.hypot(v[0::3], v[1::3]) > 0.1
        return int((slides & (found.forces[2::3] > 0.0)).sum())

    def _check_estimate(self, message: Estimate) -> None:
        """Hold an estimate against the truth, and its deviations against dense least squares."""
        torques, forces, terms = self.truth.driven(stamp_of(message))
        variances, covariances = self.truth.covariances(terms)
        assert list(message.joints) == self.truth.names
        np.testing.assert_allclose(message.torque_variances, variances, rtol=1e-6)
        spread = np.array(message.wrench_covariances).reshape(4, 6, 6)[:, :3, :3]
        np.testing.assert_allclose(spread, covariances, rtol=0, atol=1e-6 * covariances.max())
        off = np.abs(np.array(message.torques) - torques) / np.sqrt(variances)
        assert off.max() < SIGMAS, off
        found = np.array([[w.force.x, w.force.y, w.force.z] for w in message.wrenches])
        deviations = np.sqrt(np.einsum("kii->ki", covariances))
        assert (np.abs(found - forces) / deviations).max() < SIGMAS, found - forces


def storm(
    graph: Graph, axes: str, source: str, seconds: float, pairs: tuple[str, ...], swaps: int,
    least: int,
) -> None:  # fmt: skip
    weather = Storm(graph, axes, source)
    weather.run(seconds, pairs, swaps, least)
    counts = weather.check(least)
    print(
        f"\n{axes} axes, {source}: {weather.sent} joint states, {len(pairs)} pairs of publishers, "
        f"{len(weather.layouts) - 1} changes of the robot: {dict(counts)}"
    )
    assert (counts["sliding"] > 0) == (source == "odometry")
    # What was sent has come, and was told.
    told = weather.reasons
    assert told[DelassusMatrix] & Reason.ROBOT_CHANGED
    every = told[DelassusMatrix] | told[ContactDynamics] | told[Estimate]
    assert all(every & reason for reason in TOLD), every
    assert bool(pairs) == bool(every & Reason.SOURCES_CONTRADICT)
    assert bool(pairs) == bool(told[DelassusMatrix] & Reason.JOINT_OUTSIDE_LIMITS)


@pytest.mark.parametrize(
    ("axes", "source", "pairs"),
    [
        ("contact", "odometry", (ODOMETRY, WRENCH)),
        pytest.param("world", "odometry", (TORQUE, PLACEMENT), marks=pytest.mark.slow),
        pytest.param("world", "imu", (JOINTS, IMU), marks=pytest.mark.slow),
    ],
)
def test_a_short_storm_of_motion(graph, axes: str, source: str, pairs: tuple[str, ...]) -> None:
    storm(graph, axes, source, 5.0, pairs, 1, 100)


@pytest.mark.slow
@pytest.mark.parametrize("axes", ["contact", "world"])
def test_a_storm_of_motion_of_three_minutes(graph, axes: str) -> None:
    pairs = tuple(topic for _ in range(4) for topic in TOPICS)
    storm(graph, axes, "odometry", 180.0, pairs, 4, 1000)
