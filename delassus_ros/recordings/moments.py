"""States of a robot over the time of a recording, as the node reads them: for the viewer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from nav_msgs.msg import Odometry
from sensor_msgs.msg import Imu, JointState

from delassus.drawing.snapshot import Moment
from delassus.model.spatial import Array
from delassus_ros.inputs.findings import Validity
from delassus_ros.node.parameters import Operation, Settings
from delassus_ros.recordings.recording import Recording
from delassus_ros.recordings.replay import Replay
from delassus_ros.recordings.writer import type_name
from delassus_ros.ros.messages import deserialized
from delassus_ros.ros.topics import CONTACTS, JOINTS, TOPICS, TORQUES

_SOURCES: Mapping[str, type] = {"odometry": Odometry, "imu": Imu}
"""Topics of the orientation of a floating base, the better one first."""
_MOTION = ("rates", "torques", "gravity")


def topics_by_type(recording: Recording) -> dict[str, str]:
    """Return the full names of topics that differ from the node's: those alone of their type."""
    kinds = recording.scan()
    usual = {f"/{name}" for name in TOPICS}
    found = {}
    for name in (JOINTS, CONTACTS, *_SOURCES):
        expected = type_name(TOPICS[name].kind)
        others = [topic for topic in kinds if kinds[topic] == expected and topic not in usual]
        if kinds.get(f"/{name}") != expected and len(others) == 1:
            found[name] = others[0]
    return found


def parameters_of_motion(
    recording: Recording, base: str, remap: Mapping[str, str], forces: bool
) -> dict[str, Any]:
    """Return the parameters with which the node uses all that a recording has of the motion.

    Without recorded contacts all of them count. With the orientation of a floating base rows are
    along the world's axes. For contact forces a0 needs torques and rates of the joints.

    Parameters
    ----------
    base : ``"floating"`` or ``"fixed"``.
    remap : full names of topics that differ from the node's.
    forces : whether contact forces are wanted.
    """
    kinds = recording.scan()

    def has(name: str) -> bool:
        return kinds.get(remap.get(name, f"/{name}")) == type_name(TOPICS[name].kind)

    found: dict[str, Any] = {"rows": "active" if has(CONTACTS) else "all"}
    source = next((name for name in _SOURCES if has(name)), None)
    oriented = base == "fixed" or source is not None
    if base == "floating":
        found["axes"] = "world" if oriented else "contact"
        found["orientation.source"] = source or "odometry"
    data = recording.first(remap.get(JOINTS, f"/{JOINTS}"))
    state = None if data is None else deserialized(data, JointState, "a joint state")
    moved = state is not None and len(state.velocity) == len(state.name)
    torques = has(TORQUES) or (state is not None and len(state.effort) == len(state.name))
    if forces and oriented and moved and torques:
        found |= {"axes": "world", "outputs": ["a0"]}
        found["torques"] = "topic" if has(TORQUES) else "effort"
    return found


def moments_of(
    recording: Recording, parameters: Mapping[str, Any], description: str, remap: Mapping[str, str]
) -> tuple[Array, list[Moment], Replay]:
    """Return times (N,) since the first answer [s], the states of the robot, and their replay.

    The states are those of which ``delassus bag`` computes matrices with these parameters.

    Raises
    ------
    DelassusError
        If the recording lacks a topic, or robot, contacts and parameters do not fit together.
    """
    replay = Replay(
        recording, Settings.from_parameters(parameters), Operation.from_parameters(parameters),
        description, remap,
    )  # fmt: skip
    pipeline = replay.computation.tick
    times, found = list[int](), list[Moment]()
    told = parameters.get("rows") != "all"
    ports = [port.name for port in replay.computation.problem.inputs if port.name != "q"]
    for answer in replay.answers():
        last = pipeline.last
        valid = last.validity is not Validity.INVALID
        active = last.contacts if told else None
        inputs = dict(found[-1].inputs) if found else {}
        warning, dynamics = last.text, pipeline.dynamics
        if valid:
            inputs = {name: pipeline.kernel_inputs[name].copy() for name in ports}
        if valid and dynamics is not None and dynamics.validity is Validity.INVALID:
            # Torques and rates are unknown.
            inputs = {k: v for k, v in inputs.items() if k not in _MOTION}
            warning = dynamics.text
        times.append(answer.time)
        found.append(Moment(pipeline.positions.copy(), active if valid else (), inputs, warning))
    # Times since 1970 have no room for microseconds in a double of seconds.
    return 1e-9 * np.array([time - times[0] for time in times]), found, replay
