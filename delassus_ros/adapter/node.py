"""ROS node that converts a maker's messages to the inputs of this package's nodes, or back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from delassus_msgs.msg import ActiveContacts
from diagnostic_msgs.msg import DiagnosticArray
from nav_msgs.msg import Odometry
from rclpy.node import Node
from sensor_msgs.msg import Imu, JointState

from delassus_ros.adapter.conversion import Adapter, Converted
from delassus_ros.adapter.outward import Outward
from delassus_ros.adapter.settings import PARAMETERS
from delassus_ros.adapter.writing import Writer, spell
from delassus_ros.ros.arrival import write_stamp
from delassus_ros.ros.diagnostics import Entry, nothing_has_come, to_message
from delassus_ros.ros.executor import run_until_stopped
from delassus_ros.ros.health import Level
from delassus_ros.ros.logs import LoopLog, Throttle
from delassus_ros.ros.parameters import declare, warn_of_unknown_overrides
from delassus_ros.ros.program import Program
from delassus_ros.ros.timers import STEADY
from delassus_ros.ros.topics import CONTACTS, FEW, LATCHED

REPORT_PERIOD_S = 1.0
CONTACT_PERIOD_NS = 50_000_000
"""Longest time between two sets of contacts that are equal [ns]: readers want 10 Hz or more."""
_UNKNOWN_COVARIANCE = -1.0
"""First entry of a covariance for a quantity that is not measured, as sensor_msgs/Imu has it."""

_HELP = """\
usage: delassus_adapter [--ros-args ...]

Converts messages of a robot's maker to inputs of delassus_node and delassus_estimator. A
file of config/robots has the parameters of one robot: the paths of fields in its messages.

subscribes  source.topic     source.type, any message type that is installed
publishes   joint_states     sensor_msgs/JointState     with joints.position
            imu              sensor_msgs/Imu            with imu.orientation or imu.rpy
            odometry         nav_msgs/Odometry          with odometry.pose
            active_contacts  delassus_msgs/ActiveContacts with contacts.force or contacts.status
            /diagnostics     diagnostic_msgs/DiagnosticArray, once a second

With direction:=to_maker the other way: subscribes joint_states and, as the fields need them,
imu, odometry and active_contacts; publishes source.topic at each joint state.

example     delassus_adapter --ros-args --params-file config/robots/go2.yaml
"""


class AdapterNode(Node):
    """Converts each message on its arrival.

    Raises
    ------
    rclpy.exceptions.ParameterException
        If a parameter has a value of the wrong type or out of range.
    InputError
        If the parameters do not fit the type of the messages, or the type is not installed.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__("delassus_adapter", **options)
        log = LoopLog(self.get_logger())
        self._warn = Throttle(log.warning)
        try:
            for name, setting in PARAMETERS.items():
                declare(self, name, setting)
            warn_of_unknown_overrides(self, PARAMETERS)
            self._start({name: self.get_parameter(name).value for name in PARAMETERS})
        except BaseException:
            # The caller gets no node to destroy.
            self.destroy_node()
            raise

    def _start(self, parameters: dict[str, Any]) -> None:
        """Subscribe to the inputs of the adapter and advertise its outputs."""
        self._received, self._faults = 0, dict[str, str]()
        self._told: tuple[dict[str, int] | None, int] = (None, 0)
        self._outputs: dict[str, Any] = {}
        self._diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", 10)
        adapter = self._adapter = Adapter(parameters)
        settings = adapter.settings
        kind, topic = settings["source.type"], settings["source.topic"]
        if settings["direction"] == "to_maker":
            self._made = self.create_publisher(adapter.type, topic, 10)
            self._outward = Outward(self, Writer(parameters), self._on_made)
            self._source = self._outward.source
            self.get_logger().info(f"making {kind} on {topic}")
        else:
            self._advertise(adapter)
            self._source = self.create_subscription(adapter.type, topic, self._on_message, FEW)
            self.get_logger().info(f"converting {kind} on {topic}")
        self.create_timer(REPORT_PERIOD_S, self.report, clock=STEADY)

    def _advertise(self, adapter: Adapter) -> None:
        """Advertise the standard messages that the adapter makes."""
        for is_made, name, kind, qos in (
            (adapter.converts_joints, "joint_states", JointState, 10),
            (adapter.converts_orientation, "imu", Imu, 10),
            (adapter.converts_base, "odometry", Odometry, 10),
            (adapter.converts_contacts, CONTACTS, ActiveContacts, LATCHED),
        ):
            if is_made:
                self._outputs[name] = self.create_publisher(kind, name, qos)

    def _on_made(self, message: Any, faults: dict[str, str]) -> None:
        """Publish the message of the maker for a joint state, unless the message is None."""
        self._received += 1
        self._note(faults)
        if message is not None:
            self._made.publish(message)

    def _note(self, faults: dict[str, str]) -> None:
        for kind, text in faults.items():
            self._faults[kind] = text
            self._warn(kind, text)

    def _on_message(self, message: Any) -> None:
        self._received += 1
        found = self._adapter.convert(message, self.get_clock().now().nanoseconds)
        self._note(found.faults)
        self._publish(found)

    def _publish(self, found: Converted) -> None:
        for name, message in standard_messages(found, self._adapter.settings).items():
            if name != CONTACTS or self._is_due(found.contacts, found.stamp):
                self._outputs[name].publish(message)

    def _is_due(self, contacts: dict[str, int] | None, stamp: int) -> bool:
        """Return whether a set of contacts is new, or the last message of it is old."""
        told, when = self._told
        if contacts == told and 0 <= stamp - when < CONTACT_PERIOD_NS:
            return False
        self._told = contacts, stamp
        return True

    def report(self) -> None:
        """Publish the state of the last second."""
        received, faults = self._received, self._faults
        self._received, self._faults = 0, {}
        topic = self._source.topic_name
        if not received:
            level, text = Level.STALE, nothing_has_come(topic, self.count_publishers(topic))
        elif faults:
            level, text = Level.WARN, next(iter(faults.values()))
        else:
            level, text = Level.OK, f"converts {topic}"
        values = {"messages": str(received), **faults}
        entry = Entry("adapter", level, text, values)
        stamp = self.get_clock().now().to_msg()
        self._diagnostics.publish(to_message([entry], stamp, self.get_fully_qualified_name()))


def standard_messages(found: Converted, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the standard messages of a converted message, by their topics."""
    messages: dict[str, Any] = {}
    if found.joints is not None:
        joints = found.joints
        state = JointState(name=joints.names, position=joints.position)
        state.velocity, state.effort = joints.velocity, joints.effort
        messages["joint_states"] = _stamped(state, found.stamp)
    if found.inertial is not None:
        imu = _stamped(Imu(), found.stamp, settings["imu.frame"])
        spell(imu.orientation, found.inertial.orientation)
        for name in ("angular_velocity", "linear_acceleration"):
            values = getattr(found.inertial, name)
            if values is None:
                getattr(imu, f"{name}_covariance")[0] = _UNKNOWN_COVARIANCE
            else:
                spell(getattr(imu, name), values)
        messages["imu"] = imu
    if found.base is not None:
        odometry = _stamped(Odometry(), found.stamp, settings["odometry.world_frame"])
        odometry.child_frame_id = settings["odometry.frame"]
        spell(odometry.pose.pose.position, found.base.position)
        spell(odometry.pose.pose.orientation, found.base.orientation)
        if found.base.twist is not None:
            spell(odometry.twist.twist.linear, found.base.twist[:3])
            spell(odometry.twist.twist.angular, found.base.twist[3:])
        messages["odometry"] = odometry
    if found.contacts is not None:
        contacts = ActiveContacts(names=list(found.contacts), status=list(found.contacts.values()))
        messages[CONTACTS] = _stamped(contacts, found.stamp)
    return messages


def _stamped(message: Any, nanoseconds: int, frame: str = "") -> Any:
    """Return a message after its header was written."""
    write_stamp(message.header.stamp, nanoseconds)
    message.header.frame_id = frame
    return message


main = Program("delassus_adapter", AdapterNode, run_until_stopped, _HELP)

if __name__ == "__main__":
    main.end_process()
