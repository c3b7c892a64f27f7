"""Publishes what a simulator knows for certain: base state and forces of contacts."""

from __future__ import annotations

from collections.abc import Sequence

from builtin_interfaces.msg import Time
from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Odometry
from rclpy.node import Node

from delassus_ros.sim.reference import FloatArray, Truth

WORLD = "world"
"""Name of the frame that the floor is in."""


class TruthPublisher:
    """Publish base state and contact forces, as a state estimator and foot sensors would.

    ``~/odometry`` has the twist in the axes of the base, as its message wants it;
    ``~/contact_force/<contact>`` the force of the floor on the foot in axes of the world.

    Parameters
    ----------
    node
        The node that publishes.
    base
        Name of the base's frame.
    contacts
        Names of the contacts, in the order of the forces.
    """

    def __init__(self, node: Node, base: str, contacts: Sequence[str]) -> None:
        self._odometry = Odometry(child_frame_id=base)
        self._wrench = WrenchStamped()
        for message in (self._odometry, self._wrench):
            message.header.frame_id = WORLD
        self._odometry_publisher = node.create_publisher(Odometry, "~/odometry", 10)
        self._force_publishers = [
            node.create_publisher(WrenchStamped, f"~/contact_force/{contact}", 10)
            for contact in contacts
        ]

    def publish(self, truth: Truth, stamp: Time) -> None:
        """Publish the truth of the joint state with this stamp."""
        pose, twist = self._odometry.pose.pose, self._odometry.twist.twist
        self._odometry.header.stamp = stamp
        _set(pose.position, truth.position)
        _set(pose.orientation, truth.orientation)
        _set(twist.linear, truth.twist[:3])
        _set(twist.angular, truth.twist[3:])
        self._odometry_publisher.publish(self._odometry)
        self._wrench.header.stamp = stamp
        for publisher, force in zip(self._force_publishers, truth.forces, strict=True):
            _set(self._wrench.wrench.force, force)
            publisher.publish(self._wrench)


def _set(message: object, values: FloatArray) -> None:
    for name, value in zip("xyzw", values.tolist(), strict=False):
        setattr(message, name, value)
