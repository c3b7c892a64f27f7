"""Diagnostics of a node: entries with a level, a text and numbers, and their publisher."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.lifecycle import LifecycleNode
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.subscription import Subscription

from delassus_ros.ros.health import InputHealth, Level, Mismatch
from delassus_ros.ros.qos import Mismatches
from delassus_ros.ros.timers import steady

OVERRIDABLE: Mapping[str, Sequence[str]] = {
    "subscription": ("RELIABILITY", "DURABILITY"), "publisher": ("RELIABILITY", "DEADLINE")
}  # fmt: skip
"""QoS policies that may be incompatible and that parameters override, by kind of endpoint."""


_VERBS = {
    "subscription": "offers an incompatible QoS", "publisher": "requests an incompatible QoS"
}  # fmt: skip
"""Text about the endpoint of the other node, by kind of this node's endpoint."""


@dataclass(frozen=True)
class Entry:
    """A line of the diagnostics, with its subject, e.g. ``"matrix"``, and values by label."""

    name: str
    level: Level
    message: str
    values: Mapping[str, str] = field(default_factory=dict)


def of_input(health: InputHealth) -> Entry:
    """Return the entry of an input: whether messages arrive, and their fault."""
    topic = health.topic
    causes = [health.warning] if health.warning else []
    if health.incompatible:
        causes.append(f"a publisher of {qos_mismatch(topic, 'subscription', health.incompatible)}")
    state = ""
    if not health.received:
        level = Level.ERROR if health.incompatible else Level.STALE
        state = nothing_has_come(topic, health.publishers, " of use" if health.warning else "")
    elif health.silence > health.timeout:
        level = Level.STALE
        state = (
            f"the latest came {number(health.silence)} s ago (publishers: {health.publishers})"
        )
    elif health.age > health.timeout:
        level = Level.STALE
        if not health.warning:
            state = f"the latest is {number(health.age)} s old (publishers: {health.publishers})"
    elif causes:
        level = Level.WARN
    else:
        level, state = Level.OK, "in time"
    values = {
        "topic": topic,
        "publishers": str(health.publishers),
        "age [s]": number(health.age),
        "silence [s]": number(health.silence),
        "timeout [s]": number(health.timeout),
        **{name: str(count) for name, count in health.counts.items()},
    }
    message = ": ".join(part for part in (state, "; ".join(causes)) if part)
    return Entry(health.name, level, message, values)


def nothing_has_come(topic: str, publishers: int, of_use: str = "") -> str:
    """Return the text about a topic without messages, or with none `of_use`."""
    if not publishers:
        return f"no node publishes {topic}"
    return f"nothing{of_use} has come on {topic}, whose publishers are {publishers}"


def qos_mismatch(topic: str, end: str, mismatch: Mismatch) -> str:
    """Return the text about an incompatible QoS, with the parameters of this node that help.

    Parameters
    ----------
    topic : full name of the topic.
    end : endpoint of this node: ``"subscription"`` or ``"publisher"``.
    """
    policies = mismatch.policies
    whose = f"{topic} ({mismatch.nodes_text})" if mismatch.nodes else topic
    text = f"{whose} {_VERBS[end]} ({', '.join(policies)}): change it there"
    if not set(OVERRIDABLE[end]).issuperset(policies):
        return text
    names = [f"qos_overrides.{topic}.{end}.{policy.lower()}" for policy in policies]
    return f"{text}, or by {' and '.join(names)}"


def entries_of_inputs(
    node: Node,
    healths: Mapping[str, InputHealth],
    subscriptions: Mapping[str, Subscription],
    mismatches: Mismatches,
) -> Iterator[Entry]:
    """Yield the entries of the subscribed inputs.

    Parameters
    ----------
    healths : by topic before remapping; names of topics and publishers are added here.
    subscriptions : by topic before remapping.
    """
    for name, health in healths.items():
        if name in subscriptions:
            topic = subscriptions[name].topic_name
            publishers = node.count_publishers(topic)
            incompatible = mismatches.at(topic)
            yield of_input(
                replace(health, topic=topic, publishers=publishers, incompatible=incompatible)
            )


def to_message(
    entries: Iterable[Entry], stamp: Any, node: str, robot: str = ""
) -> DiagnosticArray:
    """Return a diagnostic_msgs/DiagnosticArray.

    Parameters
    ----------
    stamp : builtin_interfaces/Time of the node's clock.
    node : full name of the node; without its slash it is the prefix of all names.
    robot : name of the robot, as hardware_id.
    """
    message = DiagnosticArray()
    message.header.stamp = stamp
    message.status = [
        DiagnosticStatus(
            level=bytes([entry.level]),
            name=f"{node.removeprefix('/')}: {entry.name}",
            message=entry.message,
            hardware_id=robot,
            values=[KeyValue(key=key, value=value) for key, value in entry.values.items()],
        )
        for entry in entries
    ]
    return message


def number(value: float) -> str:
    """Return a number in words of a diagnostic entry; ``unknown`` for NaN."""
    return "unknown" if math.isnan(value) else f"{value:.4g}"


_QOS = QoSProfile(depth=10)


class DiagnosticPublisher:
    """Publishes ``/diagnostics``, with times by the node's clock.

    Parameters
    ----------
    period : steady time between two reports [s]; 0 for no reports.
    entries : returns the entries and the name of the robot.
    """

    def __init__(
        self,
        node: LifecycleNode,
        period: float,
        entries: Callable[[], tuple[list[Entry], str]],
    ) -> None:
        self._node = node
        self._entries = entries
        self._publisher = node.create_publisher(DiagnosticArray, "/diagnostics", _QOS)
        self._timer: Any = None
        self.set_period(period)

    def set_period(self, period: float) -> None:
        """Report at another period from now on [s]; 0 for no reports."""
        self._end_timer()
        if period > 0:
            self._timer = self._node.create_timer(period, self._report, clock=steady())

    def close(self) -> None:
        """End the reports."""
        self._end_timer()
        self._node.destroy_publisher(self._publisher)

    def _end_timer(self) -> None:
        if self._timer is not None:
            self._node.destroy_timer(self._timer)
            self._timer = None

    def _report(self) -> None:
        if self._timer is None:
            # The event was in the executor's queue when the timer ended.
            return
        entries, robot = self._entries()
        stamp = self._node.get_clock().now().to_msg()
        message = to_message(entries, stamp, self._node.get_fully_qualified_name(), robot)
        try:
            self._publisher.publish(message)
        except RuntimeError:
            # A signal may shut ROS down at any time; the message is then not needed.
            if self._node.context.ok():
                raise
