"""A node that answers each matrix of delassus_node with torques: controllers derive from it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from delassus_msgs.msg import ContactDynamics, DelassusMatrix, Layout
from delassus_msgs_py import (
    DynamicsReader,
    MatrixReader,
    MessageError,
    ReceivedDynamics,
    ReceivedMatrix,
)
from geometry_msgs.msg import Vector3Stamped, WrenchStamped
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from delassus.recent import Recent
from delassus_ros.inputs.joint_state_bytes import JointStateReader
from delassus_ros.ros.executor import executing
from delassus_ros.ros.program import run_program
from delassus_ros.ros.timers import STEADY
from delassus_ros.sim.settings import PlantSettings

Array = npt.NDArray[np.float64]
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
NEWEST = QoSProfile(depth=5, reliability=ReliabilityPolicy.BEST_EFFORT)
_INVALID = ContactDynamics.VALIDITY_INVALID
_KEPT = 50  # joint states that wait for their matrix
_LONGEST = 0.02  # s between two ticks that counts as a tick
_REPORTS = 5.0  # s
_EVERY = 10  # of so many commands one comes with the error of tracking and predicted forces
TRACKING_ERROR = "tracking_error"
"""Topic below the name of a controller: how far the robot is from where it is to be [m]."""
PREDICTED_FORCE = "predicted_force"
"""Topics below the name of a controller, one per contact: forces predicted by G [N]."""


def run_node(name: str, make: Callable[[], Node], args: Sequence[str] | None = None) -> int:
    """Make a node and run it until a stop request; return the exit status."""

    def run(node: Node, stopping: Callable[[], bool]) -> int:
        with executing([node]) as executor:
            while not stopping():
                executor.spin_once(timeout_sec=0.25)
        return 0

    return run_program(name, make, run, args)


class ControlNode(Node):
    """Pairs joint state, matrix and what comes beside it by stamp and sequence.

    Where delassus_node says INVALID, nothing is commanded: a command without names is sent, which
    answers the joint state. A joint state that comes again gets the same command again.

    Parameters
    ----------
    name : of the node.
    contacts : that the matrices are to have, in the order of their rows.

    Attributes
    ----------
    joints : names of the joints, in the order of q and torques; empty until a layout has come.
    refused : instants without a valid matrix.
    off : how far the robot is from where it is to be (3,) [m]; None while nothing is tracked.
    friction : of the contacts whose forces are predicted; a parameter of the node.
    predict : returns predicted forces by contact (3,) [N] along the axes of the world, under the
        last torques; called after every tenth command. None while no contact bears.
    """

    def __init__(self, name: str, contacts: Sequence[str]) -> None:
        super().__init__(name)
        self.joints: tuple[str, ...] = ()
        self.refused = 0
        self.off: Array | None = None
        self.predict: Callable[[], Mapping[str, Array]] | None = None
        self.friction = float(self.declare_parameter("friction", PlantSettings.friction).value)
        self._contacts, self._urdf, self._ready = tuple(contacts), "", False
        self._states: Recent[int, tuple[Array, Array]] = Recent(_KEPT)
        self._reader, self._matrices, self._rest = (
            JointStateReader(),
            MatrixReader(),
            DynamicsReader(),
        )
        self._names: list[str] = []
        self._order: list[int] = []
        self._matrix: ReceivedMatrix | None = None
        self._waiting: ReceivedDynamics | None = None
        self._then = self._count = 0
        self._times: list[float] = []
        self._commands = self.create_publisher(JointState, "joint_commands", 10)
        self._command, self._nothing = JointState(), JointState()
        self._errors = self.create_publisher(Vector3Stamped, f"~/{TRACKING_ERROR}", 10)
        self._predictions: dict[str, Publisher] = {
            contact: self.create_publisher(WrenchStamped, f"~/{PREDICTED_FORCE}/{contact}", 10)
            for contact in contacts
        }
        node = "delassus_node"
        self.create_subscription(String, "robot_description", self._on_description, LATCHED)
        self.create_subscription(Layout, f"{node}/layout", self._on_layout, LATCHED)
        for kind, topic, callback in (
            (JointState, "joint_states", self._on_joints),
            (DelassusMatrix, f"{node}/delassus", self._on_matrix),
            (ContactDynamics, f"{node}/dynamics", self._on_dynamics),
        ):
            self.create_subscription(kind, topic, callback, NEWEST, raw=True)
        self.create_timer(_REPORTS, self._report, clock=STEADY)

    # What a controller says.

    def prepare(self, urdf: str) -> None:
        """Make ready for a robot, whose joints are known by now."""
        raise NotImplementedError

    def torques(
        self, q: Array, velocity: Array, matrix: ReceivedMatrix, rest: ReceivedDynamics, dt: float
    ) -> Array | None:
        """Return the torques (n,) for an instant, `dt` after the one before [s], or None."""
        raise NotImplementedError

    # What comes.

    def _on_description(self, message: String) -> None:
        self._urdf = message.data
        self._prepare()

    def _on_layout(self, message: Layout) -> None:
        if tuple(message.contacts) != self._contacts:
            self.get_logger().error(
                f"the matrices have contacts {list(message.contacts)}; expected "
                f"{list(self._contacts)}: start delassus_node with node.yaml of this example"
            )
            return
        self.joints = tuple(message.joints)
        # Another one, where the description changed.
        self._matrices.layout_id = message.layout_id
        self._prepare()

    def _prepare(self) -> None:
        if not self._ready and self._urdf and self.joints:
            self.prepare(self._urdf)
            self._command.name = list(self.joints)
            self._ready = True
            self.get_logger().info(f"controls {len(self.joints)} joints")

    def _on_joints(self, data: bytes) -> None:
        if not self.joints:
            return
        state = self._reader.read(data)
        if state.names is not self._names:
            # The same list as long as they do not change.
            place = {name: k for k, name in enumerate(state.names)}
            absent = [name for name in self.joints if name not in place]
            if absent:
                self.get_logger().warning(
                    f"a joint state lacks joint {absent[0]!r}; it has {state.names}: of another "
                    "robot in this ROS domain?",
                    throttle_duration_sec=1.0,
                )
                return
            self._names, self._order = state.names, [place[name] for name in self.joints]
        q, v = state.values[self._order], state.motion[0][self._order]
        self._states.put(state.sec * 10**9 + state.nanosec, (q, v))
        self._answer()

    def _on_matrix(self, data: bytes) -> None:
        try:
            self._matrix = self._matrices.read(data)
        except MessageError as error:
            self.get_logger().warning(str(error), throttle_duration_sec=1.0)
        self._answer()

    def _on_dynamics(self, data: bytes) -> None:
        if self._waiting is not None and self._ready:
            self._refuse("came without its matrix or joint state")
        self._waiting = self._rest.read(data)
        self._answer()

    def _refuse(self, why: str) -> None:
        self.refused += 1
        self.get_logger().warning(
            f"nothing is commanded for an instant that {why}", throttle_duration_sec=1.0
        )

    def _answer(self) -> None:
        """Command torques if all of an instant is there: it comes by three topics."""
        began = time.perf_counter()
        rest, matrix = self._waiting, self._matrix
        if not self._ready or rest is None or matrix is None or matrix.sequence != rest.sequence:
            return
        if rest.validity == _INVALID or matrix.validity == DelassusMatrix.VALIDITY_INVALID:
            self._waiting = None
            self._refuse(f"is INVALID (reasons {rest.reasons | matrix.reasons:#x})")
            self._send(self._nothing, rest.stamp)
            return
        known = self._states.get(rest.stamp)
        if known is None:
            return
        self._waiting = None
        if rest.stamp != self._then:
            dt = min(max(1e-9 * (rest.stamp - self._then), 0.0), _LONGEST) if self._then else 0.0
            torques = self.torques(*known, matrix, rest, dt)
            if torques is None:
                self._send(self._nothing, rest.stamp)
                return
            self._then = rest.stamp
            self._command.effort = torques.tolist()
        self._send(self._command, rest.stamp)
        self._times.append(time.perf_counter() - began)
        self._count += 1
        if self._count % _EVERY == 0:
            self._tell()

    def _tell(self) -> None:
        """Publish the error of tracking and the predicted forces of the last command."""
        header = self._command.header
        if self.off is not None:
            error = Vector3Stamped(header=header)
            error.vector.x, error.vector.y, error.vector.z = self.off.tolist()
            self._errors.publish(error)
        for name, force in ({} if self.predict is None else self.predict()).items():
            message = WrenchStamped(header=header)
            f = message.wrench.force
            f.x, f.y, f.z = force.tolist()
            self._predictions[name].publish(message)

    def _send(self, command: JointState, stamp: int) -> None:
        command.header.stamp.sec, command.header.stamp.nanosec = divmod(stamp, 10**9)
        self._commands.publish(command)

    def _report(self) -> None:
        times, self._times = self._times, []
        if times:
            self.get_logger().info(
                f"{len(times) / _REPORTS:.0f} commands per second, "
                f"{1e6 * np.median(times):.0f} us each "
                f"(99 %: {1e6 * np.quantile(times, 0.99):.0f}); {self.refused} instants refused"
            )
