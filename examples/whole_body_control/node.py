"""ROS node of the whole-body controller: ``python -m whole_body_control.node``."""

from __future__ import annotations

import sys

import numpy as np
from control.kinematics import State
from control.node import NEWEST, Array, ControlNode, run_node
from delassus_msgs.msg import ActiveContacts
from delassus_msgs_py import ReceivedDynamics, ReceivedMatrix
from nav_msgs.msg import Odometry
from rclpy.serialization import deserialize_message

from .controller import CONTACTS, Controller, Rows
from .gait import LEGS

TOUCHES = (ActiveContacts.ACTIVE, ActiveContacts.SLIPPING)


class WholeBodyNode(ControlNode):
    """Walks."""

    def __init__(self) -> None:
        super().__init__("whole_body_controller", CONTACTS)
        self._controller: Controller | None = None
        self._base: bytes | None = None
        self._act = ""
        self._limit = self.declare_parameter("torque_limit", 35.0).value
        self.create_subscription(Odometry, "odometry", self._on_base, NEWEST, raw=True)

    def prepare(self, urdf: str) -> None:
        """Make the controller."""
        limits = np.full(len(self.joints), self._limit)
        self._controller = Controller(urdf, self.joints, limits)

    def torques(
        self, q: Array, velocity: Array, matrix: ReceivedMatrix, rest: ReceivedDynamics, dt: float
    ) -> Array | None:
        """Return what the program says."""
        if self._controller is None or self._base is None:
            return None
        base = deserialize_message(self._base, Odometry)
        p, o = base.pose.pose.position, base.pose.pose.orientation
        linear, angular = base.twist.twist.linear, base.twist.twist.angular
        state = State(
            q, velocity, np.array([p.x, p.y, p.z]), np.array([o.x, o.y, o.z, o.w]),
            np.array([linear.x, linear.y, linear.z, angular.x, angular.y, angular.z]),
            [matrix.status[matrix.contacts.index(leg)] in TOUCHES for leg in LEGS],
        )  # fmt: skip
        # Copies, as those in messages are not aligned.
        rows = Rows(np.array(matrix.matrix), np.array(rest.a0), np.array(rest.MinvJT))
        command = self._controller.command(state, rows, dt)
        if command.plan.act != self._act:
            self._act = command.plan.act
            self.get_logger().info(self._act)
        return command.torques

    def _on_base(self, data: bytes) -> None:
        self._base = data


if __name__ == "__main__":
    sys.exit(run_node("whole_body_controller", WholeBodyNode))
