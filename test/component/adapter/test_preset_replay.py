"""Each file of config/robots: a sequence of the maker's messages through adapter and node.

The robot has the names of the file: joints in limbs, contacts at their ends, and the sensor at an
angle. Matrices are those at the positions, orientations and contacts that the messages stand for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from delassus_msgs.msg import ActiveContacts, DelassusMatrix
from delassus_msgs_py import matrix_to_numpy
from extremes import numbers_in
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import Imu, JointState
from test_presets import CONFIG, ROBOTS, low_state, parameters
from tick_support import DEGRADED, INVALID, MS, OK, START, to_message

from delassus import DelassusSolver
from delassus.model.spatial import (
    Transform,
    rotation_from_quaternion,
    rotation_from_rpy,
    skew,
)
from delassus_ros.adapter.conversion import Adapter
from delassus_ros.adapter.fields import message_type
from delassus_ros.adapter.node import standard_messages
from delassus_ros.adapter.writing import spell
from delassus_ros.inputs.limits import Limits
from delassus_ros.node.matrix import make_layout
from delassus_ros.node.parameters import Settings
from delassus_ros.node.tick import DelassusTick
from delassus_ros.verbs.parameter_files import parameters_of

pytestmark = pytest.mark.usefixtures("makers")
STEPS = 5
FREE_NAMES = {
    "franka": [f"fr3_joint{k}" for k in range(1, 8)],
    "talos": ["leg_left_1_joint", "leg_left_2_joint", "leg_right_1_joint", "leg_right_2_joint"],
}
"""Joints of robots whose messages have names."""


@dataclass
class State:
    """What the messages of an instant stand for; numbers have single precision.

    Attributes
    ----------
    names, q : joints and their positions [rad].
    sensor : roll, pitch and yaw of the frame of the source in the world [rad].
    status : status by contact.
    stamp : time [ns], and ms in a tick counter.
    """

    names: list[str]
    q: list[float]
    sensor: list[float]
    status: dict[str, int]
    stamp: int

    @property
    def tick(self) -> int:
        return 1000 + (self.stamp - START) // MS

    @property
    def quaternion(self) -> list[float]:
        """Orientation x, y, z, w."""
        return Transform(rotation_from_rpy(self.sensor)).quaternion().tolist()


def robot_of(settings: Settings, names: list[str], sensor: str) -> str:
    """Return a URDF with these joints, and the frames of contacts and sensor."""
    root = sensor if sensor in ("base_link", "Trunk") else "base_link"
    inertial = (
        '<inertial><origin xyz="0.02 0.01 -0.1"/><mass value="1"/><inertia ixx="0.02" ixy="0"'
        ' ixz="0" iyy="0.03" iyz="0" izz="0.025"/></inertial>'
    )
    text = [f'<link name="{root}">{inertial}</link>']
    frames = list(dict.fromkeys(contact.frame for contact in settings.contacts))

    def add(name: str, parent: str, child: str, xyz: str, rest: str, kind: str) -> None:
        text.append(f'<link name="{child}">{inertial if kind != "fixed" else ""}</link>')
        text.append(
            f'<joint name="{name}" type="{kind}"><origin {xyz}/><parent link="{parent}"/>'
            f'<child link="{child}"/>{rest}</joint>'
        )

    for limb, frame in enumerate(frames):
        parent = root
        for k, name in enumerate(names[limb :: len(frames)]):
            axis = ("1 0 0", "0 1 0", "0 0.6 0.8")[(k + limb) % 3]
            place = f'xyz="{0.1 * (limb % 2) - 0.05} {0.1 * (limb // 2)} {-0.05 - 0.1 * (k > 0)}"'
            add(name, parent, f"{name}_moved", place, f'<axis xyz="{axis}"/>', "continuous")
            parent = f"{name}_moved"
        add(f"{frame}_end", parent, frame, 'xyz="0 0.01 -0.2"', "", "fixed")
    if sensor and sensor != root:
        add("mount", root, sensor, 'xyz="0.1 0 0" rpy="0.1 -0.2 0.3"', "", "fixed")
    return f'<robot name="of_preset">{"".join(text)}</robot>'


# --- messages ------------------------------------------------------------------------------------


def unitree(kind: str) -> Callable[[Any, State], Any]:
    def made(adapter: Adapter, state: State) -> Any:
        by_name = dict(zip(state.names, state.q, strict=True))
        listed = [by_name.get(name, 9.0) for name in adapter.settings["joints.names"]]
        message = low_state(kind, np.array(listed), state.tick)
        x, y, z, w = state.quaternion
        message.imu_state.quaternion[:] = [w, x, y, z]
        up = rotation_from_rpy(state.sensor).T @ [0.0, 0.0, 9.81]
        message.imu_state.accelerometer[:] = up
        if adapter.converts_contacts:
            names = adapter.settings["contacts.names"]
            message.foot_force[:] = [80 if state.status[name] == 2 else 3 for name in names]
        return message

    return made


def booster(adapter: Adapter, state: State) -> Any:
    message, motor = adapter.type(), message_type("booster_interface/msg/MotorState")
    by_name = dict(zip(state.names, state.q, strict=True))
    listed = [by_name.get(name, 9.0) for name in adapter.settings["joints.names"]]
    message.motor_state_serial = [motor(q=value) for value in listed]
    message.motor_state_parallel = [motor(q=-value) for value in listed]
    message.imu_state.rpy[:] = state.sensor
    return message


def spot(adapter: Adapter, state: State) -> Any:
    foot = message_type("spot_msgs/msg/FootState")
    of_maker = {1: 2, 2: 1}
    names = adapter.settings["contacts.names"]
    return adapter.type(states=[foot(contact=of_maker[state.status[name]]) for name in names])


def franka(adapter: Adapter, state: State) -> Any:
    message = adapter.type()
    message.header.stamp = to_message(state.stamp)
    message.measured_joint_state.name, message.measured_joint_state.position = state.names, state.q
    message.measured_joint_state.velocity = message.measured_joint_state.effort = [0.0] * len(
        state.q
    )
    return message


def talos(adapter: Adapter, state: State) -> Any:
    message, contact = adapter.type(), message_type("linear_feedback_controller_msgs/msg/Contact")
    message.header.stamp = to_message(state.stamp)
    message.joint_state.name, message.joint_state.position = state.names, state.q
    message.joint_state.velocity = message.joint_state.effort = [0.0] * len(state.q)
    spell(message.base_pose.orientation, state.quaternion)
    message.contacts = [contact(name=n, active=s == 2) for n, s in state.status.items()]
    return message


def whole_body(adapter: Adapter, state: State) -> Any:
    package = "whole_body_state_msgs/msg"
    joint, contact = (message_type(f"{package}/{n}") for n in ("JointState", "ContactState"))
    message = adapter.type()
    message.header.stamp = to_message(state.stamp)
    message.joints = [joint(name=n, position=q) for n, q in zip(state.names, state.q, strict=True)]
    message.contacts = [contact(name=n, status=s) for n, s in state.status.items()]
    spell(message.centroidal.base_orientation, state.quaternion)
    return message


def broadcaster(adapter: Adapter | None, state: State) -> Any:
    message = Imu()
    message.header.stamp, message.header.frame_id = to_message(state.stamp), "imu_link"
    spell(message.orientation, state.quaternion)
    return message


MESSAGES = {
    "go2": unitree("unitree_go"), "b2": unitree("unitree_go"), "h1": unitree("unitree_go"),
    "g1": unitree("unitree_hg"), "t1": booster, "spot": spot, "franka": franka, "talos": talos,
    "whole_body_state": whole_body, "ros2_control": broadcaster,
}  # fmt: skip
"""Messages of a state; ergoCub's are standard."""


# --- adapter and node ----------------------------------------------------------------------------


class Replay:
    """The adapter of a preset and a node's tick, with world axes where a base turns."""

    def __init__(self, preset: str) -> None:
        self.preset = preset
        self.adapter = None if preset == "ergocub" else Adapter(parameters(preset))
        given = parameters_of(str(CONFIG / f"{preset}.yaml"))
        turns = given["base"] == "floating" and preset != "spot"
        if turns:
            given |= {"axes": "world", "orientation.world_frame": "odom"}
        self.settings = Settings.from_parameters(given)
        listed = [] if self.adapter is None else self.adapter.settings["joints.names"]
        default = [f"joint_{k}" for k in range(8)]
        # Some joints of those in the messages: kernels of all of a humanoid take seconds.
        some = [name for name in listed if name]
        some = some[:: 1 + len(some) // 10]
        self.names = FREE_NAMES.get(preset) or some or default
        self.sensor = ""
        if turns:
            self.sensor = given.get("orientation.frame") or "imu_link"
            if preset == "talos":
                self.sensor = "base_link"
        self.problem = self.settings.problem(robot_of(self.settings, self.names, self.sensor))
        self.now = START
        self.solver = DelassusSolver(self.problem, "ltl")
        self.tick = DelassusTick(
            self.solver, make_layout(self.problem, to_message(START), "odom"),
            self.settings.rows == "all", lambda: self.now, lambda kind, text: None, Limits(),
            None, self.settings.orientation(self.problem) if turns else None,
        )  # fmt: skip
        self.faults: dict[str, str] = {}

    def state(self, k: int) -> State:
        rng = np.random.default_rng(k)
        self.now = START + 5 * k * MS

        def single(values: np.ndarray) -> list[float]:
            return np.float32(values).astype(float).tolist()

        contacts = self.settings.contacts.names
        status = {name: 1 if c == k % len(contacts) else 2 for c, name in enumerate(contacts)}
        q = single(0.2 * k + rng.uniform(-0.05, 0.05, len(self.names)))
        sensor = single(np.array([0.05, -0.1, 0.2]) * (k + 1))
        return State(list(self.names), q, sensor, status, self.now)

    def answer(self, state: State, message: Any) -> DelassusMatrix:
        """Return the answer to a message of the maker, and to standard ones for the rest."""
        standard: dict[str, Any] = {}
        if self.adapter is not None:
            found = self.adapter.convert(message, self.now)
            self.faults = found.faults
            standard = standard_messages(found, self.adapter.settings)
        if self.adapter is None:
            standard["imu"] = broadcaster(None, state)
        if self.adapter is None or not self.adapter.converts_joints:
            joints = JointState(name=state.names, position=state.q)
            joints.header.stamp = to_message(state.stamp)
            standard["joint_states"] = joints
        for topic in ("odometry", "imu", "active_contacts"):
            if topic in standard:
                self.tick.read(topic, serialize_message(standard[topic]))
        self.tick.read("joint_states", serialize_message(standard["joint_states"]))
        (_, data), *_ = self.tick.answer()
        return deserialize_message(data, DelassusMatrix)

    def expected(self, state: State, active: list[str]) -> np.ndarray:
        turn = {}
        if self.sensor:
            mount = self.problem.robot.frames[self.sensor].placement.rotation
            base = rotation_from_rpy(state.sensor) @ mount.T
            turn = {"base_orientation": Transform(base).quaternion()}
            assert np.allclose(rotation_from_quaternion(turn["base_orientation"]), base)
        q = self.problem.robot.q(dict(zip(state.names, state.q, strict=True)))
        return self.solver.solve(q, active, **turn).matrix


@pytest.mark.parametrize("preset", ROBOTS)
def test_a_sequence_of_messages_gives_the_matrices_of_what_they_stand_for(preset: str) -> None:
    replay = Replay(preset)
    seen = []
    for k in range(STEPS):
        state = replay.state(k)
        message = None if replay.adapter is None else MESSAGES[preset](replay.adapter, state)
        answer = replay.answer(state, message)
        assert replay.faults == {}
        has_contacts = replay.adapter is not None and replay.adapter.converts_contacts
        active = [name for name, status in state.status.items() if status == 2]
        if not has_contacts:
            # The file asks for the rows of all contacts, and nothing tells which of them touch.
            assert replay.settings.rows == "all" and set(answer.status) == {ActiveContacts.UNKNOWN}
            active = list(replay.settings.contacts.names)
        assert answer.validity == (OK if has_contacts else DEGRADED), replay.tick.last.text
        assert answer.contacts == active
        expected = replay.expected(state, active)
        # Quaternions of makers have single precision.
        error = np.linalg.norm(matrix_to_numpy(answer) - expected) / np.linalg.norm(expected)
        assert error < 1e-6, (k, error)
        if not replay.sensor:
            assert error < 1e-14
        seen.append(expected)
    assert all(np.linalg.norm(a - seen[0]) > 1e-3 for a in seen[1:] if a.shape == seen[0].shape)


@pytest.mark.parametrize(
    "preset", ["go2", "b2", "g1", "h1", "t1", "franka", "talos", "whole_body_state"]
)
def test_a_joint_that_is_no_number_is_named_and_one_that_is_missing_too(preset: str) -> None:
    replay = Replay(preset)
    assert replay.adapter is not None
    state = replay.state(0)
    state.q[1] = float("nan")
    answer = replay.answer(state, MESSAGES[preset](replay.adapter, state))
    assert answer.validity == INVALID and answer.reasons & DelassusMatrix.REASON_JOINT_NOT_FINITE
    assert f"the position of joint {state.names[1]!r} is nan" in replay.tick.last.text
    # Arrays of fixed size always have the motors.
    if preset in ("franka", "talos", "whole_body_state"):
        state = replay.state(1)
        short = MESSAGES[preset](
            replay.adapter, State(state.names[:-1], state.q[:-1], state.sensor, state.status, 0)
        )
        found = replay.adapter.convert(short, replay.now)
        message = standard_messages(found, replay.adapter.settings).get("joint_states")
        if message is None:
            words = "measured_joint_state.name has 6 names; expected 7 (joints.count)"
            assert preset == "franka" and words in found.faults["joints"]
        else:
            replay.tick.read("joint_states", serialize_message(message))
            list(replay.tick.answer())
            assert state.names[-1] not in message.name
        replay.now += 10**10
        (_, data), *_ = replay.tick.watch()
        assert deserialize_message(data, DelassusMatrix).validity == INVALID


@pytest.mark.parametrize("axis", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (0.6, -0.6, 0.5)])
def test_w_at_the_other_end_is_said_of_an_upright_robot_that_turns(axis: Any) -> None:
    """The wrong order is a half turn about the vertical there, which no accelerometer shows."""
    for is_wrong in (False, True):
        replay = Replay("go2")
        adapter = replay.adapter
        assert adapter is not None
        faults = []
        for k in range(3):
            state = replay.state(k)
            turn = rotation_from_rpy([0.02, -0.01, 0.03]) @ rotation_from_rotation_vector(
                0.6 * 0.005 * k * np.array(axis)
            )
            message = MESSAGES["go2"](adapter, state)
            x, y, z, w = Transform(turn).quaternion().tolist()
            message.imu_state.quaternion[:] = [x, y, z, w] if is_wrong else [w, x, y, z]
            message.imu_state.gyroscope[:] = 0.6 * np.array(axis)
            message.imu_state.accelerometer[:] = turn.T @ [0.0, 0.0, 9.81]
            faults.append(adapter.convert(message, replay.now).faults.get("orientation", ""))
        words = "turns about another axis than the gyroscope; as xyzw both agree: set imu.order"
        assert faults[0] == "" and all((words in text) is is_wrong for text in faults[1:]), faults


def rotation_from_rotation_vector(vector: np.ndarray) -> np.ndarray:
    w = skew(vector)
    return np.eye(3) + w + w @ w / 2.0 + w @ w @ w / 6.0


@pytest.mark.parametrize("preset", ["go2", "b2", "g1", "h1"])
def test_a_state_that_is_sent_again_with_its_tick_grows_old(preset: str) -> None:
    replay = Replay(preset)
    assert replay.adapter is not None
    state = replay.state(1)
    message = MESSAGES[preset](replay.adapter, state)
    assert replay.answer(state, message).validity != INVALID
    for _ in range(6):
        replay.now += 100 * MS
        answer = replay.answer(state, message)
    assert answer.validity == INVALID and answer.reasons & DelassusMatrix.REASON_INPUT_STALE
    assert "the joint positions are 0.6 s old" in replay.tick.last.text


@pytest.mark.parametrize("preset", ["go2", "b2", "g1", "h1"])
def test_w_at_the_other_end_is_said(preset: str) -> None:
    replay = Replay(preset)
    adapter = replay.adapter
    assert adapter is not None
    state = replay.state(1)
    # A turn about the vertical: upright, both orders agree with the accelerometer.
    state.sensor = [0.0, 0.0, 1.5]
    message = MESSAGES[preset](adapter, state)
    w, x, y, z = message.imu_state.quaternion.tolist()
    message.imu_state.quaternion[:] = [x, y, z, w]
    found = adapter.convert(message, replay.now)
    assert "set imu.order to 'xyzw'" in found.faults["orientation"]
    message.imu_state.quaternion[:] = [0.0] * 4
    assert adapter.convert(message, replay.now).inertial is None


@pytest.mark.parametrize("preset", [name for name in ROBOTS if name != "ergocub"])
def test_no_number_of_a_message_is_a_fault_of_the_program(preset: str) -> None:
    """Each number of each message at the ends of its type is converted or refused in words."""
    replay = Replay(preset)
    adapter, state = replay.adapter, replay.state(0)
    assert adapter is not None
    message = MESSAGES[preset](adapter, state)
    for put, before, ends in numbers_in(message):
        for end in ends:
            put(end)
            found = adapter.convert(message, replay.now)
            for standard in standard_messages(found, adapter.settings).values():
                serialize_message(standard)
        put(before)
