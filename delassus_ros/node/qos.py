"""Topics with the node's QoS, which parameters may override."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any

from rclpy.lifecycle import LifecycleNode, LifecyclePublisher
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import (
    DurabilityPolicy,
    HistoryPolicy,
    QoSPolicyKind,
    QoSProfile,
    ReliabilityPolicy,
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
_DEEPEST = 2**31 - 1
"""Messages; the middleware's number has 32 bits."""
_SHORTEST = 100_000
"""Time [ns] of a deadline or lifespan: the period of the highest rate of the node."""
_CHOICES = {
    QoSPolicyKind.HISTORY: HistoryPolicy,
    QoSPolicyKind.RELIABILITY: ReliabilityPolicy,
    QoSPolicyKind.DURABILITY: DurabilityPolicy,
}


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
    is_integer = given.type_ == Parameter.Type.INTEGER
    if policy == QoSPolicyKind.DEPTH:
        if is_integer and 1 <= given.value <= _DEEPEST:
            return None
        expected = f"a number of messages, an integer from 1 to {_DEEPEST}"
        return f"it is {given.value!r}; expected {expected}"
    if is_integer and (given.value == 0 or given.value >= _SHORTEST):
        return None
    return (
        f"it is {given.value!r}; expected a number of nanoseconds, an integer: {_SHORTEST} or "
        "more, or 0 for none"
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

    Durability can be overridden only where it asks for what was published before, which not all
    publishers keep; elsewhere it would bring old inputs.

    Raises
    ------
    InputError
        If a parameter was given a value that its QoS policy cannot have.
    """
    latched = qos.durability == DurabilityPolicy.TRANSIENT_LOCAL
    policies = (*_OF_INPUTS, QoSPolicyKind.DURABILITY) if latched else _OF_INPUTS
    return node.create_subscription(
        kind,
        topic,
        callback,
        # A copy, as rclpy writes overrides into what it is given.
        copy.copy(qos),
        qos_overriding_options=_options(node, topic, "subscription", policies),
        raw=raw,
    )


def advertise(node: LifecycleNode, kind: type, topic: str, qos: QoSProfile) -> LifecyclePublisher:
    """Return a new publisher, silent while the node is inactive.

    Raises
    ------
    InputError
        If a parameter was given a value that its QoS policy cannot have.
    """
    publisher: LifecyclePublisher = node.create_lifecycle_publisher(
        kind,
        topic,
        copy.copy(qos),
        qos_overriding_options=_options(node, topic, "publisher", _OF_OUTPUTS),
    )
    return publisher
