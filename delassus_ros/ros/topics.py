"""Topics that the nodes subscribe to: type, QoS and name in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from delassus_msgs.msg import ActiveContacts, ContactPlacements, ContactSchedule
from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Odometry
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import Imu, JointState

# Depth for a pause of the node's thread of 1 s at 1 kHz: waiting messages are counted as
# superseded, messages beyond the depth are lost without a trace. For a process that is stopped as
# a whole, Fast DDS's shared memory keeps 512 messages.
JOINT_STATES = QoSProfile(depth=1000, reliability=ReliabilityPolicy.BEST_EFFORT)
LATEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
# Several publishers may send messages about different contacts, so that the queue holds several.
FEW = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


@dataclass(frozen=True)
class Topic:
    """A topic that a node subscribes to; `what` is the name of a message in words."""

    kind: type
    qos: QoSProfile
    what: str


JOINTS = "joint_states"
CONTACTS = "active_contacts"
PLACES = "contact_placements"
SCHEDULE = "contact_schedule"
TORQUES = "joint_torques"
TOPICS: Mapping[str, Topic] = {
    JOINTS: Topic(JointState, JOINT_STATES, "a joint state"),
    CONTACTS: Topic(ActiveContacts, LATCHED, "a set of active contacts"),
    SCHEDULE: Topic(ContactSchedule, LATCHED, "a schedule of contacts"),
    PLACES: Topic(ContactPlacements, FEW, "placements of contacts"),
    "odometry": Topic(Odometry, LATEST, "an odometry"),
    "imu": Topic(Imu, LATEST, "a message of an inertial sensor"),
    TORQUES: Topic(JointState, LATEST, "a set of torques"),
}
"""By name, as the nodes call them before remapping."""
WRENCHES = "wrenches/"
"""Prefix of the topics of force-torque sensors."""


def topic_of(name: str) -> Topic:
    """Return a topic by its name before remapping."""
    if name.startswith(WRENCHES):
        return Topic(WrenchStamped, LATEST, f"a wrench of {name.removeprefix(WRENCHES)}")
    return TOPICS[name]
