"""ROS node of the controller: matrices, joint states and odometry in, torques out.

``python -m whole_body_control.node`` from the folder ``examples``. Where the node of the matrices
says INVALID, or is silent, nothing is commanded: the drives then brake by themselves.
"""

from __future__ import annotations

import sys
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
from delassus_msgs.msg import ActiveContacts, ContactDynamics, DelassusMatrix, Layout
from delassus_msgs_py import DynamicsReader, MatrixReader, MessageError, active_names
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from delassus_ros.node.joint_state_bytes import JointStateReader
from delassus_ros.node.main import executing
from delassus_ros.ros_program import run_program

from .controller import CONTACTS, Controller, Rows, State
from .gait import LEGS

_LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
_NEWEST = QoSProfile(depth=5, reliability=ReliabilityPolicy.BEST_EFFORT)
_KEPT = 50  # joint states that wait for their matrix
_REPORTS = 5.0  # s
_LONGEST = 0.02  # s between two ticks that counts as a tick


class WholeBodyNode(Node):
    """Answer each matrix with torques.

    Attributes
    ----------
    ticks, refused : commands that were sent, and instants without a valid matrix.
    """

    def __init__(self) -> None:
        super().__init__("whole_body_controller")
        self.ticks = self.refused = 0
        self._controller: Controller | None = None
        self._urdf, self._joints, self._act = "", (), ""
        self._states: OrderedDict[int, tuple[np.ndarray, np.ndarray]] = OrderedDict()
        self._base: bytes | None = None
        self._reader = JointStateReader()
        self._names: list[str] = []
        self._order: list[int] = []
        self._touching: tuple[str, ...] = ()
        self._matrices, self._rest = MatrixReader(), DynamicsReader()
        self._matrix: Any = None
        self._then = 0
        self._times: list[float] = []
        self._limit = self.declare_parameter("torque_limit", 35.0).value
        self._commands = self.create_publisher(JointState, "joint_commands", 10)
        self._command = JointState()
        node = "delassus_node"
        for kind, topic, callback, qos, raw in (
            (String, "robot_description", self._on_description, _LATCHED, False),
            (Layout, f"{node}/layout", self._on_layout, _LATCHED, False),
            (ActiveContacts, "active_contacts", self._on_contacts, _LATCHED, False),
            (Odometry, "odometry", self._on_base, _NEWEST, True),
            (JointState, "joint_states", self._on_joints, _NEWEST, True),
            (DelassusMatrix, f"{node}/delassus", self._on_matrix, _NEWEST, True),
            (ContactDynamics, f"{node}/dynamics", self._on_dynamics, _NEWEST, True),
        ):
            self.create_subscription(kind, topic, callback, qos, raw=raw)
        self.create_timer(_REPORTS, self._report)

    def _on_description(self, message: String) -> None:
        self._urdf = message.data
        self._make()

    def _on_layout(self, message: Layout) -> None:
        if tuple(message.contacts) != CONTACTS:
            self.get_logger().error(
                f"the matrices have contacts {list(message.contacts)}; expected {list(CONTACTS)}: "
                "start delassus_node with whole_body_control/node.yaml"
            )
            return
        self._joints = tuple(message.joints)
        # Another one, where the description changed.
        self._matrices.layout_id = message.layout_id
        self._make()

    def _make(self) -> None:
        if self._controller is None and self._urdf and self._joints:
            limits = np.full(len(self._joints), self._limit)
            self._controller = Controller(self._urdf, self._joints, limits)
            self._command.name = list(self._joints)
            self.get_logger().info(f"controls {len(self._joints)} joints")

    def _on_contacts(self, message: ActiveContacts) -> None:
        self._touching = active_names(message)

    def _on_base(self, data: bytes) -> None:
        self._base = data

    def _on_joints(self, data: bytes) -> None:
        if not self._joints:
            return
        state = self._reader.read(data)
        if state.names is not self._names:
            # The same list as long as they do not change.
            place = {name: k for k, name in enumerate(state.names)}
            self._names, self._order = state.names, [place[name] for name in self._joints]
        q, v = state.values[self._order], state.motion[0][self._order]
        self._states[state.sec * 10**9 + state.nanosec] = q, v
        while len(self._states) > _KEPT:
            self._states.popitem(last=False)

    def _on_matrix(self, data: bytes) -> None:
        try:
            self._matrix = self._matrices.read(data)
        except MessageError as error:
            self.get_logger().warning(str(error), throttle_duration_sec=1.0)

    def _on_dynamics(self, data: bytes) -> None:
        began = time.perf_counter()
        rest, matrix = self._rest.read(data), self._matrix
        known = self._states.get(rest.stamp)
        valid = rest.validity != ContactDynamics.VALIDITY_INVALID
        if not valid or matrix is None or matrix.sequence != rest.sequence or known is None:
            self.refused += 1
            self.get_logger().warning(
                f"nothing is commanded: validity {rest.validity}, reasons {rest.reasons:#x}",
                throttle_duration_sec=1.0,
            )
            return
        if self._controller is None or self._base is None:
            return
        dt = min(1e-9 * (rest.stamp - self._then), _LONGEST) if self._then else 0.0
        self._then = rest.stamp
        state = self._state(*known, deserialize_message(self._base, Odometry))
        rows = Rows(np.array(matrix.matrix), np.array(rest.a0), np.array(rest.MinvJT))
        command = self._controller.command(state, rows, max(dt, 0.0))
        self._command.header.stamp.sec, self._command.header.stamp.nanosec = divmod(
            rest.stamp, 10**9
        )
        self._command.effort = command.torques.tolist()
        self._commands.publish(self._command)
        self.ticks += 1
        self._times.append(time.perf_counter() - began)
        if command.plan.act != self._act:
            self._act = command.plan.act
            self.get_logger().info(self._act)

    def _state(self, q: np.ndarray, v: np.ndarray, base: Odometry) -> State:
        p, o = base.pose.pose.position, base.pose.pose.orientation
        linear, angular = base.twist.twist.linear, base.twist.twist.angular
        return State(
            q, v, np.array([p.x, p.y, p.z]), np.array([o.x, o.y, o.z, o.w]),
            np.array([linear.x, linear.y, linear.z, angular.x, angular.y, angular.z]),
            [leg in self._touching for leg in LEGS],
        )  # fmt: skip

    def _report(self) -> None:
        times, self._times = self._times, []
        if times:
            unsolved = 0 if self._controller is None else self._controller.unsolved
            self.get_logger().info(
                f"{len(times) / _REPORTS:.0f} commands per second, "
                f"{1e6 * np.median(times):.0f} us each "
                f"(99 %: {1e6 * np.quantile(times, 0.99):.0f}); {self.refused} instants refused, "
                f"{unsolved} without a solution"
            )


def main(args: list[str] | None = None) -> int:
    """Run the node until it is told to stop; return the exit status."""
    return run_program("whole_body_controller", WholeBodyNode, _run, args)


def _run(node: WholeBodyNode, stopping: Callable[[], bool]) -> int:
    with executing([node]) as executor:
        while not stopping():
            executor.spin_once(timeout_sec=0.25)
    return 0


if __name__ == "__main__":
    sys.exit(main())
