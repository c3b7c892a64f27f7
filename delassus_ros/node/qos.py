"""Topics with the node's QoS, which parameters may override, and who does not match it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rclpy.event_handler import PublisherEventCallbacks, SubscriptionEventCallbacks
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

from delassus_ros.errors import InputError, unknown
from delassus_ros.node.overrides import overrides_of

# Room for a pause of 1 s at 1 kHz: what waits here is counted as superseded, what does not fit
# is lost without a trace.
JOINT_STATES = QoSProfile(depth=1000, reliability=ReliabilityPolicy.BEST_EFFORT)
ORIENTATIONS = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
OUTPUTS = QoSProfile(depth=10)

_PREFIX = "qos_overrides."
_OF_INPUTS = (QoSPolicyKind.HISTORY, QoSPolicyKind.DEPTH, QoSPolicyKind.RELIABILITY)
"""Policies that may be overridden."""
_OF_OUTPUTS = (*_OF_INPUTS, QoSPolicyKind.DEADLINE, QoSPolicyKind.LIFESPAN)
"""A reader that asks for a deadline gets messages only if one is offered."""
_CHOICES = {
    QoSPolicyKind.HISTORY: HistoryPolicy,
    QoSPolicyKind.RELIABILITY: ReliabilityPolicy,
    QoSPolicyKind.DURABILITY: DurabilityPolicy,
}


def input_options(node: Node, topic: str, qos: QoSProfile) -> QoSOverridingOptions:
    """Return the options by which parameters override the QoS of a subscription.

    Durability only where the node asks for what was published before, which not all publishers
    keep; elsewhere it would bring old inputs.

    Raises
    ------
    InputError
        If one of these parameters was given a value that its policy cannot have.
    """
    latched = qos.durability == DurabilityPolicy.TRANSIENT_LOCAL
    policies = (*_OF_INPUTS, QoSPolicyKind.DURABILITY) if latched else _OF_INPUTS
    return _options(node, topic, "subscription", policies)


def unused_overrides(node: Node) -> list[str]:
    """Return what to say of each QoS override that none of the node's topics has, sorted."""
    known = [name for name in node.list_parameters([], 0).names if name.startswith(_PREFIX)]
    given = [name for name in overrides_of(node) if name.startswith(_PREFIX)]
    return [unknown("QoS override", name, known) for name in sorted(given) if name not in known]


def _options(
    node: Node, topic: str, end: str, policies: Iterable[QoSPolicyKind]
) -> QoSOverridingOptions:
    # rclpy itself does not name the parameter, nor what there is.
    given = overrides_of(node)
    full = node.resolve_topic_name(topic)
    for policy in policies:
        name = f"{_PREFIX}{full}.{end}.{policy.name.lower()}"
        reason = _refusal(policy, given[name]) if name in given else None
        if reason is not None:
            raise InputError(f"parameter {name!r}: {reason}")
    return QoSOverridingOptions(policies)


def _refusal(policy: QoSPolicyKind, given: Parameter) -> str | None:
    """Return why a policy cannot have a value, or None if it can."""
    if policy in _CHOICES:
        choices = [choice.name.lower() for choice in _CHOICES[policy] if choice.name != "UNKNOWN"]
        value = str(given.value)
        return None if value.lower() in choices else unknown("value", value, choices)
    if given.type_ == Parameter.Type.INTEGER and given.value >= 0:
        return None
    unit = "messages" if policy == QoSPolicyKind.DEPTH else "nanoseconds"
    return f"it is {given.value!r}; expected a number of {unit}, an integer"


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
        """Return a new subscription; `raw` to get serialized messages.

        Raises
        ------
        InputError
            If a parameter was given a value that its QoS policy cannot have.
        """
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
            qos_overriding_options=input_options(self._node, topic, qos),
            raw=raw,
        )

    def advertise(self, kind: type, topic: str, qos: QoSProfile) -> LifecyclePublisher:
        """Return a new publisher, silent while the node is inactive.

        Raises
        ------
        InputError
            If a parameter was given a value that its QoS policy cannot have.
        """
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
            qos_overriding_options=_options(self._node, topic, "publisher", _OF_OUTPUTS),
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
