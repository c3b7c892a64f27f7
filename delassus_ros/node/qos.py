"""Topics with the node's QoS, which parameters may override, and who does not match it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from rclpy.event_handler import PublisherEventCallbacks, SubscriptionEventCallbacks
from rclpy.lifecycle import LifecycleNode, LifecyclePublisher
from rclpy.qos import (
    DurabilityPolicy,
    QoSCompatibility,
    QoSPolicyKind,
    QoSProfile,
    ReliabilityPolicy,
    qos_check_compatible,
)
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.subscription import Subscription

# Room for a pause of 1 s at 1 kHz: what waits here is counted as superseded, what does not fit
# is lost without a trace.
JOINT_STATES = QoSProfile(depth=1000, reliability=ReliabilityPolicy.BEST_EFFORT)
ORIENTATIONS = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
OUTPUTS = QoSProfile(depth=10)

_OVERRIDABLE = (
    QoSPolicyKind.HISTORY, QoSPolicyKind.DEPTH, QoSPolicyKind.RELIABILITY,
    QoSPolicyKind.DEADLINE, QoSPolicyKind.LIFESPAN,
)  # fmt: skip
"""Of the outputs. A reader that asks for a deadline gets messages only if one is offered."""


class Topics:
    """Makes publishers and subscriptions of a node, and notes who does not match them.

    Parameters
    ----------
    node : the node.
    warn : takes the kind of a warning and its text.

    Attributes
    ----------
    missed_deadlines : how often an output was later than the deadline that its QoS offers.
    """

    def __init__(self, node: LifecycleNode, warn: Callable[[str, str], object]) -> None:
        self.missed_deadlines = 0
        self._node = node
        self._warn = warn
        self._incompatible: dict[str, list[str]] = {}

    def incompatible(self, topic: str) -> Sequence[str]:
        """Return the QoS policies by which others were found not to match at a topic.

        Empty once all who are there match. Asks the graph: not for the control loop.
        """
        noted = self._incompatible.get(topic, ())
        return noted if noted and self._mismatch(topic) else ()

    def _mismatch(self, topic: str) -> bool:
        """Whether there is one now that does not match this node at a topic."""
        node = self._node
        here = node.get_name(), node.get_namespace()
        offers = node.get_publishers_info_by_topic(topic)
        requests = node.get_subscriptions_info_by_topic(topic)
        return any(
            qos_check_compatible(offer.qos_profile, request.qos_profile)[0]
            == QoSCompatibility.ERROR
            for offer in offers
            for request in requests
            if here in ((end.node_name, end.node_namespace) for end in (offer, request))
        )

    def subscribe(
        self,
        kind: type,
        topic: str,
        callback: Callable[[Any], None],
        qos: QoSProfile,
        raw: bool = False,
    ) -> Subscription:
        """Return a new subscription; `raw` to get serialized messages."""
        full = self._node.resolve_topic_name(topic)
        self._incompatible.pop(full, None)

        def note(event: Any) -> None:
            self._note(full, event, "a publisher of it offers")

        return self._node.create_subscription(
            kind,
            topic,
            callback,
            # A copy, as rclpy writes overrides into what it is given.
            copy.copy(qos),
            event_callbacks=SubscriptionEventCallbacks(incompatible_qos=note),
            qos_overriding_options=QoSOverridingOptions.with_default_policies(),
            raw=raw,
        )

    def advertise(self, kind: type, topic: str, qos: QoSProfile) -> LifecyclePublisher:
        """Return a new publisher, silent while the node is inactive."""
        full = self._node.resolve_topic_name(topic)
        self._incompatible.pop(full, None)

        def note(event: Any) -> None:
            self._note(full, event, "a subscriber of it requests")

        def late(event: Any) -> None:
            self.missed_deadlines += event.total_count_change
            self._warn(f"deadline of {full}", f"{full} was later than the deadline its QoS offers")

        publisher: LifecyclePublisher = self._node.create_lifecycle_publisher(
            kind,
            topic,
            copy.copy(qos),
            event_callbacks=PublisherEventCallbacks(incompatible_qos=note, deadline=late),
            qos_overriding_options=QoSOverridingOptions(_OVERRIDABLE),
        )
        return publisher

    def _note(self, topic: str, event: Any, who: str) -> None:
        policy = QoSPolicyKind(event.last_policy_kind).name
        noted = self._incompatible.setdefault(topic, [])
        if policy not in noted:
            noted.append(policy)
        self._warn(
            f"QoS of {topic}",
            f"no messages on {topic} with one: {who} an incompatible QoS ({policy})",
        )
