"""Who is at the node's topics with a QoS that does not go with the node's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from rclpy.node import Node
from rclpy.qos import (
    DurabilityPolicy,
    QoSCompatibility,
    QoSProfile,
    ReliabilityPolicy,
    qos_check_compatible,
)

from delassus_ros.node.clocks import STEADY
from delassus_ros.node.diagnostics import Mismatch

_LOOK = 1.0  # s between looks
_POLICIES = {
    "RELIABILITY": ("reliability",),
    "DURABILITY": ("durability",),
    "DEADLINE": ("deadline",),
    "LIVELINESS": ("liveliness", "liveliness_lease_duration"),
}
"""Policies that may not match, with what a profile calls them."""
_SAID = {
    "publisher": "a subscriber of it requests an incompatible QoS",
    "subscription": "a publisher of it offers an incompatible QoS",
}
"""What there is to say of the others, by kind of the node's own end."""
_UNDISCOVERED = "_NODE_NAME_UNKNOWN_"


class Mismatches:
    """Compares the ends of a node's topics with what others have there, at a low rate.

    The middleware's own events tell the same, but are not to be had: where an end is destroyed
    while its event waits in the queue of rclpy's events executor, the process ends.

    Parameters
    ----------
    node : whose publishers and subscriptions they are.
    warn : takes the kind of a warning and its text.
    """

    def __init__(self, node: Node, warn: Callable[[str, str], object]) -> None:
        self._node = node
        self._warn = warn
        self._found: dict[str, tuple[tuple[int, int], Mismatch | None]] = {}
        self._timer = node.create_timer(_LOOK, self.look, clock=STEADY)

    def close(self) -> None:
        """Look no more."""
        self._node.destroy_timer(self._timer)

    def at(self, topic: str) -> Mismatch | None:
        """Return who did not match at a topic, by its full name, at the last look."""
        return self._found[topic][1] if topic in self._found else None

    def look(self) -> None:
        """Look at all topics; endpoints are compared only where their numbers are new."""
        before, self._found = self._found, {}
        for topic, end, counts in self._short():
            known = before.get(topic)
            if known is not None and known[0] == counts and (not known[1] or known[1].nodes):
                self._found[topic] = known
                continue
            mismatch = self._compare(topic, end)
            self._found[topic] = (counts, mismatch)
            if mismatch is not None and (known is None or mismatch != known[1]):
                self._warn(
                    f"QoS of {topic}",
                    f"no messages on {topic} with {mismatch.nodes_text}: {_SAID[end]} "
                    f"({', '.join(mismatch.policies)})",
                )

    def _short(self) -> Iterator[tuple[str, str, tuple[int, int]]]:
        """Yield the topics at which not all who are there match: how many are, and do."""
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

    def _compare(self, topic: str, end: str) -> Mismatch | None:
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
    """Return the policies by which a publisher and a subscription do not match.

    Parameters
    ----------
    offer, request : QoS of the publisher and of the subscription.
    """
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
            own = offer if end == "publisher" else request
            if (own.node_name, own.node_namespace) == here:
                yield offer, request


def _alone(profile: QoSProfile, attributes: Iterable[str]) -> QoSProfile:
    """Return a profile that differs from one that matches all only by some policies."""
    kept = {name: getattr(profile, name) for name in attributes}
    neutral = {
        "reliability": ReliabilityPolicy.BEST_EFFORT, "durability": DurabilityPolicy.VOLATILE
    }  # fmt: skip
    return QoSProfile(depth=1, **{**neutral, **kept})
