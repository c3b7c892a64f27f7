"""Publishers of the node from configure to cleanup, except diagnostics."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from delassus_msgs.msg import (
    ContactDynamics,
    DelassusMatrix,
    EstimatedContacts,
    Layout,
    Summary,
)
from rclpy.lifecycle import LifecycleNode, LifecyclePublisher

from delassus_ros.node.live.pipeline import DYNAMICS, ESTIMATED, MATRIX, SUMMARY
from delassus_ros.ros.qos import OUTPUTS, advertise
from delassus_ros.ros.timers import STEADY
from delassus_ros.ros.topics import LATCHED

_LOOK_PERIOD_S = 0.5
"""Time between checks for subscribers of the summaries [s]."""
_LAYOUT = "~/layout"


class Publishers:
    """The publishers of matrices, secondary outputs, summaries and the layout.

    Parameters
    ----------
    node : the node that publishes.
    warn : called with the kind of a warning and its text.
    secondary : whether secondary outputs are published.
    estimates : whether the active contacts are estimated from forces.

    Attributes
    ----------
    wanted : the topic of the summaries if they have a subscriber, at most 0.5 s ago.
    topics, topic : full names of all topics, and of the topic of the matrices.
    """

    def __init__(
        self,
        node: LifecycleNode,
        warn: Callable[[str, str], object],
        secondary: bool = False,
        estimates: bool = False,
    ) -> None:
        self.wanted: frozenset[str] = frozenset()
        self._open = True
        self._node, self._warn = node, warn
        kinds: dict[str, tuple[type, Any]] = {
            MATRIX: (DelassusMatrix, OUTPUTS), _LAYOUT: (Layout, LATCHED),
            SUMMARY: (Summary, OUTPUTS),
        }  # fmt: skip
        if secondary:
            kinds[DYNAMICS] = ContactDynamics, OUTPUTS
        if estimates:
            kinds[ESTIMATED] = EstimatedContacts, OUTPUTS
        self._by_topic: dict[str, LifecyclePublisher] = {}
        # If one publisher fails, the ones before it are destroyed.
        with ExitStack() as undo:
            for topic, (kind, qos) in kinds.items():
                self._by_topic[topic] = advertise(node, kind, topic, qos)
                undo.callback(node.destroy_lifecycle_publisher, self._by_topic[topic])
            self.topics = [str(publisher.topic_name) for publisher in self._by_topic.values()]
            self.topic = self.topics[0]
            # The number of subscribers is read by a timer: reading takes too long for a tick.
            timer = node.create_timer(_LOOK_PERIOD_S, self._look, clock=STEADY)
            undo.callback(node.destroy_timer, timer)
            self._look()
            self._undo = undo.pop_all()

    def close(self) -> None:
        """Destroy the publishers."""
        self._open = False
        self._undo.close()

    def publish_layout(self, layout: Layout) -> None:
        """Publish the meaning of the rows, latched: it holds from now on."""
        layout.header.stamp = self._node.get_clock().now().to_msg()
        self._by_topic[_LAYOUT].publish(layout)

    def publish(self, topic: str, message: Any) -> None:
        """Publish a message, serialized or not, on a topic before remapping."""
        publisher = self._by_topic[topic]
        try:
            publisher.publish(message)
        except RuntimeError as error:
            # A signal may shut ROS down at any time; the message is then not needed.
            if self._node.context.ok():
                self._warn("publish", f"a message on {publisher.topic_name} is lost: {error}")

    def _look(self) -> None:
        # The event may have been in the executor's queue when the publishers were destroyed.
        has_subscriber = self._open and self._by_topic[SUMMARY].get_subscription_count() > 0
        self.wanted = frozenset((SUMMARY,) if has_subscriber else ())
