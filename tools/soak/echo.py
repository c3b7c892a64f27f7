"""ROS node that answers joint states with a constant matrix: the base cost of a Python node.

The node has the executor, loop, queues and draining of delassus_node, and computes nothing.
"""

from __future__ import annotations

import array
import gc
import sys
from collections.abc import Callable

from delassus_msgs.msg import ActiveContacts, DelassusMatrix
from rclpy.node import Node
from sensor_msgs.msg import JointState

from delassus_ros.ros.executor import executing
from delassus_ros.ros.program import run_program
from delassus_ros.ros.qos import OUTPUTS
from delassus_ros.ros.queue import pop
from delassus_ros.ros.topics import JOINT_STATES

from .humanoid import CONTACTS


class EchoNode(Node):
    """Deserialises joint states and publishes a preallocated message with their stamp."""

    def __init__(self) -> None:
        super().__init__("echo", start_parameter_services=False, enable_rosout=False)
        contacts = len(CONTACTS)
        self._answer = DelassusMatrix()
        self._answer.contacts = list(CONTACTS)
        self._answer.kinds = ["surface"] * contacts
        self._answer.status = [ActiveContacts.ACTIVE] * contacts
        self._answer.row_offsets = [6 * i for i in range(contacts + 1)]
        self._answer.validity = DelassusMatrix.VALIDITY_OK
        self._answer.algorithm = "echo"
        self._answer.matrix = array.array("d", bytes(8 * (6 * contacts) ** 2))
        self._publisher = self.create_publisher(DelassusMatrix, "~/delassus", OUTPUTS)
        self._joint_states = self.create_subscription(
            JointState, "~/joint_states", self._on_joint_state, JOINT_STATES
        )

    def _on_joint_state(self, message: JointState) -> None:
        answer = self._answer
        for _ in range(JOINT_STATES.depth):
            newer = pop(self._joint_states)
            if newer is None:
                break
            message = newer[0]
            answer.sequence += 1
        answer.sequence += 1
        answer.header.stamp = message.header.stamp
        try:
            self._publisher.publish(answer)
        except RuntimeError:
            # A signal may shut ROS down at any time; this message is then not needed.
            if self.context.ok():
                raise


def main() -> int:
    """Run until told to stop."""
    return run_program("echo", EchoNode, _run, [])


def _run(node: EchoNode, stopping: Callable[[], bool]) -> int:
    with executing([node]) as executor:
        gc.freeze()
        while not stopping():
            executor.spin_once(timeout_sec=0.25)
    return 0


if __name__ == "__main__":
    sys.exit(main())
