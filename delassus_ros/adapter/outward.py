"""Standard messages that a maker's message is made of: the latest of each, and their ages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from delassus_msgs.msg import ActiveContacts
from nav_msgs.msg import Odometry
from rclpy.node import Node
from sensor_msgs.msg import Imu, JointState

from delassus_ros.adapter.conversion import (
    UNKNOWN,
    BaseState,
    Converted,
    Inertial,
    Joints,
    Refused,
    numbers_of,
    unit_quaternion,
)
from delassus_ros.adapter.writing import Writer
from delassus_ros.inputs.contacts import contradiction
from delassus_ros.inputs.limits import ORIENTATION_TIMEOUT_S, Limits
from delassus_ros.ros.arrival import stamp_of
from delassus_ros.ros.topics import FEW, LATCHED

MOST_AGE_S = {
    "orientation": ORIENTATION_TIMEOUT_S, "odometry": ORIENTATION_TIMEOUT_S,
    "contacts": Limits.contacts_timeout,
}  # fmt: skip
"""Largest distance of an input's stamp from that of the joint state [s], the defaults of
delassus_node. Contacts that are older, or that delassus_node would refuse, are written as UNKNOWN;
an older base makes no message."""


class Outward:
    """Makes a message of the maker of each joint state.

    Parameters
    ----------
    on_made : called with the message, None if it cannot be made, and with the faults by kind.
    """

    def __init__(
        self, node: Node, writer: Writer, on_made: Callable[[Any, dict[str, str]], object]
    ) -> None:
        self._node, self._writer, self._on_made = node, writer, on_made
        self._latest: dict[str, tuple[int, Any]] = {}
        adapter = writer.adapter
        for is_needed, name, kind, topic, qos in (
            (adapter.converts_orientation, "orientation", Imu, "imu", FEW),
            (adapter.converts_base, "odometry", Odometry, "odometry", FEW),
            (adapter.converts_contacts, "contacts", ActiveContacts, "active_contacts", LATCHED),
        ):
            if is_needed:
                node.create_subscription(kind, topic, self._keeping(name), qos)
        self.source: Any = node.create_subscription(
            JointState, "joint_states", self._on_joints, FEW
        )

    def _keeping(self, name: str) -> Callable[[Any], None]:
        def keep(message: Any) -> None:
            self._latest[name] = self._stamp(message), message

        return keep

    def _stamp(self, message: Any) -> int:
        """Return the stamp of a message, or the present time without one [ns]."""
        at = message.header.stamp
        stamp = stamp_of(at.sec, at.nanosec)
        return stamp if stamp > 0 else int(self._node.get_clock().now().nanoseconds)

    def _on_joints(self, state: JointState) -> None:
        given, made = Converted(self._stamp(state)), None
        try:
            given.joints = Joints(
                list(state.name), list(state.position), list(state.velocity), list(state.effort)
            )
            orientation = self._fresh("orientation", given)
            if orientation is not None:
                given.inertial = _inertial(orientation)
            odometry = self._fresh("odometry", given)
            if odometry is not None:
                given.base = _base(odometry)
            given.contacts = self._contacts(given)
            made = self._writer.message(given)
        except Refused as reason:
            given.faults["joints"] = str(reason)
        self._on_made(made, given.faults)

    def _contacts(self, given: Converted) -> dict[str, int] | None:
        """Return the status by name, UNKNOWN of a set that is old or refused; None without one."""
        if "contacts" not in self._latest:
            return None
        _, message = self._latest["contacts"]
        is_known = self._fresh("contacts", given) is not None
        refusal = contradiction(message.names, message.status)
        if refusal is not None:
            given.faults["contacts"] = refusal.text
            is_known = False
        if not is_known:
            return dict.fromkeys(message.names, UNKNOWN)
        return dict(zip(message.names, message.status, strict=True))

    def _fresh(self, name: str, given: Converted) -> Any:
        """Return the latest message of an input; None without one, and with a fault if old."""
        if name not in self._latest:
            return None
        stamp, message = self._latest[name]
        distance = 1e-9 * abs(given.stamp - stamp)
        if distance <= MOST_AGE_S[name]:
            return message
        given.faults[name] = (
            f"the stamps of {name} and joint state are {distance:.3g} s apart, at most "
            f"{MOST_AGE_S[name]:g} s are allowed"
        )
        return None


def _inertial(message: Imu) -> Inertial:
    def measured(values: Any, covariance: Any) -> list[float] | None:
        # By the convention of sensor_msgs/Imu.
        return None if covariance[0] == -1.0 else numbers_of(values, "xyz")

    if message.orientation_covariance[0] == -1.0:
        raise Refused("the Imu says that it has no orientation")
    return Inertial(
        unit_quaternion(numbers_of(message.orientation, "xyzw"), "the orientation of the Imu"),
        measured(message.angular_velocity, message.angular_velocity_covariance),
        measured(message.linear_acceleration, message.linear_acceleration_covariance),
    )


def _base(message: Odometry) -> BaseState:
    position, twist = message.pose.pose.position, message.twist.twist
    orientation = numbers_of(message.pose.pose.orientation, "xyzw")
    return BaseState(
        numbers_of(position, "xyz"),
        unit_quaternion(orientation, "the orientation of the odometry"),
        [*numbers_of(twist.linear, "xyz"), *numbers_of(twist.angular, "xyz")],
    )
