"""Makers' messages made of standard ones: what is read from them again is what was written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from delassus_msgs.msg import ActiveContacts, PredictedStates
from rcl_interfaces.msg import ParameterValue
from ros_support import LATCHED, Graph, overrides
from sensor_msgs.msg import Imu, JointState, Joy
from test_presets import MS, START, parameters, values

from delassus.errors import InputError
from delassus_ros.adapter.conversion import (
    BaseState,
    Converted,
    Inertial,
    Joints,
    Refused,
)
from delassus_ros.adapter.fields import field_of
from delassus_ros.adapter.node import AdapterNode
from delassus_ros.adapter.outward import Outward
from delassus_ros.adapter.writing import Writer

QUATERNION = (np.array([0.1, -0.4, 0.3, 0.86]) / np.linalg.norm([0.1, -0.4, 0.3, 0.86])).tolist()
CONFIG = Path(__file__).resolve().parents[3] / "config" / "robots"


def writer(name: str, **changes: Any) -> Writer:
    return Writer(parameters(name, **{"direction": "to_maker", **changes}))


def given(names: list[str], contacts: dict[str, int] | None = None) -> Converted:
    """Return a state with all parts."""
    q = values(len(names)).tolist()
    return Converted(
        START - 3 * MS,
        Joints(names, q, [2 * v for v in q], [3 * v for v in q]),
        Inertial(QUATERNION, [0.1, 0.2, -0.3], None),
        BaseState([1.0, 2.0, 3.0], QUATERNION, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]),
        contacts or {},
    )


@pytest.mark.usefixtures("makers")
def test_whole_body_state_is_written_as_it_is_read() -> None:
    made = writer("whole_body_state")
    contacts = {"LF_FOOT": 2, "RF_FOOT": 1, "LH_FOOT": 0, "RH_FOOT": 3}
    state = given(["hip", "knee", "ankle"], contacts)
    message = made.message(state)
    assert [joint.name for joint in message.joints] == ["hip", "knee", "ankle"]
    assert message.centroidal.base_orientation.w == QUATERNION[3]
    assert [contact.status for contact in message.contacts] == [2, 1, 0, 3]
    # In the axes of the world, as the definition has them.
    rates = message.centroidal.base_angular_velocity
    assert not np.allclose([rates.x, rates.y, rates.z], [0.1, 0.2, -0.3], atol=1e-2)
    found = made.adapter.convert(message, START)
    assert found.faults == {} and found.stamp == state.stamp
    assert found.joints == state.joints and found.contacts == contacts
    assert found.inertial is not None and state.inertial is not None
    assert found.inertial.orientation == pytest.approx(QUATERNION, abs=1e-15)
    assert found.inertial.angular_velocity == pytest.approx([0.1, 0.2, -0.3], abs=1e-15)


@pytest.mark.usefixtures("makers")
def test_other_types_are_written_by_their_mapping() -> None:
    """Arrays of fixed size with w first and unused entries; a pose, a twist and true or false."""
    made = writer("h1", stamp__tick="", contacts__names=[], imu__linear_acceleration="")
    names = [name for name in made.adapter.settings["joints.names"] if name]
    state = given(names)
    message = made.message(state)
    assert message.imu_state.quaternion[0] == np.float32(QUATERNION[3])
    assert len(message.motor_state) == 20 and message.motor_state[9].q == 0.0
    found = made.adapter.convert(message, START)
    assert found.joints == state.joints

    made = writer("talos")
    state = given(["a", "b"], {"left_sole_link": 2, "right_sole_link": 1})
    found = made.adapter.convert(made.message(state), START)
    assert (found.joints, found.base, found.contacts) == (state.joints, state.base, state.contacts)
    assert found.stamp == state.stamp
    with pytest.raises(Refused, match="a contact is unknown, for which the message has no value"):
        made.message(given(["a"], {"left_sole_link": 0}))

    made = writer("spot", contacts__names=["front_left", "front_right"], **JOINT_OF_SPOT)
    found = made.adapter.convert(made.message(given(["a"], {"front_right": 1})), START)
    assert found.contacts == {"front_left": 0, "front_right": 1}


JOINT_OF_SPOT = {
    "joints__names": ["a"],
    "joints__position": "states[].foot_position_rt_body.z",
}


@pytest.mark.usefixtures("makers")
@pytest.mark.parametrize(
    ("name", "changes", "words"),
    [
        ("go2", {}, "'stamp.tick' can only be read"),
        ("g1", {"stamp__tick": ""}, "'joints.mode_field' can only be read"),
        ("t1", {}, "'imu.rpy' can only be read"),
        ("spot", {}, "'joints.position' is empty; with direction 'to_maker'"),
        ("talos", {"contacts__active": []}, "are needed to write a status"),
        ("talos", {"direction": "both"}, "unknown direction 'both'"),
    ],
)
def test_what_cannot_be_written_is_refused(name: str, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        writer(name, **changes)


@pytest.mark.usefixtures("makers")
def test_what_a_message_lacks_is_named() -> None:
    made = writer("whole_body_state")
    state = given(["hip"])
    state.inertial = None
    with pytest.raises(Refused, match="no orientation has come that belongs to the joint state"):
        made.message(state)
    state.inertial = Inertial(QUATERNION, None, None)
    with pytest.raises(Refused, match="the orientation comes without angular_velocity"):
        made.message(state)
    made = writer("h1", stamp__tick="", imu__linear_acceleration="")
    with pytest.raises(Refused, match="the joint state lacks joint 'right_hip_roll_joint'"):
        made.message(given(["left_hip_yaw_joint"]))
    names = [name for name in made.adapter.settings["joints.names"] if name]
    state = given(names)
    assert state.joints is not None
    state.joints.position[2] = 1e300
    with pytest.raises(Refused, match=r"motor_state\[\].q has no room for 1e\+300: it is of"):
        made.message(state)
    made = writer("whole_body_state", contacts__active=[300])
    with pytest.raises(Refused, match="has no room for 300: it is of type uint8"):
        made.message(given(["a"], {"LF_FOOT": 2}))
    made = writer("talos")
    state = given(["a", "b"])
    assert state.joints is not None
    state.joints.effort.pop()
    with pytest.raises(Refused, match="has 2 names, 1 effort"):
        made.message(state)


# --- the node, with a type that is installed -----------------------------------------------------

MAPPING = {
    "direction": "to_maker",
    "source.type": "delassus_msgs/msg/PredictedStates",
    "source.topic": "maker",
    "stamp.field": "header",
    "joints.names_field": "joints",
    "joints.position": "positions",
    "imu.orientation": "base_orientations[0]",
    "contacts.names_field": "contacts",
    "contacts.status": "status",
    "contacts.inactive": [1],
    "contacts.active": [2],
}


@pytest.fixture
def graph(capfd: pytest.CaptureFixture[str]) -> Iterator[Graph]:
    with Graph(capfd) as made:
        yield made


def test_the_node_makes_messages_of_standard_ones(graph: Graph) -> None:
    graph.add(AdapterNode(context=graph.context, parameter_overrides=overrides(MAPPING)))
    found: list[PredictedStates] = []
    graph.peer.create_subscription(PredictedStates, "maker", found.append, 10)
    states = graph.peer.create_publisher(JointState, "joint_states", 10)
    turns = graph.peer.create_publisher(Imu, "imu", 10)
    contacts = graph.peer.create_publisher(ActiveContacts, "active_contacts", LATCHED)
    state, turn = JointState(name=["hip", "knee"], position=[0.5, -1.0]), Imu()
    touch = ActiveContacts(names=["foot"], status=[ActiveContacts.ACTIVE])
    for k, message in enumerate((state, turn, touch)):
        message.header.stamp.sec, message.header.stamp.nanosec = 12, k * 1000
    turn.orientation.x, turn.orientation.w = 0.6, 0.8

    def lacks_base() -> bool:
        states.publish(state)
        return any("no orientation has come" in line for line in graph.log)

    graph.until(lacks_base, "warning about the base")
    assert not found

    def came() -> bool:
        for publisher, message in ((contacts, touch), (turns, turn), (states, state)):
            publisher.publish(message)
        return bool(found and found[-1].contacts)

    graph.until(came, "message of the maker")
    message = found[-1]
    assert (message.joints, list(message.positions)) == (["hip", "knee"], [0.5, -1.0])
    assert message.base_orientations[0] == turn.orientation
    assert (message.contacts, list(message.status)) == (["foot"], [2])
    assert message.header.stamp.sec == 12
    # The robot goes on, and its contacts are those of before: they are unknown then.
    state.header.stamp.sec = turn.header.stamp.sec = 13
    graph.until(lambda: came() and list(found[-1].status) == [0], "unknown contacts")
    turn.header.stamp.nanosec = 500_000_000
    words = "the stamps of orientation and joint state are 0.5 s apart, at most 0.1 s are allowed"
    graph.until(lambda: came() and any(words in line for line in graph.log), "an old orientation")


def test_contacts_that_contradict_themselves_are_written_as_unknown(graph: Graph) -> None:
    """And an Imu that says that it has no orientation gives none, whatever its quaternion."""
    made: list[tuple[Any, dict[str, str]]] = []
    Outward(graph.peer, Writer(MAPPING), lambda *both: made.append(both))
    receive = {one.topic_name: one.callback for one in graph.peer.subscriptions}
    state, turn, touch = JointState(name=["hip"], position=[0.5]), Imu(), ActiveContacts()
    turn.orientation.w = 1.0
    for message in (state, turn, touch):
        message.header.stamp.sec = 12
    receive["/imu"](turn)
    for names, status, written, words in (
        (["foot", "heel"], [2], ["foot", "heel"], "has 2 names but 1 status values"),
        (["foot"], [9], ["foot"], "contact 'foot' has status 9; expected one of UNKNOWN=0"),
        (["foot", "foot"], [1, 2], ["foot"], "contact 'foot' is listed more than once"),
    ):
        touch.names, touch.status = names, status
        receive["/active_contacts"](touch)
        receive["/joint_states"](state)
        message, faults = made[-1]
        assert (message.contacts, list(message.status)) == (written, [0] * len(written))
        assert faults.keys() == {"contacts"} and words in faults["contacts"]
    touch.names, touch.status = ["foot"], [2]
    receive["/active_contacts"](touch)
    receive["/joint_states"](state)
    message, faults = made[-1]
    assert (message.contacts, list(message.status), faults) == (["foot"], [2], {})
    turn.orientation_covariance[0] = -1.0
    receive["/imu"](turn)
    receive["/joint_states"](state)
    assert made[-1] == (None, {"joints": "the Imu says that it has no orientation"})


def test_entries_of_a_grown_array_have_the_type_of_its_values() -> None:
    """Messages check the types of all entries that are set if ROS_PYTHON_CHECK_FIELDS is 1."""
    for path, value, expected in (
        ("name", ["hip", "knee"], ["hip", "knee"]),
        ("name[1]", "knee", ["", "knee"]),
        ("position", [0.5, -1.0], [0.5, -1.0]),
        ("position[1]", -1.0, [0.0, -1.0]),
    ):
        message = JointState(check_fields=True)
        field_of(JointState, path, "parameter").write(message, value)
        assert list(getattr(message, path.partition("[")[0])) == expected
    for kind, name, value, expected in (
        (Joy, "buttons", 1, [0, 1]),
        (ParameterValue, "bool_array_value", True, [False, True]),
        (ParameterValue, "byte_array_value", b"\x01", [b"\0", b"\x01"]),
    ):
        message = kind(check_fields=True)
        field_of(kind, f"{name}[1]", "parameter").write(message, value)
        assert list(getattr(message, name)) == expected


def test_the_preset_says_how_to_write() -> None:
    text = (CONFIG / "whole_body_state.yaml").read_text(encoding="utf-8")
    assert "-p direction:=to_maker" in text
    assert "direction" not in yaml.safe_load(text)["/**/delassus_adapter"]["ros__parameters"]
