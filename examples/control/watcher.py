"""A node that watches a run: how joint states are answered; what derives from it, the robot."""

from __future__ import annotations

from rclpy.node import Node
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState

from delassus_ros.inputs.joint_state_bytes import JointStateReader
from delassus_ros.ros.messages import stamp_in
from delassus_ros.ros.queue import OnMessage, with_time_sent

from .answers import Answers

_QUEUE = QoSProfile(depth=1000)


class Watcher(Node):
    """Notes how joint states are answered, by commands unless told otherwise.

    Parameters
    ----------
    name : of the node.
    what : plural noun for the answers, in messages.
    kind : their type.
    chain : topics from joint states to answers, in the order in which one follows from the other.

    Attributes
    ----------
    answers : the books.
    """

    def __init__(
        self,
        name: str,
        what: str = "commands",
        kind: type = JointState,
        chain: tuple[str, ...] = ("joint_states", "delassus_node/delassus", "joint_commands"),
    ) -> None:
        super().__init__(name)
        self.answers = Answers(what)
        self._chain, self._reader = chain, JointStateReader()
        takes: tuple[tuple[type, str, OnMessage], ...] = (
            (JointState, chain[0], self.on_joints), (kind, chain[-1], self.on_answer)
        )  # fmt: skip
        for each, topic, take in takes:
            self.create_subscription(each, topic, with_time_sent(take), _QUEUE, raw=True)

    def on_joints(self, data: bytes, sent: int, count: int) -> None:
        """Note a joint state."""
        self.answers.ask(stamp_in(data), sent)

    def on_answer(self, data: bytes, sent: int, count: int) -> None:
        """Note an answer; a command without names commands nothing."""
        refused = not self._reader.read(data).names
        self.answers.answer(stamp_in(data), sent, refused)

    def lacks(self) -> str:
        """Return the missing nodes or topics if no answers come."""
        for topic in self._chain:
            if not self.count_publishers(topic):
                return f"no node publishes {topic}"
        return f"nothing comes on {self._chain[-1]}"

    @property
    def ended(self) -> bool:
        """Whether there is no use in going on."""
        return False

    def line(self) -> str:
        """Return how the robot is."""
        raise NotImplementedError

    def figures(self) -> list[str]:
        """Return the figures of the whole run, a line each."""
        raise NotImplementedError

    def faults(self) -> list[str]:
        """Return the faults of the run; empty without faults."""
        raise NotImplementedError
