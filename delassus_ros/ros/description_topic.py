"""The topic of the robot description, in every state of a node."""

from __future__ import annotations

import time
from collections.abc import Callable

from rclpy.node import Node
from std_msgs.msg import String

from delassus_ros.ros.qos import subscribe
from delassus_ros.ros.queue import pop
from delassus_ros.ros.topics import LATCHED

_TOPIC = "robot_description"
_DESCRIPTION_POLL_S = 0.01


class DescriptionTopic:
    """Latest robot description of the topic.

    Parameters
    ----------
    arrived : called after every new description.
    stopping : returns whether the process is to end, which ends the wait.

    Attributes
    ----------
    text : the latest URDF text; empty before the first.
    """

    def __init__(
        self, node: Node, arrived: Callable[[], object], stopping: Callable[[], bool]
    ) -> None:
        self.text = ""
        self._node = node
        self._arrived = arrived
        self._stopping = stopping
        self._subscription = subscribe(node, String, _TOPIC, self._on_description, LATCHED)

    @property
    def topic(self) -> str:
        """Full name of the topic."""
        return str(self._subscription.topic_name)

    def wait(self, limit: float) -> str:
        """Return the latest description; wait for the first one at most `limit` seconds.

        The message is taken from the queue here: no callback runs during a transition.
        """
        deadline = time.monotonic() + limit
        while not self.text:
            taken = pop(self._subscription)
            if taken is not None:
                self.text = taken[0].data
            elif time.monotonic() > deadline or self._stopping():
                break
            else:
                time.sleep(_DESCRIPTION_POLL_S)
        return self.text

    def close(self) -> None:
        """End the subscription."""
        self._node.destroy_subscription(self._subscription)

    def _on_description(self, message: String) -> None:
        if message.data != self.text:
            self.text = message.data
            self._arrived()
