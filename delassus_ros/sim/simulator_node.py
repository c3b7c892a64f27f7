"""ROS node that runs the demo quadruped in real time and publishes what a robot would."""

from __future__ import annotations

import array
import gc
import sys
import time
from collections.abc import Callable

import numpy as np
from builtin_interfaces.msg import Time
from delassus_msgs.msg import ActiveContacts, DelassusMatrix
from delassus_msgs_py import SerializedMessage
from rcl_interfaces.msg import IntegerRange, ParameterDescriptor
from rclpy.exceptions import InvalidParameterValueException
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.qos_overriding_options import QoSOverridingOptions
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from delassus_ros.needs import missing
from delassus_ros.ros_program import run_program
from delassus_ros.sim import ROBOTS, demo_urdf

_CONTACTS_PERIOD = 100_000_000  # ns; the set is repeated at least this often
_SPIN_PERIOD = 0.05  # s between looks at parameter requests
_CATCH_UP = 0.01  # s of delay that is made good
_STAMP = {"stamp": ("header.stamp.sec", "header.stamp.nanosec")}
_REFERENCE = {
    **_STAMP,
    "number": ("sequence", "contacts_stamp.sec", "contacts_stamp.nanosec"),
}
_EXTRA_JOINT = "gripper"  # not in the URDF: consumers have to pick their joints by name

_HELP = """\
usage: delassus_simulator [--ros-args ...]

Simulates a small robot in MuJoCo, in real time, and publishes what a robot would.

publishes   joint_states        sensor_msgs/JointState
            active_contacts     delassus_msgs/ActiveContacts (latched)
            robot_description   std_msgs/String (latched)
            ~/reference         delassus_msgs/DelassusMatrix: the physics engine's own
            ~/odometry, ~/contact_force/<contact>: with the parameter truth
parameters  robot               quadruped (the default) or geared
            rate                joint states per second, a divisor of 1000 (1000)
            reference           publish ~/reference (true)
            truth               publish what a robot cannot know for certain (false)

example     delassus_simulator --ros-args -p robot:=geared
"""


class SimulatorNode(Node):
    """Publish joint states, active contacts, the robot description and the reference matrix.

    The joints come in alphabetical order, not in that of the URDF, with one that is not of the
    robot among them, as from a joint_state_broadcaster with more hardware than one robot.
    """

    def __init__(self) -> None:
        # Here, as it needs the physics engine, which main looks for first.
        from delassus_ros.sim.plant import PERIOD
        from delassus_ros.sim.quadruped import QuadrupedSimulation

        steps_per_second = round(1.0 / PERIOD)
        super().__init__("simulator")
        rate = self.declare_parameter(
            "rate",
            1000,
            ParameterDescriptor(
                description="Joint states per second; a divisor of 1000.",
                integer_range=[IntegerRange(from_value=1, to_value=steps_per_second, step=1)],
                read_only=True,
            ),
        ).value
        if steps_per_second % rate:
            raise InvalidParameterValueException(
                "rate", rate, f"{rate} does not divide {steps_per_second}"
            )
        with_reference = self.declare_parameter(
            "reference",
            True,
            ParameterDescriptor(
                description="Publish the physics engine's own matrix of all feet on ~/reference.",
                read_only=True,
            ),
        ).value
        with_truth = self.declare_parameter(
            "truth",
            False,
            ParameterDescriptor(
                description="Publish what a robot cannot know for certain: its base on "
                "~/odometry, the floor's forces on ~/contact_force/<contact>.",
                read_only=True,
            ),
        ).value
        robot = self.declare_parameter(
            "robot",
            ROBOTS[0],
            ParameterDescriptor(
                description="Which robot to simulate.",
                additional_constraints=f"one of {', '.join(ROBOTS)}",
                read_only=True,
            ),
        ).value
        self.period = 1.0 / rate
        """Time between joint states, s."""
        self.late = 0
        """Number of times the schedule had to be moved because the machine did not keep up."""

        self._simulation = QuadrupedSimulation(robot)
        self._substeps = steps_per_second // rate
        self._stamp = 0
        self._make_joint_states()
        self._make_contacts()
        self._make_reference(with_reference)
        self._make_truth(with_truth)
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._description = self.create_publisher(String, "robot_description", latched)
        self._description.publish(String(data=demo_urdf(robot)))

    def _make_joint_states(self) -> None:
        own = self._simulation.joint_names
        names = sorted([*own, _EXTRA_JOINT])
        self._places = np.array([names.index(name) for name in own])
        joints = JointState(name=names)
        zeros = [0.0] * len(names)
        fields = ("position", "velocity", "effort")
        for field in fields:
            setattr(joints, field, zeros)
        # A tick fills in the numbers of a message that is serialized already.
        self._joint_bytes = SerializedMessage(joints, _STAMP, fields)
        self._position, self._velocity, self._effort = self._joint_bytes.arrays.values()
        self._joint_publisher = self.create_publisher(
            JointState,
            "joint_states",
            10,
            qos_overriding_options=QoSOverridingOptions.with_default_policies(),
        )

    def _make_contacts(self) -> None:
        self._contacts = ActiveContacts(names=list(self._simulation.contact_names))
        self._contacts_stamp = (0, 0)
        self._states: tuple[int, ...] = ()
        self._contacts_due = 0  # ns; on the clock of the stamps, also where the simulation lags
        self._contacts_publisher = self.create_publisher(
            ActiveContacts,
            "active_contacts",
            QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL),
        )

    def _make_reference(self, wanted: bool) -> None:
        self._reference_publisher = (
            self.create_publisher(DelassusMatrix, "~/reference", 10) if wanted else None
        )
        names = self._simulation.contact_names
        m = 3 * len(names)
        message = DelassusMatrix()
        message.contacts = list(names)
        message.kinds = ["point"] * len(names)
        message.status = [ActiveContacts.ACTIVE] * len(names)
        message.row_offsets = [3 * i for i in range(len(names) + 1)]
        message.axes = DelassusMatrix.AXES_CONTACT
        message.validity = DelassusMatrix.VALIDITY_OK
        message.input_age = float("nan")
        message.algorithm = "mujoco"
        message.matrix = array.array("d", bytes(8 * m * m))
        self._sequence = 0
        self._reference = SerializedMessage(message, _REFERENCE, ("matrix",))
        self._reference_matrix = self._reference.arrays["matrix"].reshape(m, m)

    def _make_truth(self, wanted: bool) -> None:
        self._truth = None
        if wanted:
            # Here, as nothing else of the demo needs nav_msgs.
            from delassus_ros.sim.truth_publisher import TruthPublisher

            self._truth = TruthPublisher(self, "base", self._simulation.contact_names)

    def tick(self) -> None:
        """Publish the reference of the last tick, simulate one period and publish its end."""
        # So late because what follows a joint state competes with those who wait for it.
        if self._reference_publisher is not None and self._sequence:
            self._reference_publisher.publish(self._reference.to_bytes())
        simulation = self._simulation
        for _ in range(self._substeps):
            simulation.step()
        self._position[self._places] = simulation.q
        self._velocity[self._places] = simulation.velocity
        self._effort[self._places] = simulation.effort
        if self._reference_publisher is not None:
            self._reference_matrix[...] = simulation.reference_all()

        # Stamps identify joint states in the demo: no two may be the same.
        self._stamp = max(self.get_clock().now().nanoseconds, self._stamp + 1)
        stamp = divmod(self._stamp, 10**9)
        # The set goes first, so that it is there when the joint state it belongs to comes.
        states = simulation.contact_states
        if states != self._states or self._stamp >= self._contacts_due:
            self._states = states
            self._contacts_due = self._stamp + _CONTACTS_PERIOD
            self._contacts_stamp = stamp
            self._contacts.header.stamp = Time(sec=stamp[0], nanosec=stamp[1])
            self._contacts.status = [int(state) for state in states]
            self._contacts_publisher.publish(self._contacts)
        if self._truth is not None:
            truth = simulation.truth()
            # Torques of the same instant as positions and forces.
            self._effort[self._places] = truth.effort
            self._truth.publish(truth, Time(sec=stamp[0], nanosec=stamp[1]))
        self._joint_bytes.set("stamp", *stamp)
        self._joint_publisher.publish(self._joint_bytes.to_bytes())
        self._sequence += 1
        self._reference.set("stamp", *stamp)
        self._reference.set("number", self._sequence, *self._contacts_stamp)

    def run(self, proceed: Callable[[], bool]) -> None:
        """Tick at the rate.

        Late ticks are made good at up to twice the rate, never back to back. A delay of more than
        10 ms is not: the schedule is moved, and the simulation falls behind the clock.

        Parameters
        ----------
        proceed
            Asked before every tick.
        """
        executor = SingleThreadedExecutor()
        executor.add_node(self)
        deadline = spin_due = time.monotonic()
        while proceed():
            begin = time.monotonic()
            if begin - deadline > _CATCH_UP:
                self._move_schedule(begin - deadline)
                deadline = begin
            self.tick()
            if begin >= spin_due:
                spin_due = begin + _SPIN_PERIOD
                executor.spin_once(timeout_sec=0.0)
            deadline += self.period
            wait = max(deadline, begin + 0.5 * self.period) - time.monotonic()
            if wait > 0.0:
                time.sleep(wait)

    def _move_schedule(self, delay: float) -> None:
        self.late += 1
        self.get_logger().warning(
            f"{1e3 * delay:.0f} ms late; moved the schedule ({self.late} times so far): "
            "the machine is too busy for this rate",
            throttle_duration_sec=5.0,
        )


def main(args: list[str] | None = None) -> int:
    """Run the node until it is told to stop; return the exit status."""
    fault = missing("delassus_simulator", "mujoco")
    if fault is not None:
        print(fault, file=sys.stderr)
        return 1
    return run_program("delassus_simulator", SimulatorNode, _run, args, _HELP)


def _run(node: SimulatorNode, stopping: Callable[[], bool]) -> int:
    # What exists by now stays; the collector need not look at it again in the loop.
    gc.freeze()
    node.run(lambda: not stopping())
    return 0


if __name__ == "__main__":
    sys.exit(main())
