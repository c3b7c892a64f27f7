"""ROS node that simulates a robot, in real time or in lockstep: delassus_plant.

With a gait it is delassus_simulator, see :mod:`delassus_ros.sim.simulator_node`.
"""

from __future__ import annotations

import array
import dataclasses
import gc
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from builtin_interfaces.msg import Time
from delassus_msgs.msg import ActiveContacts, DelassusMatrix, Estimate
from delassus_msgs_py import SerializedMessage
from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Odometry
from rcl_interfaces.msg import ParameterDescriptor
from rclpy.executors import Executor
from rclpy.node import Node
from rclpy.qos_overriding_options import QoSOverridingOptions
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from delassus.errors import InputError, unknown
from delassus.robots.built_in import ROBOTS as WALKING
from delassus_ros.ros.arrival import stamp_of
from delassus_ros.ros.executor import executing
from delassus_ros.ros.messages import stamp_in
from delassus_ros.ros.program import Program
from delassus_ros.ros.topics import LATCHED, LATEST
from delassus_ros.sim.pace import Pace
from delassus_ros.sim.settings import STEP_S

if TYPE_CHECKING:
    from delassus_ros.sim.plant import Plant, Sensed
    from delassus_ros.sim.reference import FloatArray

_CONTACTS_PERIOD = 50_000_000  # ns; the set of contacts is repeated at least this often
_PUSH_TIME = 0.2  # s
_START = 100.0  # s, of simulated time: at zero a clock has no time
_FRAME = 10  # joint states from one picture in the viewer to the next
RECORDED = 0.04
"""Simulated time between two postures of a recording [s]."""
_REPEAT = 0.5  # s without an answer after which the joint state is published again
_SAY = 5.0  # s without an answer after which a warning names its topic
_ANSWERS: dict[str, tuple[str, type]] = {
    "commands": ("joint_commands", JointState),
    "estimates": ("delassus_estimator/estimate", Estimate),
    "matrices": ("delassus_node/delassus", DelassusMatrix),
}
"""Topics and types of the answers to joint states, by the values of the parameter answers."""
STAMP = {"stamp": ("header.stamp.sec", "header.stamp.nanosec")}
"""Fields of a stamp in a serialized message."""
_NUMBER = {"number": ("sequence", "contacts_stamp.sec", "contacts_stamp.nanosec")}
"""Further fields of a reference that change from one to the next."""
_EXTRA_JOINT = "gripper"
"""Joint in joint states with a gait that the URDF lacks: consumers pick joints by name."""

_HELP = """\
usage: delassus_plant [--ros-args ...]

Simulates a robot in MuJoCo under joint torques, in real time or, in lockstep, slower.

subscribes  joint_commands      sensor_msgs/JointState: efforts by joint; without commands the
                                drives brake. A message without names has no command, but
                                counts as an answer
            delassus_estimator/estimate
                                delassus_msgs/Estimate: in lockstep, with answers "estimates"
            delassus_node/delassus
                                delassus_msgs/DelassusMatrix: in lockstep, with answers "matrices"
publishes   joint_states        sensor_msgs/JointState, with velocities and efforts
            odometry            nav_msgs/Odometry of a free base, twist in the axes of the base
            active_contacts     delassus_msgs/ActiveContacts (latched), by force with hysteresis
            robot_description   std_msgs/String (latched)
            ~/contact_force/LF  geometry_msgs/WrenchStamped in the contact's frame, per contact
            ~/odometry          nav_msgs/Odometry in place of odometry: with the parameter truth
            ~/reference         delassus_msgs/DelassusMatrix, computed by MuJoCo: with the
                                parameter reference
            /clock              rosgraph_msgs/Clock: in lockstep
parameters  robot               quadruped (the default), geared (a quadruped with geared joints
                                and a four-bar on its trunk), humanoid, arm (over a table) or
                                arm_on_cylinder
            rate                joint states per second, a divisor of 1000 (500)
            lockstep            publish /clock for nodes with use_sim_time; the clock stands still
                                until joint states are answered, and is never faster than real
                                time (false)
            slack               time by which answers may be behind joint states in lockstep [s];
                                0: each joint state waits for the previous answer (0)
            answers             commands, estimates or matrices: messages that answer joint states
                                (commands)
            reference           publish ~/reference (false)
            truth               publish the state without noise, and forces of the same instant
                                (false)
            view                open MuJoCo's viewer (false)
            record              file.npy for the positions of the robot, 25 times a second ("")
            push_every          time between pushes of the base [s]; 0: no pushes (0)
            push_force          force of a push, as a share of the weight (0.1)
            friction, armature, joint_friction, joint_damping, torque_limit, torque_noise,
            effort_noise, position_noise, velocity_noise, base_noise, silence, on_silence, holding,
            braking, seed: of drives, sensors and floor;
            see delassus_ros.sim.settings.PlantSettings

example     delassus_plant --ros-args -p joint_friction:=0.1 -p velocity_noise:=0.03
"""


class PlantNode(Node):
    """Publishes the readings of the plant's sensors, and passes torques on to its drives.

    Parameters
    ----------
    rate : default number of joint states per second.
    gait : the drives follow a gait instead of torques. Joint states then have their joints in
        alphabetical order, with one joint that is not part of the robot, as from a
        joint_state_broadcaster with more hardware than one robot; the base has no sensor.

    Attributes
    ----------
    period : time between joint states [s].
    late : number of times that the schedule was moved because the machine did not keep up, without
        lockstep.
    """

    def __init__(self, name: str = "plant", rate: int = 500, gait: bool = False) -> None:
        super().__init__(name)
        rate = self._read("rate", rate, "Joint states per second; a divisor of 1000.")
        steps = round(1.0 / STEP_S)
        if rate < 1 or steps % rate:
            raise InputError(f"parameter 'rate' is {rate}; expected a divisor of {steps}")
        self.period, self._substeps = 1.0 / rate, steps // rate
        self._push_every = self._read("push_every", 0.0, "Time between pushes [s]; 0: none.")
        self._push_force = self._read("push_force", 0.1, "Of a push, as a share of the weight.")
        lockstep: bool = self._read("lockstep", False, "Wait for answers, and publish /clock.")
        self._lockstep = lockstep
        slack = self._read("slack", 0.0, "Time by which answers may be behind joint states [s].")
        if not 0.0 <= slack < np.inf:
            raise InputError(f"parameter 'slack' is {slack}; expected a time of 0 s or more")
        self._slack = round(1e9 * slack)
        self.plant = self._make_walking() if gait else self._make_plant()
        default = "commands" if self.plant.takes_torques else "matrices"
        answers = self._read("answers", default, f"One of {', '.join(_ANSWERS)}.")
        if answers not in _ANSWERS:
            raise InputError(unknown("answers", str(answers), tuple(_ANSWERS), "choices"))
        self._answers, kind = _ANSWERS[answers]
        self._show = self._viewer() if self._read("view", False, "Open the viewer.") else None
        self._record = self._read("record", "", "File for postures, NumPy's .npy; empty: none.")
        self._postures: list[FloatArray] = []
        self.late = 0
        self._ticks = 0
        self._random = np.random.default_rng(self.plant.settings.seed)
        self._was_silent, self._silences = self.plant.silent, 0
        self._stamp = self._contacts_stamp = self._contacts_due = 0  # ns
        self._states: tuple[int, ...] = ()
        text = "Publish the state without noise, and forces of the same instant."
        self._wants_truth: bool = self._read("truth", False, text)
        self._world = "world" if self._wants_truth else "odom"
        self._make_messages(gait)
        self._joints = self.create_publisher(
            JointState,
            "joint_states",
            10,
            qos_overriding_options=QoSOverridingOptions.with_default_policies(),
        )
        self._contacts = self.create_publisher(ActiveContacts, "active_contacts", LATCHED)
        self._tells_base = self._wants_truth or not gait
        if self._tells_base:
            topic = "~/odometry" if self._wants_truth else "odometry"
            self._base = self.create_publisher(Odometry, topic, 10)
            self._forces = [
                self.create_publisher(WrenchStamped, f"~/contact_force/{name}", 10)
                for name in self.plant.contact_names
            ]
        self._description = self.create_publisher(String, "robot_description", LATCHED)
        self._description.publish(String(data=self.plant.urdf))
        self._simulated = self.create_publisher(Clock, "/clock", 10) if self._lockstep else None
        # Stamps of the newest joint state and of the newest answered joint state [ns]; 0: none
        # yet.
        self._asked = self._answered = 0
        if self.plant.takes_torques:
            self._commands = self.create_subscription(
                JointState, _ANSWERS["commands"][0], self._on_command, LATEST
            )
        if self._lockstep and answers != "commands":
            self.create_subscription(kind, self._answers, self._on_answer, LATEST, raw=True)
        text = "Publish the physics engine's own matrix of all feet on ~/reference."
        self._reference = _Reference(self) if self._read("reference", gait, text) else None

    def _make_walking(self) -> Plant:
        """Return the robot with a gait that parameters choose."""
        # Imported late, here and below: the modules need the physics engine, which main checks.
        from delassus_ros.sim.quadruped import stepping_quadruped

        return stepping_quadruped(self._robot(WALKING))

    def _robot(self, robots: Sequence[str]) -> str:
        """Return the name of the robot by its parameter."""
        robot: str = self._read("robot", robots[0], f"One of {', '.join(robots)}.")
        if robot not in robots:
            raise InputError(unknown("robot", robot, robots))
        return robot

    def _make_plant(self) -> Plant:
        """Return the robot under torques that parameters choose."""
        from delassus_ros.sim.plants import OWN, ROBOTS, make_plant
        from delassus_ros.sim.settings import PlantSettings

        robot = self._robot(ROBOTS)
        changed = OWN.get(robot, {})
        settings = PlantSettings(
            **{
                field.name: self._read(
                    field.name, changed.get(field.name, field.default), "See PlantSettings."
                )
                for field in dataclasses.fields(PlantSettings)
            }
        )
        return make_plant(robot, settings)

    def _make_messages(self, gait: bool) -> None:
        """Serialize the messages whose numbers a tick overwrites."""
        names = list(self.plant.joint_names)
        if gait:
            names = sorted([*names, _EXTRA_JOINT])
        self._places = [names.index(name) for name in self.plant.joint_names]
        zeros = [0.0] * len(names)
        joints = JointState(name=names, position=zeros, velocity=zeros, effort=zeros)
        fields = ("position", "velocity", "effort")
        self._joint_bytes = SerializedMessage(joints, STAMP, fields)
        base = Odometry(child_frame_id=self.plant.root)
        base.header.frame_id = self._world
        groups = {
            "pose": [f"pose.pose.position.{x}" for x in "xyz"]
            + [f"pose.pose.orientation.{x}" for x in "xyzw"],
            "twist": [f"twist.twist.{part}.{x}" for part in ("linear", "angular") for x in "xyz"],
        }
        self._base_bytes = SerializedMessage(base, {**STAMP, **groups})

    def _read(self, name: str, default: Any, words: str) -> Any:
        descriptor = ParameterDescriptor(description=words, read_only=True)
        return self.declare_parameter(name, default, descriptor).value

    def _viewer(self) -> Callable[[], bool]:
        try:
            return self.plant.view()
        except RuntimeError as error:
            raise InputError(f"parameter 'view': {error}") from error

    def _on_command(self, message: JointState) -> None:
        stamp = stamp_of(message.header.stamp.sec, message.header.stamp.nanosec)
        if not (message.name or message.effort):
            self._note_answer(stamp)
            return
        try:
            if len(message.name) != len(message.effort):
                raise InputError(
                    f"the command has {len(message.name)} names but {len(message.effort)} efforts"
                )
            torques = dict(zip(message.name, message.effort, strict=True))
            names = self.plant.joint_names
            absent = [name for name in names if name not in torques]
            if absent:
                raise InputError(f"the command lacks joint {absent[0]!r}; it has {[*torques]}")
            self.plant.command([torques[name] for name in names])
            self._note_answer(stamp)
        except InputError as error:
            self.get_logger().warning(str(error), throttle_duration_sec=1.0)

    def _on_answer(self, data: bytes) -> None:
        self._note_answer(stamp_in(data))

    def _note_answer(self, stamp: int) -> None:
        # A stamp in the future is of another clock, and is ignored.
        if stamp <= self._asked:
            self._answered = max(self._answered, stamp)

    @property
    def _waits(self) -> bool:
        """Whether the clock waits for an answer; False before the first answer."""
        return self._lockstep and 0 < self._answered < self._asked - self._slack

    def tick(self) -> None:
        """Simulate one period and publish its end."""
        plant = self.plant
        if self._reference is not None and self._ticks:
            # Of the last tick, as work right after a joint state delays the nodes that wait.
            self._reference.publish(self._ticks, self._stamp, self._contacts_stamp)
        # In ticks: remainders of a division of times are just below 1 or just above 0 by rounding.
        every, tick = round(self._push_every / self.period), round(plant.time / self.period)
        if self._push_every and tick and tick % every == 0:
            angle = self._random.uniform(0.0, 2.0 * np.pi)
            force = self._push_force * plant.weight * np.array([np.cos(angle), np.sin(angle), 0])
            plant.push(force, _PUSH_TIME)
            self.get_logger().info(f"pushed with {force[0]:.1f}, {force[1]:.1f} N")
        for _ in range(self._substeps):
            plant.step()
        self._tell_silence()
        self._publish(self._now(), plant.truth() if self._wants_truth else plant.sense())
        self._ticks += 1
        if self._show is not None and self._ticks % _FRAME == 0:
            self._show()
        if self._record and plant.time % RECORDED < self.period:
            self._postures.append(plant.posture)

    def _tell_silence(self) -> None:
        silent, before = self.plant.silent, self._was_silent
        self._was_silent = silent
        if silent and not before:
            self._silences += 1
            self.get_logger().warning(
                f"commands have stopped, {self._silences} times so far: the drives look after "
                "themselves",
                throttle_duration_sec=_SAY,
            )
        elif before and not silent:
            self.get_logger().info("commanded", once=True)

    def _publish(self, stamp: int, sensed: Sensed) -> None:
        """Publish an instant [ns]; in lockstep repeatedly until the answer arrives."""
        self._asked, self._sensed = stamp, sensed
        sec, nanosec = divmod(stamp, 10**9)
        if self._simulated is not None:
            self._simulated.publish(Clock(clock=Time(sec=sec, nanosec=nanosec)))
        # The set of contacts is published before its joint state.
        self._publish_contacts(stamp)
        if self._tells_base:
            # First, so that contact forces have arrived when the joint state is answered.
            self._publish_base(stamp, sensed)
            self._publish_forces(stamp, sensed.wrenches)
        self._joint_bytes.set("stamp", sec, nanosec)
        for target, values in zip(
            self._joint_bytes.arrays.values(), (sensed.q, sensed.velocity, sensed.effort),
            strict=True,
        ):  # fmt: skip
            target[self._places] = values
        self._joints.publish(self._joint_bytes.to_bytes())

    def _publish_base(self, stamp: int, sensed: Sensed) -> None:
        if not self.plant.floating:
            return
        self._base_bytes.set("stamp", *divmod(stamp, 10**9))
        self._base_bytes.set("pose", *sensed.position, *sensed.orientation)
        self._base_bytes.set("twist", *sensed.twist)
        self._base.publish(self._base_bytes.to_bytes())

    def _publish_forces(self, stamp: int, wrenches: FloatArray) -> None:
        if not any(publisher.get_subscription_count() for publisher in self._forces):
            return
        wrench = WrenchStamped()
        wrench.header.stamp, wrench.header.frame_id = _time(stamp), self._world
        f, m = wrench.wrench.force, wrench.wrench.torque
        for publisher, numbers in zip(self._forces, wrenches, strict=True):
            f.x, f.y, f.z, m.x, m.y, m.z = numbers.tolist()
            publisher.publish(wrench)

    def _now(self) -> int:
        """Return the stamp of an instant [ns]; simulated time where /clock is published.

        Stamps are distinct, as stamps identify joint states.
        """
        if self._simulated is None:
            self._stamp = max(self.get_clock().now().nanoseconds, self._stamp + 1)
        else:
            self._stamp = round(1e9 * (_START + self.plant.time))
        return self._stamp

    def _publish_contacts(self, stamp: int) -> None:
        states = self.plant.contact_states
        if states == self._states and stamp < self._contacts_due:
            return
        self._states, self._contacts_due = states, stamp + _CONTACTS_PERIOD
        self._contacts_stamp = stamp
        message = ActiveContacts(
            names=list(self.plant.contact_names), status=[int(state) for state in states]
        )
        message.header.stamp = _time(stamp)
        self._contacts.publish(message)

    def run(self, proceed: Callable[[], bool]) -> None:
        """Tick, at most at the rate, and process answers meanwhile; then destroy the node.

        Parameters
        ----------
        proceed : called before every tick, and while waiting for an answer.
        """
        pace = Pace()
        with executing([self]) as executor:
            while proceed():
                delay = pace.begin(self.period)
                # In lockstep the clock is then slower than real time, and no message is lost.
                if delay and not self._lockstep:
                    self._tell_late(delay)
                self.tick()
                # Spin at least once, as commands must arrive even if the machine does not keep up.
                executor.spin_once(timeout_sec=max(pace.rest, 0.0))
                while (rest := pace.rest) > 0.0:
                    executor.spin_once(timeout_sec=rest)
                self._wait(executor, proceed)

    def _tell_late(self, delay: float) -> None:
        self.late += 1
        self.get_logger().warning(
            f"{1e3 * delay:.0f} ms late, {self.late} times so far: the machine is too busy for "
            "this rate",
            throttle_duration_sec=_SAY,
        )

    def _wait(self, executor: Executor, proceed: Callable[[], bool]) -> None:
        """Stop the clock until answers arrive; repeat joint states whose answers were lost."""
        began = asked = told = time.monotonic()
        while self._waits and proceed():
            executor.spin_once(timeout_sec=0.1)
            now = time.monotonic()
            if self._waits and now - asked >= _REPEAT:
                asked = now
                self._publish(self._asked, self._sensed)
            if self._waits and now - told >= _SAY:
                told = now
                self.get_logger().warning(
                    f"no answer on {self._answers} for {now - began:.0f} s to the joint state of "
                    f"{1e-9 * self._asked:.3f} s, published again each {_REPEAT:g} s; "
                    f"{self.count_publishers(self._answers)} nodes publish {self._answers}"
                )

    def save(self) -> None:
        """Write the recorded postures, if recording is enabled."""
        if self._record:
            np.save(self._record, np.array(self._postures))


class _Reference:
    """Publisher of MuJoCo's own matrix of all contacts on ``~/reference``."""

    def __init__(self, node: PlantNode) -> None:
        self._plant = node.plant
        names = self._plant.contact_names
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
        self._publisher = node.create_publisher(DelassusMatrix, "~/reference", 10)
        self._message = SerializedMessage(message, {**STAMP, **_NUMBER}, ("matrix",))
        self._matrix = self._message.arrays["matrix"].reshape(m, m)

    def publish(self, sequence: int, stamp: int, contacts_stamp: int) -> None:
        """Publish the matrix at the present positions; stamps are in ns."""
        self._matrix[...] = self._plant.reference_all()
        self._message.set("stamp", *divmod(stamp, 10**9))
        self._message.set("number", sequence, *divmod(contacts_stamp, 10**9))
        self._publisher.publish(self._message.to_bytes())


def _time(stamp: int) -> Time:
    """Return a stamp [ns] as a message."""
    sec, nanosec = divmod(stamp, 10**9)
    return Time(sec=sec, nanosec=nanosec)


def run_plant(node: PlantNode, stopping: Callable[[], bool]) -> int:
    """Run a node with a plant until `stopping`, and save; return the exit status."""
    # Present objects live until the end; freezing exempts them from garbage collection.
    gc.freeze()
    node.run(lambda: not stopping())
    node.save()
    return 0


main = Program("delassus_plant", PlantNode, run_plant, _HELP, ("mujoco",))

if __name__ == "__main__":
    main.end_process()
