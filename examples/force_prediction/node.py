"""ROS node that predicts contact forces from the Delassus matrix, and compares if it can.

``python -m force_prediction.node --ros-args -p floor:=rigid`` for a robot; the default floor is
the simulator's. It publishes the predicted forces on ``~/contact_force/<contact>``.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import rclpy
from delassus_msgs.msg import ActiveContacts, DelassusMatrix, Layout
from delassus_msgs_py import matrix_to_numpy
from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Odometry
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.signals import SignalHandlerOptions
from rclpy.utilities import try_shutdown
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from delassus_ros.monitor.comparison import nanoseconds
from delassus_ros.monitor.pairing import Instants
from force_prediction.books import Books
from force_prediction.floors import Floor, MujocoFloor, RigidFloor
from force_prediction.free_motion import FreeMotion, RobotState
from force_prediction.prediction import predict

FloatArray = npt.NDArray[np.float64]

_LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
# Sensors and drivers offer no more than that; and what would have to be sent again comes too late.
_STREAM = QoSProfile(depth=1000, reliability=ReliabilityPolicy.BEST_EFFORT)
_STATES = {
    getattr(ActiveContacts, name): name.lower()
    for name in ("UNKNOWN", "INACTIVE", "ACTIVE", "SLIPPING")
}
_MOST = 500  # instants that wait for a message: half a second at 1 kHz
_FIELDS = {"position": "positions", "velocity": "velocities", "effort": "efforts"}


class ForceNode(Node):
    """Predict the forces for every matrix that comes with joint state and base state.

    Attributes
    ----------
    books : the comparison with simulated forces; None until layout and description are there.
    invalid : matrices that the node of the matrix did not vouch for.
    """

    def __init__(self) -> None:
        super().__init__("force_prediction")
        self.books: Books | None = None
        self.invalid = 0
        self._friction = self.declare_parameter("friction", 0.8).value
        self._radius = self.declare_parameter("foot_radius", 0.02).value
        self._floor_name = self.declare_parameter("floor", "mujoco").value
        self._settling_time = self.declare_parameter("settling_time", 0.01).value
        if self._floor_name not in ("mujoco", "rigid"):
            raise ValueError(f"parameter floor is {self._floor_name!r}; expected mujoco or rigid")
        self._inputs: Instants[str, Any] = Instants(("matrix", "joints", "odometry"), _MOST)
        self._urdf: str | None = None
        self._layout: Layout | None = None
        self._watch(String, "robot_description", self._on_description, _LATCHED)
        self._watch(Layout, "delassus_node/layout", self._on_layout, _LATCHED)
        self._watch(DelassusMatrix, "delassus_node/delassus", self._on_matrix)
        self._watch(JointState, "joint_states", self._on_joints)
        self._watch(Odometry, "simulator/odometry", partial(self._on_input, "odometry"))
        self.create_timer(1.0, self._report)

    @property
    def incomplete(self) -> int:
        """Instants of which not all messages came."""
        return self._inputs.incomplete

    def _watch(self, kind: type, topic: str, take: Any, qos: QoSProfile = _STREAM) -> None:
        self.create_subscription(kind, topic, take, qos)

    # --- what the rows mean, and whose they are ---

    def _on_description(self, message: String) -> None:
        self._urdf = message.data
        self._set_up()

    def _on_layout(self, message: Layout) -> None:
        if self._layout is not None and self._layout.layout_id != message.layout_id:
            raise ValueError("delassus_node has another layout than before: start this node anew")
        self._layout = message
        self._set_up()

    def _set_up(self) -> None:
        layout = self._layout
        if layout is None or self._urdf is None or self.books is not None:
            return
        if set(layout.kinds) != {"surface"} or layout.axes != Layout.AXES_CONTACT:
            raise ValueError(
                f"contacts are of kinds {', '.join(layout.kinds)}; expected surface in contact "
                "axes: start delassus_node with the parameters of force_prediction/node.yaml"
            )
        self._motion = FreeMotion(self._urdf, layout.joints, layout.frames)
        self._floor: Floor = RigidFloor(self._settling_time)
        if self._floor_name == "mujoco":
            self._floor = MujocoFloor(self._motion.inverse_masses())
        self.books = Books(layout.contacts)
        self._outputs = [
            self.create_publisher(WrenchStamped, f"~/contact_force/{contact}", 10)
            for contact in layout.contacts
        ]
        self._compared: Instants[str, Any] = Instants(
            ("prediction", *layout.contacts), _MOST
        )
        for contact in layout.contacts:
            topic = f"simulator/contact_force/{contact}"
            self._watch(WrenchStamped, topic, partial(self._on_simulated, contact))

    # --- from inputs of one stamp to forces ---

    def _on_matrix(self, message: DelassusMatrix) -> None:
        if message.validity == DelassusMatrix.VALIDITY_INVALID:
            self.invalid += 1
            return
        if self._layout is None or message.layout_id != self._layout.layout_id:
            return
        if len(message.contacts) < len(self._layout.contacts):
            raise ValueError("a matrix lacks contacts: start delassus_node with rows:=all")
        self._on_input("matrix", message)

    def _on_joints(self, message: JointState) -> None:
        if self._layout is None:
            return
        try:
            check_joints(message, self._layout.joints)
        except ValueError as error:
            # Others publish on the same topic, a gripper or a head, say.
            self.get_logger().warning(f"{error}; it is passed over", throttle_duration_sec=5.0)
        else:
            self._on_input("joints", message)

    def _on_input(self, part: str, message: Any) -> None:
        found = self._inputs.add(nanoseconds(message.header.stamp), part, message)
        if found is not None and self.books is not None and self._layout is not None:
            state = robot_state(found["joints"], found["odometry"], self._layout.joints)
            self._predict(found["matrix"], state)

    def _predict(self, message: DelassusMatrix, state: RobotState) -> None:
        forces = predict(
            matrix_to_numpy(message),
            self._motion.feet(state),
            self._radius,
            self._friction,
            self._floor,
        )
        output = WrenchStamped()
        output.header.stamp = message.header.stamp
        output.header.frame_id = "world"
        for publisher, force in zip(self._outputs, forces.tolist(), strict=True):
            vector = output.wrench.force
            vector.x, vector.y, vector.z = force
            publisher.publish(output)
        states = [_STATES[status] for status in message.status]
        self._compare(message.header.stamp, "prediction", (states, forces))

    # --- against the simulator ---

    def _on_simulated(self, contact: str, message: WrenchStamped) -> None:
        self._compare(message.header.stamp, contact, _vector(message.wrench.force))

    def _compare(self, stamp: Any, part: str, value: Any) -> None:
        found = self._compared.add(nanoseconds(stamp), part, value)
        if found is not None and self.books is not None and self._layout is not None:
            states, predicted = found["prediction"]
            simulated = np.array([found[contact] for contact in self._layout.contacts])
            self.books.add(states, predicted, simulated)

    def _report(self) -> None:
        if self.books is None:
            self.get_logger().info("waiting for robot description and layout")
        else:
            print(self.books.line(), flush=True)


def check_joints(joints: JointState, names: Sequence[str]) -> None:
    """Raise unless a joint state has all of the named joints, and all values of each.

    Raises
    ------
    ValueError
        A joint is not in the message, which may hold others as well, or lacks a value.
    """
    missing = [name for name in names if name not in joints.name]
    if missing:
        raise ValueError(f"a joint state lacks joints {', '.join(missing)}")
    for field, plural in _FIELDS.items():
        count = len(getattr(joints, field))
        if count != len(joints.name):
            raise ValueError(f"a joint state has {len(joints.name)} names but {count} {plural}")


def robot_state(joints: JointState, odometry: Odometry, names: Sequence[str]) -> RobotState:
    """Return the state of the named joints and of the base.

    Raises
    ------
    ValueError
        As :func:`check_joints`.
    """
    check_joints(joints, names)
    places = [list(joints.name).index(name) for name in names]
    pose, twist = odometry.pose.pose, odometry.twist.twist
    orientation = pose.orientation
    return RobotState(
        position=_vector(pose.position),
        orientation=np.array([*_vector(orientation), orientation.w]),
        twist=np.concatenate([_vector(twist.linear), _vector(twist.angular)]),
        q=np.array(joints.position)[places],
        velocity=np.array(joints.velocity)[places],
        effort=np.array(joints.effort)[places],
    )


def _vector(message: Any) -> FloatArray:
    return np.array([message.x, message.y, message.z])


def main() -> int:
    """Predict until SIGINT or SIGTERM, then print how well it went; return the exit status."""
    stops: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _frame: stops.append(number))
    # rclpy's own handlers would interrupt whatever a callback is doing.
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    try:
        node = ForceNode()
        executor = SingleThreadedExecutor()
        executor.add_node(node)
        while not stops:
            executor.spin_once(timeout_sec=0.1)
    except ValueError as error:
        print(f"force_prediction: {error}", file=sys.stderr)
        return 1
    finally:
        try_shutdown()
    if node.books is None or not node.books.instants:
        print("nothing to compare came", file=sys.stderr)
        return 1
    print("\n".join(node.books.summary()))
    print(f"{node.invalid} matrices were INVALID, {node.incomplete} instants lacked a message")
    return 0


if __name__ == "__main__":
    sys.exit(main())
