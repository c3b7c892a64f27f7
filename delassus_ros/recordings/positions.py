"""Joint positions over time, from the joint states of a recording."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from sensor_msgs.msg import JointState

from delassus.drawing.skeleton import completed
from delassus.errors import InputError
from delassus.model.robot import Robot
from delassus.model.spatial import Array
from delassus_ros.recordings.recording import Recording
from delassus_ros.ros.messages import UnreadableError, deserialized

_KIND = "sensor_msgs/msg/JointState"


def recorded_positions(
    path: Path, robot: Robot, warn: Callable[[Sequence[str]], object]
) -> tuple[Array, Array]:
    """Return times (N,) since the first joint state [s] and configurations (N, nq).

    Joints have their latest position; before the first they are neutral, or follow from couplings.

    Parameters
    ----------
    warn : called with the faults of the recording, and the number of joint states left out.

    Raises
    ------
    InputError
        If no joint state has a joint of the robot.
    """
    recording = Recording(path)
    topics = {topic for topic, kind in recording.scan().items() if kind == _KIND}
    known, times, found = dict[str, float](), list[int](), list[Array]()
    unusable = 0
    for message in recording.messages(topics):
        try:
            state = deserialized(message.data, JointState, "a joint state")
        except UnreadableError:
            unusable += 1
            continue
        now = dict(zip(state.name, state.position, strict=False))
        if len(state.name) != len(state.position) or not np.isfinite(state.position).all():
            unusable += 1
            continue
        if not now.keys() & set(robot.joint_names):
            continue
        known.update(now)
        times.append(message.time)
        found.append(completed(robot, known)[0])
    faults = recording.faults
    if unusable:
        faults.append(
            f"{path}: {unusable} joint states are left out: they cannot be read, have no position "
            "per name, or positions that are not finite"
        )
    warn(faults)
    if not found:
        raise InputError(
            f"{path}: no joint state has a joint of robot {robot.name!r}; its topics of joint "
            f"states: {', '.join(sorted(topics)) or 'none'}"
        )
    # Times since 1970 have no room for microseconds in a double of seconds.
    return 1e-9 * np.array([time - times[0] for time in times]), np.array(found)
