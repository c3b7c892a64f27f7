"""No handler of the middleware's QoS events, and what the node finds out without them."""

from __future__ import annotations

import pytest
from delassus_msgs.msg import ActiveContacts, DelassusMatrix
from node_support import (
    Manager,
    set_parameters,
    state_of,
)
from processes import ROOT, node_program, wait_until
from rclpy.duration import Duration
from rclpy.event_handler import (
    EventHandler,
    PublisherEventCallbacks,
    SubscriptionEventCallbacks,
)
from rclpy.qos import (
    DurabilityPolicy,
    LivelinessPolicy,
    QoSProfile,
    ReliabilityPolicy,
)
from std_msgs.msg import String

from delassus_ros.ros.qos import Mismatches, incompatible_policies

CONFIG = ROOT / "config"
ROUNDS = 15


def handlers(node) -> list[object]:
    return [each for each in node.waitables if isinstance(each, EventHandler)]


def test_no_end_of_the_node_has_a_handler_of_events(graph, start) -> None:
    """A transition would destroy one that rclpy's executor is about to call."""
    assert handlers(graph.peer), "rclpy has other defaults"
    deadline = "qos_overrides./delassus_node/delassus.publisher.deadline"
    node = start(**{deadline: 1_000_000})
    assert state_of(node) == "active"
    set_parameters(node, use_sim_time=True)
    topics = {end.topic_name for end in (*node.publishers, *node.subscriptions)}
    assert {"/clock", "/joint_states", "/delassus_node/delassus", "/parameter_events"} <= topics
    assert handlers(node) == []


def test_transitions_while_others_that_do_not_match_come_and_go(graph, urdf) -> None:
    """In a process of its own, as it is that which would end; a deadline is missed, too."""
    quiet = {
        "publisher": {"event_callbacks": PublisherEventCallbacks(use_default_callbacks=False)},
        "subscription": {
            "event_callbacks": SubscriptionEventCallbacks(use_default_callbacks=False)
        },
    }
    peer = graph.peer
    best_effort, latched = QoSProfile(depth=1, **BEST_EFFORT), QoSProfile(depth=1, **LATCHED)
    manager = Manager(graph)
    missed = "qos_overrides./delassus_node/delassus.publisher.deadline:=1000000"
    arguments = ["--params-file", str(CONFIG / "quadruped.yaml"), "-p", missed]
    graph.describe(urdf)
    with node_program(*arguments, domain=graph.domain) as node:
        node.wait_for("active: from")
        manager.state()
        for label in ROUNDS * ("deactivate", "cleanup", "configure", "activate"):
            answer = manager.begin(label=label)

            def come_and_go() -> None:
                heard = peer.create_subscription(
                    DelassusMatrix,
                    "delassus_node/delassus",
                    lambda _: None,
                    latched,
                    **quiet["subscription"],
                )
                said = peer.create_publisher(
                    ActiveContacts, "active_contacts", best_effort, **quiet["publisher"]
                )
                graph.executor.spin_once(timeout_sec=0.001)
                peer.destroy_subscription(heard)
                peer.destroy_publisher(said)

            wait_until(answer.done, f"end of {label}", node.fault, node.report, come_and_go)
            assert answer.result().success, label
        assert node.stop() == 0, node.output


BEST_EFFORT = {"reliability": ReliabilityPolicy.BEST_EFFORT}
LATCHED = {"durability": DurabilityPolicy.TRANSIENT_LOCAL}
SLOW, FAST = {"deadline": Duration(seconds=2)}, {"deadline": Duration(seconds=1)}
BY_HAND = {"liveliness": LivelinessPolicy.MANUAL_BY_TOPIC}
LEASE = {"liveliness_lease_duration": Duration(seconds=1)}


@pytest.mark.parametrize(
    ("offer", "request_", "expected"),
    [
        ({}, {}, []),
        (LATCHED, BEST_EFFORT, []),
        (BEST_EFFORT, {}, ["RELIABILITY"]),
        ({}, LATCHED, ["DURABILITY"]),
        (BEST_EFFORT, LATCHED, ["RELIABILITY", "DURABILITY"]),
        ({}, FAST, ["DEADLINE"]),
        (FAST, SLOW, []),
        (SLOW, FAST, ["DEADLINE"]),
        ({}, BY_HAND, ["LIVELINESS"]),
        ({}, LEASE, ["LIVELINESS"]),
    ],
)
def test_policies_that_do_not_match_are_those_that_the_middleware_minds(
    graph, offer, request_, expected
) -> None:
    peer = graph.peer
    publisher = peer.create_publisher(String, "topic", QoSProfile(depth=1, **offer))
    peer.create_subscription(String, "topic", lambda _: None, QoSProfile(depth=1, **request_))
    graph.until(lambda: peer.count_subscribers("/topic"), "subscription")
    (offered,) = peer.get_publishers_info_by_topic("/topic")
    (requested,) = peer.get_subscriptions_info_by_topic("/topic")
    assert incompatible_policies(offered.qos_profile, requested.qos_profile) == expected
    matched = 0 if expected else 1
    graph.until(lambda: publisher.get_subscription_count() == matched, "what is expected")


def test_endpoints_are_compared_only_where_some_do_not_match_and_are_new(
    graph, monkeypatch
) -> None:
    said, asked = [], []
    node = graph.peer
    mismatches = Mismatches(node, lambda kind, text: said.append(text))
    info = node.get_publishers_info_by_topic
    monkeypatch.setattr(
        node, "get_publishers_info_by_topic", lambda topic: [asked.append(topic), info(topic)][1]
    )
    other = graph.add(type(node)("other", context=graph.context, namespace="/far"))
    node.create_subscription(String, "topic", lambda _: None, 1)
    other.create_publisher(String, "/topic", 1)
    graph.until(lambda: node.count_publishers("/topic") == 1, "publisher")
    mismatches.compare()
    assert (asked, mismatches.at("/topic")) == ([], None)
    bad = other.create_publisher(String, "/topic", QoSProfile(depth=1, **BEST_EFFORT))
    graph.until(lambda: node.count_publishers("/topic") == 2, "publisher that does not match")
    for _ in range(3):
        mismatches.compare()
    assert asked == ["/topic"]
    found = mismatches.at("/topic")
    assert (found.policies, found.nodes) == (["RELIABILITY"], ["/far/other"])
    assert said == [
        "no messages on /topic with node '/far/other': a publisher of it offers an "
        "incompatible QoS (RELIABILITY)"
    ]
    other.destroy_publisher(bad)
    graph.until(lambda: node.count_publishers("/topic") == 1, "end of it")
    mismatches.compare()
    assert mismatches.at("/topic") is None
    assert (len(asked), len(said)) == (1, 1)
