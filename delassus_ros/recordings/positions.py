"""Joint positions over time, from the joint states of a recording."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState

from delassus_ros.drawing.skeleton import completed
from delassus_ros.errors import InputError
from delassus_ros.model.robot import Robot
from delassus_ros.model.spatial import Array
from delassus_ros.recordings.recording import Recording

_KIND = "sensor_msgs/msg/JointState"


def recorded_positions(path: Path, robot: Robot) -> tuple[Array, Array]:
    """Return times (N,) since the first joint state [s] and configurations (N, nq).

    Joints keep their latest position; before the first they are neutral, or follow from couplings.

    Raises
    ------
    InputError
        If no joint state has a joint of the robot.
    """
    recording = Recording(path)
    topics = {topic for topic, kind in recording.scan().items() if kind == _KIND}
    known, times, found = dict[str, float](), list[int](), list[Array]()
    for message in recording.messages(topics):
        state = deserialize_message(message.data, JointState)
        if len(state.name) != len(state.position):
            continue
        now = dict(zip(state.name, state.position, strict=True))
        if not now.keys() & set(robot.joint_names) or not np.isfinite(state.position).all():
            continue
        known.update(now)
        times.append(message.time)
        found.append(completed(robot, known)[0])
    if not found:
        raise InputError(
            f"{path}: no joint state has a joint of robot {robot.name!r}; its topics of joint "
            f"states: {', '.join(sorted(topics)) or 'none'}"
        )
    # Times since 1970 have no room for microseconds in a double of seconds.
    return 1e-9 * np.array([time - times[0] for time in times]), np.array(found)
