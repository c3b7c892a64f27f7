"""Parameters that override the QoS of the node's topics."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from delassus_msgs.msg import ActiveContacts
from node_support import (
    state_of,
)
from rclpy.parameter import Parameter
from rclpy.qos_overriding_options import QoSPolicyKind
from std_msgs.msg import String

from delassus.errors import InputError
from delassus_ros.ros.qos import refusal

JOINTS = "qos_overrides./joint_states.subscription"
CONTACTS = "qos_overrides./active_contacts.subscription"
MATRICES = "qos_overrides./delassus_node/delassus.publisher"


@pytest.mark.parametrize(
    ("policy", "value", "words"),
    [
        ("RELIABILITY", "foo", "unknown value 'foo'; values: system_default, reliable"),
        ("RELIABILITY", "reliabel", "did you mean 'reliable'?"),
        ("RELIABILITY", "unknown", "unknown value 'unknown'"),
        ("RELIABILITY", 3, "unknown value '3'"),
        ("HISTORY", "keep", "keep_last"),
        ("DEPTH", -1, "it is -1; expected a number of messages, an integer"),
        ("DEPTH", 0, "it is 0; expected a number of messages, an integer from 1 to"),
        ("DEPTH", 2**31, "expected a number of messages, an integer from 1 to 2147483647"),
        ("DEPTH", 2**40, "it is 1099511627776; expected a number of messages, an integer from 1"),
        ("DEPTH", 2**62, "expected a number of messages, an integer from 1 to"),
        ("DEPTH", 1.5, "it is 1.5; expected a number of messages"),
        ("DEPTH", True, "it is True; expected a number of messages"),
        ("DEADLINE", -5, "it is -5; expected a number of nanoseconds, an integer"),
        ("DEADLINE", 1, "it is 1; expected a number of nanoseconds, an integer: 100000 or more"),
        ("LIFESPAN", 99_999, "it is 99999; expected a number of nanoseconds, an integer: 100000"),
    ],
)
def test_value_of_a_policy_refused(policy: str, value: Any, words: str) -> None:
    found = refusal(QoSPolicyKind[policy], Parameter("", value=value))
    assert found is not None and words in found


@pytest.mark.parametrize(
    ("policy", "value"),
    [("DEPTH", 1), ("DEPTH", 2**31 - 1), ("DEADLINE", 0), ("LIFESPAN", 100_000),
     ("RELIABILITY", "Best_Effort")],
)  # fmt: skip
def test_value_of_a_policy_accepted(policy: str, value: Any) -> None:
    assert refusal(QoSPolicyKind[policy], Parameter("", value=value)) is None


def test_activation_with_a_wrong_value_fails_with_its_name(graph, start) -> None:
    name = f"{JOINTS}.reliability"
    node = start(**{name: "foo"})
    assert f"parameter {name!r}: unknown value 'foo'" in graph.wait_for_log("cannot activate: ")
    assert state_of(node) == "inactive"
    graph.until(
        lambda: not node.get_subscriptions_info_by_topic("/active_contacts"), "end of what began"
    )
    # Nothing is in the way of the next transition.
    node.trigger_activate()
    assert state_of(node) == "inactive"
    node.trigger_cleanup()
    assert state_of(node) == "unconfigured"
    assert not any("Traceback" in line for line in graph.log)


def test_configuration_with_a_wrong_value_of_an_output_fails(graph, start) -> None:
    node = start(**{f"{MATRICES}.deadline": -5})
    line = graph.wait_for_log("cannot configure: ")
    assert f"'{MATRICES}.deadline': it is -5; expected a number of nanoseconds" in line
    assert state_of(node) == "unconfigured"


def test_a_bad_depth_of_the_description_is_refused_by_name(start) -> None:
    name = "qos_overrides./robot_description.subscription.depth"
    with pytest.raises(InputError, match=f"^parameter '{name}': it is 0; expected a number of "):
        start(**{name: 0})


def test_values_in_capitals_are_taken(ready) -> None:
    ready(**{f"{JOINTS}.reliability": "RELIABLE", f"{JOINTS}.history": "Keep_All"})


def test_contacts_of_a_publisher_that_keeps_none_are_heard(graph, start, robot, q) -> None:
    node = start(**{f"{CONTACTS}.durability": "volatile"})
    (contacts,) = node.get_subscriptions_info_by_topic("/active_contacts")
    assert contacts.qos_profile.durability.name == "VOLATILE"
    publisher = graph.peer.create_publisher(ActiveContacts, "active_contacts", 1)
    publish = partial(publisher.publish, ActiveContacts(names=["LF"], status=[2]))
    timer = graph.peer.create_timer(0.05, publish)
    graph.ask_until(lambda m: list(m.contacts) == ["LF"], robot.joint_names, q)
    graph.peer.destroy_timer(timer)
    assert not any("unknown QoS override" in line for line in graph.log)


def test_a_description_of_a_publisher_that_keeps_none_is_heard(graph, start, urdf) -> None:
    override = "qos_overrides./robot_description.subscription.durability"
    node = start(robot_description="", **{override: "volatile"})
    publisher = graph.peer.create_publisher(String, "robot_description", 1)
    graph.until(publisher.get_subscription_count, "the node's subscription")
    publisher.publish(String(data=urdf))
    graph.until(lambda: state_of(node) == "active", "active node")


def test_overrides_that_no_topic_has_are_named(graph, start) -> None:
    wrong = (f"{CONTACTS}.durabilty", f"{JOINTS}.durability", "qos_overrides./tf.publisher.depth")
    start(**dict.fromkeys(wrong, "volatile"), **{f"{JOINTS}.depth": 3})
    graph.wait_for_log("active: from ")
    for name in wrong:
        assert graph.wait_for_log(f"unknown QoS override {name!r}").endswith("; it is ignored")
    assert f"did you mean '{CONTACTS}.durability'?" in graph.wait_for_log("durabilty'")
    assert sum("unknown QoS override" in line for line in graph.log) == len(wrong)
