"""ROS node that runs a robot of ours under joint torques from a topic, in real time."""

from __future__ import annotations

import dataclasses
import gc
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from builtin_interfaces.msg import Time
from delassus_msgs.msg import ActiveContacts
from delassus_msgs_py import SerializedMessage
from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Odometry
from rcl_interfaces.msg import ParameterDescriptor
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from delassus_ros.errors import InputError, unknown
from delassus_ros.needs import missing
from delassus_ros.ros_program import run_program

if TYPE_CHECKING:
    from delassus_ros.sim.plant import Sensed
    from delassus_ros.sim.reference import FloatArray

_WORLD = "odom"
_CONTACTS_PERIOD = 0.05  # s; the set is repeated at least this often
_CATCH_UP = 0.02  # s of delay that is made good
_PUSH_TIME = 0.2  # s
_START = 100.0  # s, of simulated time: at zero a clock has no time
_FRAME = 10  # joint states from one picture in the viewer to the next
RECORDED = 0.04
"""Simulated time between two postures of a recording [s]."""
_PATIENCE = 0.5  # s, for the answer to a joint state
_STAMP = {"stamp": {"header.stamp.sec": "i", "header.stamp.nanosec": "I"}}

_HELP = """\
usage: delassus_plant [--ros-args ...]

Simulates a robot in MuJoCo, in real time, under joint torques.

subscribes  joint_commands      sensor_msgs/JointState: efforts by joint; drives brake without
publishes   joint_states        sensor_msgs/JointState, with velocities and efforts
            odometry            nav_msgs/Odometry of a free base, twist in its own axes
            active_contacts     delassus_msgs/ActiveContacts (latched), by force with hysteresis
            robot_description   std_msgs/String (latched)
            ~/contact_force/LF  geometry_msgs/WrenchStamped about its frame, for each contact
parameters  robot               quadruped (the default), humanoid, arm (over a table) or
                                arm_on_cylinder
            rate                joint states per second, a divisor of 1000 (500)
            lockstep            wait for the answer to each joint state, and publish /clock, for
                                others with use_sim_time (false)
            view                open MuJoCo's viewer (false)
            record              file.npy for where the robot was, 25 times a second ("")
            push_every          time between pushes of the base, 0 for none [s] (0)
            push_force          of a push, as a share of the weight (0.1)
            friction, armature, joint_friction, joint_damping, torque_limit, torque_noise,
            effort_noise, position_noise, velocity_noise, base_noise, silence, on_silence, holding,
            braking, seed: of drives, sensors and floor; see delassus_ros.sim.plant.PlantSettings

example     delassus_plant --ros-args -p joint_friction:=0.1 -p velocity_noise:=0.03
"""


class PlantNode(Node):
    """Publish what the plant's sensors say, and pass torques on to its drives.

    Attributes
    ----------
    period : time between joint states [s].
    late : how often the schedule had to be moved because the machine did not keep up.
    """

    def __init__(self) -> None:
        # Here, as it needs the physics engine, which main looks for first.
        from delassus_ros.sim.plant import PERIOD, PlantSettings
        from delassus_ros.sim.plants import OWN, ROBOTS, make_plant

        super().__init__("plant")
        rate = self._read("rate", 500, "Joint states per second; a divisor of 1000.")
        steps = round(1.0 / PERIOD)
        if rate < 1 or steps % rate:
            raise InputError(f"parameter 'rate' is {rate}; expected a divisor of {steps}")
        self.period, self._substeps = 1.0 / rate, steps // rate
        robot = self._read("robot", ROBOTS[0], f"One of {', '.join(ROBOTS)}.")
        if robot not in ROBOTS:
            raise InputError(unknown("robot", str(robot), ROBOTS))
        self._push_every = self._read("push_every", 0.0, "Time between pushes [s]; 0: none.")
        self._push_force = self._read("push_force", 0.1, "Of a push, as a share of the weight.")
        self._lockstep = self._read("lockstep", False, "Wait for the answer to each joint state.")
        own = OWN.get(robot, {})
        settings = PlantSettings(
            **{
                field.name: self._read(
                    field.name, own.get(field.name, field.default), "See PlantSettings."
                )
                for field in dataclasses.fields(PlantSettings)
            }
        )
        self._random = np.random.default_rng(settings.seed)
        self._plant = make_plant(robot, settings)
        self._show = self._viewer() if self._read("view", False, "Open the viewer.") else None
        self._record = self._read("record", "", "File for postures, NumPy's .npy; empty: none.")
        self._postures: list[FloatArray] = []
        self.late = 0
        self._names, self._frames = list(self._plant.joint_names), 0
        self._was_silent, self._contacts_due = True, 0.0
        self._states: tuple[int, ...] = ()
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        newest = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
        self._make_messages()
        self._joints = self.create_publisher(JointState, "joint_states", 10)
        self._base = self.create_publisher(Odometry, "odometry", 10)
        self._contacts = self.create_publisher(ActiveContacts, "active_contacts", latched)
        self._forces = [
            self.create_publisher(WrenchStamped, f"~/contact_force/{name}", 10)
            for name in self._plant.contact_names
        ]
        self._description = self.create_publisher(String, "robot_description", latched)
        self._description.publish(String(data=self._plant.urdf))
        self._simulated = self.create_publisher(Clock, "/clock", 10) if self._lockstep else None
        self._stamp = self._answered = (0, 0)
        self._commands = self.create_subscription(
            JointState, "joint_commands", self._on_command, newest
        )

    def _make_messages(self) -> None:
        """Serialize what a tick fills in the numbers of."""
        zeros = [0.0] * len(self._names)
        joints = JointState(name=self._names, position=zeros, velocity=zeros, effort=zeros)
        fields = ("position", "velocity", "effort")
        self._joint_bytes = SerializedMessage(joints, _STAMP, fields)
        base = Odometry(child_frame_id=self._plant.root)
        base.header.frame_id = _WORLD
        parts = {
            "pose": [f"pose.pose.position.{x}" for x in "xyz"]
            + [f"pose.pose.orientation.{x}" for x in "xyzw"],
            "twist": [f"twist.twist.{part}.{x}" for part in ("linear", "angular") for x in "xyz"],
        }
        groups = {name: dict.fromkeys(paths, "d") for name, paths in parts.items()}
        self._base_bytes = SerializedMessage(base, {**_STAMP, **groups})

    def _read(self, name: str, default: Any, words: str) -> Any:
        descriptor = ParameterDescriptor(description=words, read_only=True)
        return self.declare_parameter(name, default, descriptor).value

    def _viewer(self) -> Callable[[], bool]:
        try:
            return self._plant.view()
        except RuntimeError as error:
            raise InputError(f"parameter 'view': {error}") from error

    def _on_command(self, message: JointState) -> None:
        try:
            if len(message.name) != len(message.effort):
                raise InputError(
                    f"the command has {len(message.name)} names but {len(message.effort)} efforts"
                )
            torques = dict(zip(message.name, message.effort, strict=True))
            absent = [name for name in self._names if name not in torques]
            if absent:
                raise InputError(f"the command lacks joint {absent[0]!r}; it has {[*torques]}")
            self._plant.command([torques[name] for name in self._names])
            stamp = message.header.stamp
            self._answered = stamp.sec, stamp.nanosec
        except InputError as error:
            self.get_logger().warning(str(error), throttle_duration_sec=1.0)

    def tick(self) -> None:
        """Simulate one period and publish its end."""
        plant = self._plant
        # In ticks: the rest of a division of times is now just below the one, now just above 0.
        every, tick = round(self._push_every / self.period), round(plant.time / self.period)
        if self._push_every and tick and tick % every == 0:
            angle = self._random.uniform(0.0, 2.0 * np.pi)
            force = self._push_force * plant.weight * np.array([np.cos(angle), np.sin(angle), 0])
            plant.push(force, _PUSH_TIME)
            self.get_logger().info(f"pushed with {force[0]:.1f}, {force[1]:.1f} N")
        for _ in range(self._substeps):
            plant.step()
        if plant.silent is not self._was_silent:
            self._was_silent = plant.silent
            text = "no commands: the drives look after themselves" if plant.silent else "commanded"
            self.get_logger().info(text)
        self._publish()
        self._frames += 1
        if self._show is not None and self._frames % _FRAME == 0:
            self._show()
        if self._record and plant.time % RECORDED < self.period:
            self._postures.append(plant.posture)

    def _publish(self) -> None:
        sensed = self._plant.sense()
        stamp = self._now()
        self._stamp = stamp.sec, stamp.nanosec
        self._publish_contacts(stamp)
        if self._plant.floating:
            self._publish_base(stamp, sensed)
        self._joint_bytes.set("stamp", stamp.sec, stamp.nanosec)
        for target, values in zip(
            self._joint_bytes.arrays.values(), (sensed.q, sensed.velocity, sensed.effort),
            strict=True,
        ):  # fmt: skip
            target[...] = values
        # First, so that what is felt is there when the answer to the joint state comes.
        self._publish_forces(stamp)
        self._joints.publish(self._joint_bytes.to_bytes())

    def _publish_base(self, stamp: Time, sensed: Sensed) -> None:
        self._base_bytes.set("stamp", stamp.sec, stamp.nanosec)
        self._base_bytes.set("pose", *sensed.position, *sensed.orientation)
        self._base_bytes.set("twist", *sensed.twist)
        self._base.publish(self._base_bytes.to_bytes())

    def _publish_forces(self, stamp: Time) -> None:
        wanted = [each for each in self._forces if each.get_subscription_count()]
        if not wanted:
            return
        for publisher, force in zip(self._forces, self._plant.contact_wrenches(), strict=True):
            wrench = WrenchStamped()
            wrench.header.stamp, wrench.header.frame_id = stamp, _WORLD
            f, m = wrench.wrench.force, wrench.wrench.torque
            f.x, f.y, f.z, m.x, m.y, m.z = force.tolist()
            publisher.publish(wrench)

    def _now(self) -> Time:
        """Return the stamp of an instant; of simulated time where /clock is, which goes first."""
        if self._simulated is None:
            now: Time = self.get_clock().now().to_msg()
            return now
        seconds, rest = divmod(round(1e9 * (_START + self._plant.time)), 10**9)
        stamp = Time(sec=seconds, nanosec=rest)
        self._simulated.publish(Clock(clock=stamp))
        return stamp

    def _publish_contacts(self, stamp: Time) -> None:
        states, now = self._plant.contact_states, self._plant.time
        if states == self._states and now < self._contacts_due:
            return
        self._states, self._contacts_due = states, now + _CONTACTS_PERIOD
        message = ActiveContacts(
            names=list(self._plant.contact_names), status=[int(state) for state in states]
        )
        message.header.stamp = stamp
        self._contacts.publish(message)

    def run(self, proceed: Callable[[], bool]) -> None:
        """Tick at the rate, and take commands meanwhile; asked `proceed` before every tick."""
        executor = SingleThreadedExecutor()
        executor.add_node(self)
        deadline = time.monotonic()
        while proceed():
            begin = time.monotonic()
            if begin - deadline > _CATCH_UP:
                self.late += 1
                self.get_logger().warning(
                    f"{1e3 * (begin - deadline):.0f} ms late, {self.late} times so far: the "
                    "machine is too busy for this rate",
                    throttle_duration_sec=5.0,
                )
                deadline = begin
            self.tick()
            deadline += self.period
            if self._lockstep and self._answered != (0, 0):
                deadline = time.monotonic()
                until = deadline + _PATIENCE
                while self._answered != self._stamp and time.monotonic() < until and proceed():
                    executor.spin_once(timeout_sec=0.1)
            while (rest := deadline - time.monotonic()) > 0.0:
                executor.spin_once(timeout_sec=rest)

    def save(self) -> None:
        """Write the postures, if they are wanted."""
        if self._record:
            np.save(self._record, np.array(self._postures))


def main(args: list[str] | None = None) -> int:
    """Run the node until it is told to stop; return the exit status."""
    fault = missing("delassus_plant", "mujoco")
    if fault is not None:
        print(fault, file=sys.stderr)
        return 1
    return run_program("delassus_plant", PlantNode, _run, args, _HELP)


def _run(node: PlantNode, stopping: Callable[[], bool]) -> int:
    # What exists by now stays; the collector need not look at it again in the loop.
    gc.freeze()
    node.run(lambda: not stopping())
    node.save()
    return 0


if __name__ == "__main__":
    sys.exit(main())
