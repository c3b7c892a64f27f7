"""Publishers and subscriptions whose QoS parameters may override, and QoS mismatches.

All creators of publishers and subscriptions raise
:class:`~delassus.errors.InputError` for a QoS override with a value that the policy cannot
have.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from rclpy.lifecycle import LifecycleNode, LifecyclePublisher
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import (
    DurabilityPolicy,
    HistoryPolicy,
    QoSCompatibility,
    QoSPolicyKind,
    QoSProfile,
    ReliabilityPolicy,
    qos_check_compatible,
)
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.subscription import Subscription

from delassus.errors import InputError, unknown
from delassus_ros.ros.health import Mismatch
from delassus_ros.ros.parameters import overrides_of
from delassus_ros.ros.timers import STEADY

OUTPUTS = QoSProfile(depth=10)

_PREFIX = "qos_overrides."
_OF_INPUTS = (QoSPolicyKind.HISTORY, QoSPolicyKind.DEPTH, QoSPolicyKind.RELIABILITY)
"""QoS policies of subscriptions that parameters may override."""
_OF_OUTPUTS = (*_OF_INPUTS, QoSPolicyKind.DEADLINE, QoSPolicyKind.LIFESPAN)
"""QoS policies of publishers that parameters may override. A subscription that requests a deadline
gets messages only if the publisher offers one."""
_DEEPEST = 2**31 - 1
"""Largest depth of a queue [messages]; the middleware's number has 32 bits."""
_SHORTEST_NS = 100_000
"""Shortest deadline or lifespan [ns]: the period of the highest rate of the node."""
_CHOICES = {
    QoSPolicyKind.HISTORY: HistoryPolicy,
    QoSPolicyKind.RELIABILITY: ReliabilityPolicy,
    QoSPolicyKind.DURABILITY: DurabilityPolicy,
}


def unused_overrides(node: Node) -> list[str]:
    """Return warnings about QoS overrides that no topic of the node has, sorted by name."""
    known = [name for name in node.list_parameters([], 0).names if name.startswith(_PREFIX)]
    named = [name for name in overrides_of(node) if name.startswith(_PREFIX)]
    return [unknown("QoS override", name, known) for name in sorted(named) if name not in known]


def _options(
    node: Node, topic: str, end: str, policies: Iterable[QoSPolicyKind]
) -> QoSOverridingOptions:
    # Work-around (nameless override): no upstream issue known; seen with rclpy 7.1.6, whose error
    # names the value alone.
    overrides = overrides_of(node)
    full = node.resolve_topic_name(topic)
    for policy in policies:
        name = f"{_PREFIX}{full}.{end}.{policy.name.lower()}"
        reason = refusal(policy, overrides[name]) if name in overrides else None
        if reason is not None:
            raise InputError(f"parameter {name!r}: {reason}")
    return QoSOverridingOptions(policies)


def refusal(policy: QoSPolicyKind, override: Parameter) -> str | None:
    """Return why a policy cannot have a value, or None if it can."""
    if policy in _CHOICES:
        choices = [choice.name.lower() for choice in _CHOICES[policy] if choice.name != "UNKNOWN"]
        value = str(override.value)
        return None if value.lower() in choices else unknown("value", value, choices)
    is_integer = override.type_ == Parameter.Type.INTEGER
    if policy == QoSPolicyKind.DEPTH:
        if is_integer and 1 <= override.value <= _DEEPEST:
            return None
        expected = f"a number of messages, an integer from 1 to {_DEEPEST}"
        return f"it is {override.value!r}; expected {expected}"
    if is_integer and (override.value == 0 or override.value >= _SHORTEST_NS):
        return None
    return (
        f"it is {override.value!r}; expected a number of nanoseconds, an integer: {_SHORTEST_NS} "
        "or more, or 0 for none"
    )


def subscribe(
    node: Node,
    kind: type,
    topic: str,
    callback: Callable[[Any], None],
    qos: QoSProfile,
    raw: bool = False,
) -> Subscription:
    """Return a new subscription; `raw` to get serialized messages.

    Durability can be overridden only on topics with the durability TRANSIENT_LOCAL, which not all
    publishers offer; on any other topic, that durability would bring old inputs.
    """
    latched = qos.durability == DurabilityPolicy.TRANSIENT_LOCAL
    policies = (*_OF_INPUTS, QoSPolicyKind.DURABILITY) if latched else _OF_INPUTS
    return node.create_subscription(
        kind,
        topic,
        callback,
        # Work-around (shared profile): no upstream issue known; rclpy 7.1.6 writes overrides into
        # the profile of the caller, hence a copy.
        copy.copy(qos),
        qos_overriding_options=_options(node, topic, "subscription", policies),
        raw=raw,
    )


def advertise(node: LifecycleNode, kind: type, topic: str, qos: QoSProfile) -> LifecyclePublisher:
    """Return a new publisher, silent while the node is inactive."""
    publisher: LifecyclePublisher = node.create_lifecycle_publisher(
        kind,
        topic,
        copy.copy(qos),
        qos_overriding_options=_options(node, topic, "publisher", _OF_OUTPUTS),
    )
    return publisher


_COMPARISON_PERIOD_S = 1.0
"""Time between two comparisons of the QoS of all topics [s]."""
_POLICIES = {
    "RELIABILITY": ("reliability",),
    "DURABILITY": ("durability",),
    "DEADLINE": ("deadline",),
    "LIVELINESS": ("liveliness", "liveliness_lease_duration"),
}
"""QoS policies that may be incompatible, with their attributes of a profile."""
_SAID = {
    "publisher": "a subscriber of it requests an incompatible QoS",
    "subscription": "a publisher of it offers an incompatible QoS",
}
"""Text about the endpoint of the other node, by kind of this node's endpoint."""
_UNDISCOVERED = "_NODE_NAME_UNKNOWN_"


class Mismatches:
    """Compares the QoS of a node's topics with that of the other nodes there, once per second.

    The QoS events of the middleware carry the same information but cannot be used: if an endpoint
    is destroyed while its event waits in the queue of rclpy's events executor, the process ends.
    """

    def __init__(self, node: Node, warn: Callable[[str, str], object]) -> None:
        self._node = node
        self._warn = warn
        self._found: dict[str, tuple[tuple[int, int], Mismatch | None]] = {}
        self._timer = node.create_timer(_COMPARISON_PERIOD_S, self.compare, clock=STEADY)

    def close(self) -> None:
        """Stop comparing."""
        self._node.destroy_timer(self._timer)

    def at(self, topic: str) -> Mismatch | None:
        """Return the mismatch at a topic, by its full name, at the last comparison; or None."""
        return self._found[topic][1] if topic in self._found else None

    def compare(self) -> None:
        """Compare all topics; endpoints are compared only where their numbers have changed."""
        before, self._found = self._found, {}
        for topic, end, counts in self._short():
            known = before.get(topic)
            if known is not None and known[0] == counts and (not known[1] or known[1].nodes):
                self._found[topic] = known
                continue
            mismatch = self._mismatch(topic, end)
            self._found[topic] = (counts, mismatch)
            if mismatch is not None and (known is None or mismatch != known[1]):
                self._warn(
                    f"QoS of {topic}",
                    f"no messages on {topic} with {mismatch.nodes_text}: {_SAID[end]} "
                    f"({', '.join(mismatch.policies)})",
                )

    def _short(self) -> Iterator[tuple[str, str, tuple[int, int]]]:
        """Yield topics with unmatched endpoints, and the numbers of endpoints and of matches."""
        node = self._node
        for publisher in node.publishers:
            topic = publisher.topic_name
            counts = node.count_subscribers(topic), publisher.get_subscription_count()
            if counts[1] < counts[0]:
                yield topic, "publisher", counts
        for subscription in node.subscriptions:
            topic = subscription.topic_name
            counts = node.count_publishers(topic), subscription.get_publisher_count()
            if counts[1] < counts[0]:
                yield topic, "subscription", counts

    def _mismatch(self, topic: str, end: str) -> Mismatch | None:
        node = self._node
        offers = node.get_publishers_info_by_topic(topic)
        requests = node.get_subscriptions_info_by_topic(topic)
        policies: set[str] = set()
        nodes: set[str] = set()
        for offer, request in _pairs(node, offers, requests, end):
            found = incompatible_policies(offer.qos_profile, request.qos_profile)
            other = request if end == "publisher" else offer
            if found:
                policies.update(found)
            if found and other.node_name != _UNDISCOVERED:
                nodes.add(f"{other.node_namespace.rstrip('/')}/{other.node_name}")
        if not policies:
            return None
        return Mismatch([policy for policy in _POLICIES if policy in policies], sorted(nodes))


def incompatible_policies(offer: QoSProfile, request: QoSProfile) -> list[str]:
    """Return the policies by which a publisher and a subscription are incompatible."""
    if qos_check_compatible(offer, request)[0] != QoSCompatibility.ERROR:
        return []
    return [
        policy
        for policy, attributes in _POLICIES.items()
        if qos_check_compatible(_alone(offer, attributes), _alone(request, attributes))[0]
        == QoSCompatibility.ERROR
    ]


def _pairs(
    node: Node, offers: Iterable[Any], requests: Iterable[Any], end: str
) -> Iterator[tuple[Any, Any]]:
    here = node.get_name(), node.get_namespace()
    for offer in offers:
        for request in requests:
            local = offer if end == "publisher" else request
            if (local.node_name, local.node_namespace) == here:
                yield offer, request


def _alone(profile: QoSProfile, attributes: Iterable[str]) -> QoSProfile:
    """Return a profile that has some policies of `profile`, and else matches every profile."""
    kept = {name: getattr(profile, name) for name in attributes}
    neutral = {
        "reliability": ReliabilityPolicy.BEST_EFFORT, "durability": DurabilityPolicy.VOLATILE
    }  # fmt: skip
    return QoSProfile(depth=1, **{**neutral, **kept})
