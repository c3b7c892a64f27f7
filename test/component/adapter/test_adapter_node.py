"""The adapter as a node, with a message type that is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from delassus_msgs.msg import ActiveContacts
from diagnostic_msgs.msg import DiagnosticArray
from hanging import HANG_S
from nav_msgs.msg import Odometry
from ros_support import LATCHED, Graph, overrides
from sensor_msgs.msg import Imu, JointState

from delassus.errors import InputError
from delassus_ros.adapter.node import AdapterNode

CONFIG = Path(__file__).resolve().parents[3] / "config" / "robots"
MAPPING = {
    # A maker whose joint states have positions in degrees, and forces in the efforts.
    "source.type": "sensor_msgs/msg/JointState",
    "source.topic": "maker",
    "stamp.field": "header",
    "joints.names": ["hip", "", "knee"],
    "joints.position": "position",
    "joints.unit": "deg",
    "contacts.names": ["foot", "", ""],
    "contacts.force": "effort",
}


@pytest.fixture
def graph(capfd: pytest.CaptureFixture[str]) -> Iterator[Graph]:
    with Graph(capfd) as made:
        yield made


def test_messages_come_out_as_they_are_meant(graph: Graph) -> None:
    node = AdapterNode(context=graph.context, parameter_overrides=overrides(MAPPING))
    graph.add(node)
    states: list[JointState] = []
    contacts: list[ActiveContacts] = []
    reports: list[DiagnosticArray] = []
    graph.peer.create_subscription(JointState, "joint_states", states.append, 10)
    graph.peer.create_subscription(ActiveContacts, "active_contacts", contacts.append, LATCHED)
    graph.peer.create_subscription(DiagnosticArray, "/diagnostics", reports.append, 10)
    publisher = graph.peer.create_publisher(JointState, "maker", 10)
    message = JointState(position=[90.0, 7.0, -180.0], effort=[35.0, 0.0, 0.0])
    message.header.stamp.sec = 12

    def came() -> bool:
        publisher.publish(message)
        return bool(states and contacts)

    graph.until(came, "converted messages")
    assert list(states[0].name) == ["hip", "knee"]
    assert list(states[0].position) == pytest.approx([1.5707963267948966, -3.141592653589793])
    assert states[0].header.stamp.sec == 12 and not states[0].velocity
    assert (contacts[0].names, list(contacts[0].status)) == (["foot"], [ActiveContacts.ACTIVE])

    def said(level: bytes, words: str) -> bool:
        publisher.publish(message)
        statuses = [s for array in reports for s in array.status]
        return any(s.level == level and words in s.message for s in statuses)

    graph.until(lambda: said(b"\0", "converts /maker"), "report of messages")
    message.position = [1.0]
    words = "position has 1 entries, fewer than the 3 joints: 'knee' is missing"
    graph.until(lambda: said(b"\1", words), "report of a fault")
    assert any(words in line for line in graph.log)


def test_orientation_and_odometry(graph: Graph) -> None:
    mapping = {
        "source.type": "nav_msgs/msg/Odometry",
        "source.topic": "maker",
        "odometry.pose": "pose.pose",
        "odometry.twist": "twist.twist",
        "imu.orientation": "pose.pose.orientation",
        "imu.frame": "trunk",
    }
    graph.add(AdapterNode(context=graph.context, parameter_overrides=overrides(mapping)))
    poses: list[Odometry] = []
    turns: list[Imu] = []
    graph.peer.create_subscription(Odometry, "odometry", poses.append, 10)
    graph.peer.create_subscription(Imu, "imu", turns.append, 10)
    publisher = graph.peer.create_publisher(Odometry, "maker", 10)
    message = Odometry()
    message.pose.pose.position.x, message.twist.twist.angular.y = 2.0, 0.5
    message.pose.pose.orientation.x, message.pose.pose.orientation.w = 0.6, 0.8

    def came() -> bool:
        publisher.publish(message)
        return bool(poses and turns)

    graph.until(came, "converted messages")
    assert poses[0].pose.pose == message.pose.pose
    assert poses[0].twist.twist == message.twist.twist
    assert (poses[0].header.frame_id, poses[0].child_frame_id) == ("odom", "base_link")
    assert turns[0].orientation == message.pose.pose.orientation
    assert turns[0].header.frame_id == "trunk" and turns[0].angular_velocity_covariance[0] == -1


def test_wrong_parameters_end_the_program_with_a_line() -> None:
    environment = os.environ | {"ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
    ended = subprocess.run(
        [sys.executable, "-m", "delassus_ros.adapter.node", "--ros-args", "--params-file",
         str(CONFIG / "go2.yaml")],
        env=environment, capture_output=True, text=True, timeout=HANG_S, check=False,
    )  # fmt: skip
    assert ended.returncode == 1
    assert ended.stderr.startswith("delassus_adapter: message type 'unitree_go/msg/LowState': the")
    assert "it comes from https://github.com/unitreerobotics/unitree_ros2" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_misspelt_parameter_is_named(graph: Graph) -> None:
    wrong = {**MAPPING, "joints.position": "positions"}
    with pytest.raises(InputError, match="'joints.position': .* did you mean 'position'"):
        AdapterNode(context=graph.context, parameter_overrides=overrides(wrong))
    given = overrides({**MAPPING, "joint.unit": "deg"})
    graph.add(AdapterNode(context=graph.context, parameter_overrides=given))
    graph.until(lambda: any("unknown parameter 'joint.unit'" in x for x in graph.log), "warning")
