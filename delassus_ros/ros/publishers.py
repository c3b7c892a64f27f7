"""The publishers of a node, by topic before remapping."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

from rclpy.lifecycle import LifecycleNode, LifecyclePublisher
from rclpy.qos import QoSProfile

from delassus_ros.ros.qos import advertise
from delassus_ros.ros.timers import STEADY

_COUNT_PERIOD_S = 0.5
"""Time between checks for subscribers of the optional topics [s]."""


class Publishers:
    """The publishers of a node from configure to cleanup.

    Parameters
    ----------
    kinds : type and QoS of the messages by topic before remapping.
    optional : topics that are published for subscribers alone.

    Attributes
    ----------
    wanted : the optional topics that have a subscriber, at most 0.5 s ago.
    topics : full names of the topics by their names before remapping.
    """

    def __init__(
        self,
        node: LifecycleNode,
        warn: Callable[[str, str], object],
        kinds: Mapping[str, tuple[type, QoSProfile]],
        optional: tuple[str, ...] = (),
    ) -> None:
        self.wanted: frozenset[str] = frozenset()
        self._node, self._warn, self._optional = node, warn, optional
        self._by_topic: dict[str, LifecyclePublisher] = {}
        # If one publisher fails, the ones before it are destroyed.
        with ExitStack() as undo:
            for topic, (kind, qos) in kinds.items():
                self._by_topic[topic] = advertise(node, kind, topic, qos)
                undo.callback(node.destroy_lifecycle_publisher, self._by_topic[topic])
            self.topics = {t: str(each.topic_name) for t, each in self._by_topic.items()}
            if optional:
                # The number of subscribers is read by a timer: reading takes too long for a tick.
                timer = node.create_timer(_COUNT_PERIOD_S, self._count_subscribers, clock=STEADY)
                undo.callback(node.destroy_timer, timer)
                self._count_subscribers()
            self._undo = undo.pop_all()

    def close(self) -> None:
        """Destroy the publishers."""
        self._by_topic.clear()
        self._undo.close()

    def publish(self, topic: str, message: Any) -> None:
        """Publish a message, serialized or not."""
        publisher = self._by_topic[topic]
        try:
            publisher.publish(message)
        except RuntimeError as error:
            # A signal may shut ROS down at any time; the message is then not needed.
            if self._node.context.ok():
                self._warn("publish", f"a message on {publisher.topic_name} is lost: {error}")

    def _count_subscribers(self) -> None:
        # The event may have been in the executor's queue when the publishers were destroyed.
        present = [topic for topic in self._optional if topic in self._by_topic]
        self.wanted = frozenset(
            topic for topic in present if self._by_topic[topic].get_subscription_count()
        )
