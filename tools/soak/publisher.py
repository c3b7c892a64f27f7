"""ROS node that sends joint states of the 30-joint humanoid at a rate, and keeps their stamps."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from pathlib import Path

from builtin_interfaces.msg import Time
from delassus_msgs.msg import ActiveContacts
from delassus_msgs_py import SerializedMessage
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from delassus.model import Robot
from delassus.robots.built_in.humanoid import humanoid_urdf
from delassus_ros.ros.program import run_program
from delassus_ros.sim.pace import Pace
from delassus_ros.sim.plant_node import STAMP

from .control import Control, PublisherCommand, Receiver
from .humanoid import CONTACTS, TWIST, JointSwing

TOPICS = {Receiver.NODE: "joint_states", Receiver.ECHO: "echo/joint_states"}
"""Topics of joint states by target."""

_PROBE_PERIOD = 0.05  # s
_REPEAT_PERIOD = 0.05  # s
_LOOK_PERIOD = 0.2  # s between looks for subscribers, while there is nothing to send


class SoakPublisher(Node):
    """Publishes the humanoid's description, contacts and joint states by commands in a file.

    Parameters
    ----------
    control
        File of commands and sent stamps.
    rate
        Joint states per second.
    """

    def __init__(self, control: Control, rate: float) -> None:
        super().__init__("soak_publisher", start_parameter_services=False, enable_rosout=False)
        self._control = control
        self._period = 1.0 / rate
        urdf = humanoid_urdf()
        joints = Robot.from_urdf(urdf.encode()).joint_names
        self._motion = JointSwing(joints)
        zeros = [0.0] * len(joints)
        state = JointState(name=list(joints), position=zeros, velocity=zeros, effort=zeros)
        self._state = SerializedMessage(state, STAMP, ("position", "velocity"))
        self._position = self._state.arrays["position"]
        self._velocity = self._state.arrays["velocity"]
        self._outputs: dict[Receiver, Publisher] = {
            target: self.create_publisher(JointState, topic, 10)
            for target, topic in TOPICS.items()
        }
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._contacts = self.create_publisher(ActiveContacts, "active_contacts", latched)
        self._active = ActiveContacts(
            names=list(CONTACTS), status=[ActiveContacts.ACTIVE] * len(CONTACTS)
        )
        self._base = self.create_publisher(Odometry, "odometry", 10)
        self._odometry = _odometry()
        self._repeat_due = self._look_due = 0.0
        self._stamp = 0
        self._move(0)
        self._description = self.create_publisher(String, "robot_description", latched)
        self._description.publish(String(data=urdf))

    def run(self, proceed: Callable[[], bool]) -> None:
        """Follow the commands in the file, one tick per period; see :class:`Pace`.

        Parameters
        ----------
        proceed
            Returns whether to continue; called before every tick.
        """
        control, pace = self._control, Pace()
        while proceed():
            begin = time.monotonic()
            command = control.command
            period = _PROBE_PERIOD if command is PublisherCommand.PROBE else self._period
            if begin >= self._repeat_due:
                self._repeat(begin)
            if pace.begin(period) and command is PublisherCommand.SEND:
                control.late += 1
            if command is PublisherCommand.WAIT:
                self._look(begin)
            elif not control.full:
                self._send(control.target)
            if (rest := pace.rest) > 0.0:
                time.sleep(rest)

    def _send(self, target: Receiver) -> None:
        number = self._control.count(target)
        if number != self._number:
            self._move(number)
        # Stamps identify joint states and must be distinct.
        stamp = self._stamp = max(time.time_ns(), self._stamp + 1)
        self._state.set("stamp", *divmod(stamp, 10**9))
        self._control.add(target, stamp)
        self._outputs[target].publish(self._state.to_bytes())
        # After publishing, so that the joint state is not delayed.
        self._move(number + 1)

    def _move(self, number: int) -> None:
        """Write positions and velocities of joint state `number`."""
        self._number = number
        self._position[...] = self._motion.at(number)
        self._velocity[...] = self._motion.rates(number)

    def _repeat(self, now: float) -> None:
        """Publish contacts and the motion of the base, which do not change."""
        self._repeat_due = now + _REPEAT_PERIOD
        sec, nanosec = divmod(time.time_ns(), 10**9)
        stamp = Time(sec=sec, nanosec=nanosec)
        self._active.header.stamp = self._odometry.header.stamp = stamp
        self._contacts.publish(self._active)
        self._base.publish(self._odometry)

    def _look(self, now: float) -> None:
        if now < self._look_due:
            return
        self._look_due = now + _LOOK_PERIOD
        needed = [*self._outputs.values(), self._contacts]
        self._control.ready = all(output.get_subscription_count() for output in needed)


def _odometry() -> Odometry:
    message = Odometry(child_frame_id="pelvis")
    message.header.frame_id = "odom"
    message.pose.pose.orientation.w = 1.0
    linear, angular = message.twist.twist.linear, message.twist.twist.angular
    linear.x, linear.y, linear.z, angular.x, angular.y, angular.z = TWIST
    return message


def main() -> int:
    """Run until told to stop; the arguments are the file and the rate."""
    path, rate = sys.argv[1:3]
    return run_program(
        "soak_publisher", lambda: SoakPublisher(Control(Path(path)), float(rate)), _run, []
    )


def _run(node: SoakPublisher, stopping: Callable[[], bool]) -> int:
    # Present objects live until the end; freezing exempts them from garbage collection.
    gc.freeze()
    node.run(lambda: not stopping())
    return 0


if __name__ == "__main__":
    sys.exit(main())
