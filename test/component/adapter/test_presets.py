"""Each file of config/robots: a maker's messages through the adapter, beside standard messages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import robots
import yaml
from delassus_msgs.msg import ActiveContacts, DelassusMatrix
from delassus_msgs_py import matrix_to_numpy
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState
from tick_support import MS, START, to_message

from delassus import DelassusSolver
from delassus.errors import InputError
from delassus_ros.adapter.conversion import Adapter, Converted
from delassus_ros.adapter.fields import message_type
from delassus_ros.adapter.node import standard_messages
from delassus_ros.inputs.limits import Limits
from delassus_ros.node.matrix import make_layout
from delassus_ros.node.tick import DelassusTick
from delassus_ros.ros.arrival import stamp_of
from delassus_ros.verbs.parameter_files import settings_of

CONFIG = Path(__file__).resolve().parents[3] / "config" / "robots"
ROBOTS = sorted(file.stem for file in CONFIG.glob("*.yaml"))
UP = 9.81
pytestmark = pytest.mark.usefixtures("makers")


def flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict):
            found |= flat(value, f"{prefix}{key}.")
        else:
            found[f"{prefix}{key}"] = value
    return found


def parameters(name: str, **changes: Any) -> dict[str, Any]:
    """Return the parameters of the adapter; `__` in names of changes stands for a dot."""
    content = yaml.safe_load((CONFIG / f"{name}.yaml").read_text(encoding="utf-8"))
    found = flat(content["/**/delassus_adapter"]["ros__parameters"])
    return found | {key.replace("__", "."): value for key, value in changes.items()}


def adapter(name: str, **changes: Any) -> Adapter:
    return Adapter(parameters(name, **changes))


@pytest.mark.parametrize("name", ROBOTS)
def test_the_parameters_of_the_node_are_right(name: str) -> None:
    assert settings_of(str(CONFIG / f"{name}.yaml")).contacts.names


@pytest.mark.parametrize("name", [each for each in ROBOTS if each != "ergocub"])
def test_the_fields_are_those_of_the_type(name: str) -> None:
    made = adapter(name)
    assert made.converts_joints or made.converts_contacts or made.converts_orientation


# --- messages of each type -----------------------------------------------------------------------


def values(count: int, seed: int = 0) -> np.ndarray:
    """Return joint values that single precision holds."""
    return np.float32(np.random.default_rng(seed).uniform(-0.6, 0.6, count)).astype(float)


def low_state(kind: str, q: np.ndarray, tick: int = 1000) -> Any:
    """Return a unitree LowState whose trunk is level."""
    message = message_type(f"{kind}/msg/LowState")()
    for motor, value in zip(message.motor_state, q, strict=False):
        motor.q, motor.dq, motor.tau_est = float(value), float(2 * value), float(3 * value)
    message.imu_state.quaternion[:] = [1.0, 0.0, 0.0, 0.0]
    message.imu_state.accelerometer[:] = [0.0, 0.0, UP]
    message.tick = tick
    return message


class Node:
    """The tick of delassus_node for a preset and a robot."""

    def __init__(self, name: str, urdf: str) -> None:
        settings = settings_of(str(CONFIG / f"{name}.yaml"))
        self.problem = settings.problem(urdf)
        settings.orientation(self.problem)  # refuses a frame that the robot does not have
        self.now = START
        solver = DelassusSolver(self.problem)
        layout = make_layout(self.problem, to_message(START), "odom")
        self.tick = DelassusTick(
            solver, layout, False, lambda: self.now, lambda kind, text: None, Limits()
        )

    def answer(self, found: Converted, contacts: dict[str, int]) -> DelassusMatrix:
        active = ActiveContacts(names=list(contacts), status=list(contacts.values()))
        active.header.stamp = to_message(found.stamp)
        self.tick.read("active_contacts", serialize_message(active))
        assert found.joints is not None
        state = JointState(name=found.joints.names, position=found.joints.position)
        state.header.stamp = to_message(found.stamp)
        self.tick.read("joint_states", serialize_message(state))
        (_, data), *_ = self.tick.answer()
        return deserialize_message(data, DelassusMatrix)


def test_a_recorded_sequence_of_go2_gives_the_matrices_of_standard_messages() -> None:
    """Feet lift one after the other; matrices are those at the joint positions themselves."""
    urdf = robots.example("go2_description/urdf/go2.urdf").read_text(encoding="utf-8")
    made, node = adapter("go2"), Node("go2", urdf)
    names = made.settings["joints.names"]
    feet = list(made.settings["contacts.names"])
    solver = DelassusSolver(node.problem)
    for k in range(8):
        node.now = START + 5 * k * MS
        rest = np.tile([0.0, 0.8, -1.5], 4)
        q = np.float32(rest + 0.3 * values(12) + 0.01 * k).astype(float)
        message = low_state("unitree_go", q, tick=1000 + 5 * k)
        lifted = feet[k % 4]
        message.foot_force[:] = [3 if foot == lifted else 80 for foot in feet]
        found = made.convert(message, node.now)
        assert found.faults == {}
        assert found.stamp == node.now  # both clocks agree here
        assert found.joints is not None and found.joints.position == q.tolist()
        assert found.joints.velocity == [np.float32(2 * v) for v in q]
        assert found.inertial is not None and found.inertial.orientation == [0, 0, 0, 1]
        contacts = found.contacts
        assert contacts == {foot: 1 if foot == lifted else 2 for foot in feet}
        answer = node.answer(found, contacts)
        active = [foot for foot in feet if foot != lifted]
        expected = solver.solve(
            node.problem.robot.q(dict(zip(names, q, strict=True))), active=active
        ).matrix
        assert answer.validity == DelassusMatrix.VALIDITY_OK, node.tick.last.text
        assert set(answer.contacts) == set(active)
        assert np.array_equal(matrix_to_numpy(answer), expected)


def test_g1_in_joint_mode_and_in_motor_mode() -> None:
    urdf = robots.example("g1_description/urdf/g1_29dof_rev_1_0.urdf").read_text(encoding="utf-8")
    made, node = adapter("g1"), Node("g1", urdf)
    names = list(made.settings["joints.names"])
    q = values(29)
    message = low_state("unitree_hg", q)
    found = made.convert(message, START)
    assert found.joints is not None and found.joints.names == names
    assert set(names) == set(node.problem.robot.joint_names)
    solver = DelassusSolver(node.problem)
    answer = node.answer(found, {"left_sole": 2, "right_sole": 2})
    expected = solver.solve(node.problem.robot.q(dict(zip(names, q, strict=True)))).matrix
    assert np.array_equal(matrix_to_numpy(answer), expected)
    message.mode_pr = 1
    motors = made.convert(message, START).joints
    assert motors is not None and motors.position == found.joints.position
    assert [n for n in motors.names if n not in names] == [
        "left_ankle_B", "left_ankle_A", "right_ankle_B", "right_ankle_A", "waist_A", "waist_B"
    ]  # fmt: skip
    message.mode_pr = 7
    refused = made.convert(message, START)
    assert refused.joints is None
    assert refused.faults["joints"] == "mode_pr is 7; expected 0 for joints or 1 for motors"


def test_h1_leaves_the_unused_motor_out() -> None:
    made = adapter("h1")
    found = made.convert(low_state("unitree_go", values(20)), START).joints
    assert found is not None and len(found.names) == 19
    assert found.position == np.delete(values(20), 9).tolist()


@pytest.mark.parametrize("state", ["serial", "parallel"])
def test_t1_has_joints_and_motors(state: str) -> None:
    changes = {
        f"joints__{key}": f"motor_state_{state}[].{name}"
        for key, name in (("position", "q"), ("velocity", "dq"), ("effort", "tau_est"))
    }
    made = adapter("t1", **changes)
    message, motor = made.type(), message_type("booster_interface/msg/MotorState")
    q = values(23)
    message.motor_state_serial = [motor(q=value) for value in q]
    message.motor_state_parallel = [motor(q=-value) for value in q]
    message.imu_state.rpy[:] = [0.0, 0.0, np.pi / 2]
    found = made.convert(message, START)
    sign = 1.0 if state == "serial" else -1.0
    assert found.joints is not None and found.joints.position == (sign * q).tolist()
    assert found.stamp == START and found.faults == {}
    assert found.inertial is not None
    assert found.inertial.orientation == pytest.approx([0, 0, np.sqrt(0.5), np.sqrt(0.5)])


def test_spot_s_unknown_contacts_stay_unknown() -> None:
    made = adapter("spot")
    foot = message_type("spot_msgs/msg/FootState")
    message = made.type(states=[foot(contact=c) for c in (1, 2, 0, 9)])
    found = made.convert(message, START)
    assert found.contacts == {
        "front_left": ActiveContacts.ACTIVE, "front_right": ActiveContacts.INACTIVE,
        "rear_left": ActiveContacts.UNKNOWN, "rear_right": ActiveContacts.UNKNOWN,
    }  # fmt: skip
    assert found.joints is None and found.faults == {}


def test_franka_s_joint_state_in_its_robot_state() -> None:
    made = adapter("franka")
    message = made.type()
    q = values(7).tolist()
    message.measured_joint_state.name = [f"fr3_joint{k}" for k in range(1, 8)]
    message.measured_joint_state.position = q
    message.measured_joint_state.velocity = q
    message.measured_joint_state.effort = q
    message.header.stamp = to_message(START - 3 * MS)
    found = made.convert(message, START)
    assert found.stamp == START - 3 * MS
    assert found.joints is not None and found.joints.position == q
    assert found.joints.names == message.measured_joint_state.name


def test_talos_s_sensor_has_joints_base_and_contacts_in_one_stamp() -> None:
    made = adapter("talos")
    urdf = robots.talos().read_text(encoding="utf-8")
    node = Node("talos", urdf)
    names = list(node.problem.robot.joint_names)
    message, contact = made.type(), message_type("linear_feedback_controller_msgs/msg/Contact")
    message.joint_state.name = names
    message.joint_state.position = values(len(names)).tolist()
    message.joint_state.velocity = message.joint_state.effort = [0.0] * len(names)
    message.base_pose.position.z = 1.0
    message.base_twist.angular.x = 0.25
    message.contacts = [
        contact(name="left_sole_link", active=True), contact(name="right_sole_link", active=False)
    ]  # fmt: skip
    message.header.stamp = to_message(START)
    found = made.convert(message, START)
    assert found.base is not None and found.base.position == [0, 0, 1]
    assert found.base.twist == [0, 0, 0, 0.25, 0, 0]
    assert found.contacts == {"left_sole_link": 2, "right_sole_link": 1}
    answer = node.answer(found, found.contacts)
    q = node.problem.robot.q(dict(zip(names, message.joint_state.position, strict=True)))
    expected = DelassusSolver(node.problem).solve(q, active=["left_sole_link"]).matrix
    assert np.array_equal(matrix_to_numpy(answer), expected)


def test_whole_body_state_turns_rates_into_the_axes_of_the_base() -> None:
    made = adapter("whole_body_state")
    package = "whole_body_state_msgs/msg"
    joint, contact = (message_type(f"{package}/{n}") for n in ("JointState", "ContactState"))
    message = made.type()
    message.joints = [joint(name="a", position=0.5, velocity=1.0, effort=-2.0)]
    message.contacts = [contact(name=str(k), status=k) for k in range(4)]
    message.centroidal.base_orientation.z = message.centroidal.base_orientation.w = np.sqrt(0.5)
    message.centroidal.base_angular_velocity.x = 1.0
    found = made.convert(message, START)
    # Turned by 90° about z: x of the world is -y of the base.
    assert found.inertial is not None
    assert found.inertial.angular_velocity == pytest.approx([0, -1, 0], abs=1e-15)
    assert found.contacts == {"0": 0, "1": 1, "2": 2, "3": 3}
    assert found.joints is not None and found.joints.effort == [-2.0]
    assert "the stamp is zero" in found.faults["stamp"] and found.stamp == START


# --- faults --------------------------------------------------------------------------------------


def test_a_stamp_that_no_clock_gives_is_replaced_by_the_time_of_arrival() -> None:
    made = Adapter({
        "source.type": "sensor_msgs/msg/JointState", "stamp.field": "header",
        "joints.names": ["a"], "joints.position": "position",
    })  # fmt: skip
    message = JointState(position=[0.5])
    message.header.stamp.sec, message.header.stamp.nanosec = 2**31 - 1, 2**32 - 1
    found = made.convert(message, START)
    assert "more ns than a second" in found.faults["stamp"] and found.stamp == START
    state = standard_messages(found, made.settings)["joint_states"]
    assert stamp_of(state.header.stamp.sec, state.header.stamp.nanosec) == START


def test_a_quaternion_in_the_other_order_is_noticed_by_the_accelerometer() -> None:
    message = low_state("unitree_go", values(12))
    wrong = adapter("go2", imu__order="xyzw").convert(message, START)
    assert "set imu.order to 'wxyz'" in wrong.faults["orientation"]
    # x, y, z, w of a quarter turn about the vertical.
    message.imu_state.quaternion[:] = [0.0, 0.0, np.sqrt(0.5), np.sqrt(0.5)]
    wrong = adapter("go2").convert(message, START)
    assert "set imu.order to 'xyzw'" in wrong.faults["orientation"]
    # A robot that lies on its back contradicts nothing.
    message.imu_state.quaternion[:] = [0.0, 1.0, 0.0, 0.0]
    message.imu_state.accelerometer[:] = [0.0, 0.0, -UP]
    assert adapter("go2").convert(message, START).faults == {}


def franka_of_two_arms(message: Any) -> None:
    """List the joints of both arms and a finger; values of the second arm are commands."""
    state = message.measured_joint_state
    state.name = [f"joint{k}" for k in range(15)]
    state.position = state.velocity = state.effort = [0.1] * 15


def five_feet(message: Any) -> None:
    message.states = [message_type("spot_msgs/msg/FootState")() for _ in range(5)]


def states_of_t1(count: int) -> Callable[[Any], None]:
    def set_states(message: Any) -> None:
        motor = message_type("booster_interface/msg/MotorState")
        message.motor_state_serial = [motor() for _ in range(count)]

    return set_states


@pytest.mark.parametrize(
    ("preset", "changes", "spoil", "kind", "words"),
    [
        ("go2", {}, lambda m: m.imu_state.quaternion.fill(0.0), "orientation",
         "imu_state.quaternion has norm 0; expected a unit quaternion"),
        ("franka", {}, franka_of_two_arms, "joints",
         "measured_joint_state.name has 15 names; expected 7 (joints.count): the message is of"),
        ("t1", {}, states_of_t1(20), "joints",
         "motor_state_serial[].q has 20 entries, fewer than the 23 joints: 'Right_Knee_Pitch' is"),
        ("t1", {}, states_of_t1(29), "joints",
         "motor_state_serial[].q has 29 entries, more than the 23 joints: the message is of"),
        ("t1", {"stamp__tick": "motor_state_serial[3].mode"}, states_of_t1(3), "stamp",
         "the message lacks motor_state_serial[3].mode: an array is too short: the time of"),
        ("g1", {}, lambda m: setattr(m, "mode_machine", 4), "joints",
         "mode_machine is 4; expected 0, 2, 5, 11, 13, 15 (joints.machines): the message is of"),
        ("g1", {}, lambda m: setattr(m, "mode_pr", 7), "joints",
         "mode_pr is 7; expected 0 for joints or 1 for motors"),
        ("spot", {}, five_feet, "contacts",
         "states[].contact has 5 entries, more than the 4 contacts"),
        ("go2", {"imu__angular_velocity": "imu_state.quaternion"}, lambda m: None, "orientation",
         "imu_state.quaternion has 4 entries; expected 3"),
        ("whole_body_state", {}, lambda m: setattr(m.header.stamp, "sec", -5), "stamp",
         "the stamp is zero or negative, or has more ns than a second: the time of arrival"),
    ],
)  # fmt: skip
def test_a_message_that_does_not_fit_is_said_and_its_part_left_out(
    preset: str, changes: dict[str, Any], spoil: Callable[[Any], object], kind: str, words: str
) -> None:
    made = adapter(preset, **changes)
    message = made.type()
    spoil(message)
    found = made.convert(message, START)
    assert words in found.faults[kind]
    part = {"orientation": found.inertial, "joints": found.joints, "contacts": found.contacts}
    assert part.get(kind) is None
    assert kind != "stamp" or found.stamp == START


def test_forces_that_are_no_numbers_make_unknown_contacts() -> None:
    """With forces as floating-point numbers: here the torques of motors stand for feet."""
    made = adapter("go2", contacts__force="motor_state[].ddq")
    message = low_state("unitree_go", values(12))

    def statuses(*forces: float) -> list[int]:
        for motor, force in zip(message.motor_state, forces, strict=False):
            motor.ddq = force
        found = made.convert(message, START)
        assert found.contacts is not None
        assert ("contacts" in found.faults) == bool(np.isnan(forces).any())
        return list(found.contacts.values())

    assert statuses(31.0, 30.0, 21.0, 0.0) == [2, 1, 1, 1]
    # Hysteresis: on above 30, off below 20.
    assert statuses(21.0, 25.0, 25.0, 31.0) == [2, 1, 1, 2]
    assert statuses(float("nan"), 0.0, 0.0, 19.0) == [0, 1, 1, 1]
    assert statuses(25.0, 0.0, 0.0, 25.0) == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"joints__position": "motor_states[].q"},
            "no|unknown field 'motor_states'; did you mean",
        ),
        ({"joints__position": "motor_state.q"}, "motor_state is an array; write motor_state"),
        ({"joints__position": "tick"}, "tick is a single uint32; expected an array of numbers"),
        ({"joints__position": "motor_state[20].q"}, r"motor_state has 20 entries, no \[20\]"),
        ({"joints__count": 12}, "'joints.count' is set without 'joints.names_field'"),
        ({"joints__machines": [1]}, "'joints.machine_field' and 'joints.machines' belong"),
        ({"stamp__tick": "foot_force"}, "is an array of int16; expected a whole number"),
        ({"stamp__tick": "imu_state"}, "is a single unitree_go/IMUState; expected a whole number"),
        ({"stamp__tick": "motor_state[0].q"}, "is a single float; expected a whole number"),
        ({"stamp__tick": "", "stamp__field": "tick"}, "uint32; expected a time or a header"),
        ({"imu__orientation": "imu_state"}, "expected an array of numbers, or a message with x"),
        ({"contacts__names": [], "contacts__names_field": "foot_force"}, "an array of texts"),
        ({"joints__position": "tick[]"}, "tick is a uint32, no array"),
        ({"joints__position": "motor_state[].q.x"}, "unknown field 'x'"),
        ({"joints__position": "motor state"}, "expected names of fields"),
        ({"source__type": "unitree_go/msg/LowStat"}, "unknown message 'LowStat'; did you mean"),
        ({"source__type": "LowState"}, "is no type; expected e.g."),
        ({"source__type": ""}, "'source.type' is empty"),
        ({"contacts__force_off": 40.0}, "'contacts.force_off' is 40, above"),
        ({"imu__rpy": "imu_state.rpy"}, "'imu.orientation' and 'imu.rpy' exclude each other"),
        ({"joints__names": ["a", "a"]}, "has 'a' more than once"),
        ({"joints__names": []}, "one of the parameters 'joints.names' and"),
        ({"imu__order": "wxzy"}, "unknown imu.order 'wxzy'"),
    ],
)
def test_refuses_parameters_that_do_not_fit(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        adapter("go2", **changes)


def test_a_missing_package_is_named_with_its_origin() -> None:
    changed = parameters("go2", source__type="unitree_gone/msg/LowState")
    words = "'unitree_gone' is not installed for .*; it comes from https://github.com/unitree"
    with pytest.raises(InputError, match=words):
        Adapter(changed)
