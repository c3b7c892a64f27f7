"""Recordings for tests: a quadruped that bends its knees, as messages and as MCAP files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from delassus_msgs.msg import ActiveContacts
from rclpy.serialization import serialize_message
from rosbags.rosbag2 import (
    CompressionFormat,
    CompressionMode,
    StoragePlugin,
    Writer,
)
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from delassus import Robot
from delassus.robots.built_in import demo_urdf
from delassus_ros.recordings.recorded_file import Recorded
from delassus_ros.recordings.writer import RecordingWriter, definition

FEET = ("LF", "RF", "LH", "RH")
BEGIN = 1_700_000_000_000_000_000  # ns
STEP = 10_000_000  # ns
TYPES = {
    "/clock": "rosgraph_msgs/msg/Clock",
    "/robot_description": "std_msgs/msg/String",
    "/joint_states": "sensor_msgs/msg/JointState",
    "/active_contacts": "delassus_msgs/msg/ActiveContacts",
}
PARAMETERS = {
    "contacts.names": list(FEET),
    **{f"contacts.{foot}.frame": f"{foot}_FOOT" for foot in FEET},
}
JOINTS = Robot.from_urdf(demo_urdf().encode()).joint_names


def positions(time: int) -> np.ndarray:
    """Return how the robot stands at a time [ns]."""
    bend = 0.2 * np.sin(1e-9 * (time - BEGIN) * 2.0 * np.pi)
    return np.array([0.05, 0.6 + bend, -1.2 - 2.0 * bend] * 4)


def at(time: int, topic: str, message: object) -> Recorded:
    """Return a message as recorded at a time, with that stamp if it has a header."""
    if hasattr(message, "header"):
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(time, 10**9)
    return Recorded(time, time, topic, serialize_message(message))


def description(time: int = BEGIN, urdf: str = "") -> Recorded:
    return at(time, "/robot_description", String(data=urdf or demo_urdf()))


def clock(time: int) -> Recorded:
    message = Clock()
    message.clock.sec, message.clock.nanosec = divmod(time, 10**9)
    return at(time, "/clock", message)


def touching(time: int, *names: str) -> Recorded:
    status = [ActiveContacts.ACTIVE] * len(names)
    return at(time, "/active_contacts", ActiveContacts(names=names, status=status))


def state(time: int, q: np.ndarray | None = None) -> Recorded:
    q = positions(time) if q is None else q
    return at(time, "/joint_states", JointState(name=JOINTS, position=q.tolist()))


def walk(steps: int, step: int = STEP, begin: int = BEGIN) -> Iterator[Recorded]:
    """Yield a robot that puts two feet down, then the other two, and so on."""
    yield description(begin)
    for k in range(steps):
        time = begin + k * step
        if k % 5 == 0:
            yield touching(time, *(("LF", "RH") if (k // 50) % 2 == 0 else ("RF", "LH")))
        yield state(time)


def write(
    path: Path, messages: Iterable[Recorded], types: dict[str, str] | None = None,
    chunk: int = 1 << 16,
) -> Path:  # fmt: skip
    """Write an MCAP file."""
    path.parent.mkdir(exist_ok=True)
    types = TYPES if types is None else types
    writer = RecordingWriter(path, chunk=chunk)
    for message in messages:
        kind = types[message.topic]
        writer.write_bytes(message.topic, message.time, message.data, kind, message.sent)
    writer.close()
    return path


def bag(
    folder: Path,
    messages: list[Recorded],
    storage: StoragePlugin,
    mode: CompressionMode = CompressionMode.NONE,
) -> Path:
    """Write a folder as rosbag2 does."""
    store = get_typestore(Stores.ROS2_JAZZY)
    name = TYPES["/active_contacts"]
    store.register(get_types_from_msg(definition(name), name))
    written = Writer(folder, version=9, storage_plugin=storage)
    if mode is not CompressionMode.NONE:
        written.set_compression(mode, CompressionFormat.ZSTD)
    with written as writer:
        topics = {
            topic: writer.add_connection(topic, kind, typestore=store)
            for topic, kind in TYPES.items()
        }
        for message in messages:
            writer.write(topics[message.topic], message.time, message.data)
    return folder
