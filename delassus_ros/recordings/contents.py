"""Contents of a recording that the node needs: topics, robot description, contacts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from delassus_msgs.msg import ActiveContacts, Layout
from std_msgs.msg import String

from delassus.errors import unknown
from delassus.model.spatial import rotation_from_quaternion, rpy_from_rotation
from delassus_ros.recordings.recorded_file import RecordingError
from delassus_ros.recordings.recording import Recording
from delassus_ros.recordings.writer import type_name
from delassus_ros.ros.messages import deserialized
from delassus_ros.ros.topics import TOPICS

DESCRIPTION = "robot_description"
KINDS: Mapping[str, type] = {
    DESCRIPTION: String, **{name: topic.kind for name, topic in TOPICS.items()}
}  # fmt: skip
"""Types of the node's topics, by their names before `remap`."""
_OTHERWISE = {
    "active_contacts": "; with the parameter 'rows: all', matrices have the rows of all contacts "
    "and need no such topic"
}
"""Parameters with which the node needs no such topic."""
_AXES = {Layout.AXES_CONTACT: "contact", Layout.AXES_WORLD: "world"}


def topic_names(remap: Mapping[str, str]) -> dict[str, str]:
    """Return the full names of the node's topics, by their names before `remap`.

    Raises
    ------
    RecordingError
        If `remap` has a topic that the node lacks.
    """
    for kind in remap:
        if kind not in KINDS:
            raise RecordingError(unknown("topic of the node", kind, KINDS))
    return {kind: remap.get(kind, f"/{kind}") for kind in KINDS}


def description_of(recording: Recording, remap: Mapping[str, str] | None = None) -> str:
    """Return the robot description of a recording."""
    topic = topic_names(remap or {})[DESCRIPTION]
    data = recording.first(topic)
    if topic in recording.foreign:
        raise RecordingError(f"{_encoded(recording, topic)}; --urdf names a file")
    if data is None:
        raise RecordingError(f"{recording.path}: no robot on {topic}; --urdf names a file")
    return str(deserialized(data, String, "a robot description").data)


def check_topics(recording: Recording, wanted: Mapping[str, str]) -> list[str]:
    """Refuse a recording without the wanted topics, whose kinds are the values.

    Returns
    -------
    list of str
        Topics whose type the recording does not state; their messages are read as messages of the
        expected type.

    Raises
    ------
    RecordingError
        If a topic is missing, or has another type or encoding; names the topics of its type.
    """
    recording.scan()
    unstated = []
    for topic, kind in wanted.items():
        expected = type_name(KINDS[kind])
        found = recording.topics.get(topic)
        alike = sorted(name for name, kind in recording.topics.items() if kind == expected)
        untyped = sorted(name for name, kind in recording.topics.items() if not kind)
        others = f"of type {expected} there are: {', '.join(alike) or 'none'}"
        if untyped:
            others += f"; without a type: {', '.join(untyped)}"
        if found == "":
            unstated.append(topic)
        elif topic in recording.foreign:
            raise RecordingError(f"{_encoded(recording, topic)}; {others}")
        elif found is None:
            raise RecordingError(
                f"{recording.path}: no topic {topic}; {others}; --remap {kind}:=NAME takes another"
                f"{_OTHERWISE.get(kind, '')}"
            )
        elif found != expected:
            raise RecordingError(
                f"{recording.path}: {topic} is of type {found}, expected {expected}; {others}"
            )
    return unstated


def _encoded(recording: Recording, topic: str) -> str:
    """Return the text about a topic whose messages have another encoding than ROS 2's."""
    return (
        f"{recording.path}: {topic} is encoded as {recording.foreign[topic]!r}; expected 'cdr', "
        "as ROS 2 writes it"
    )


def parameters_of_layout(recording: Recording) -> dict[str, Any] | None:
    """Return the parameters of the node whose layout was recorded; None without a layout."""
    kinds = recording.scan()
    topic = next((name for name, kind in kinds.items() if kind == type_name(Layout)), None)
    data = None if topic is None else recording.first(topic)
    if data is None:
        return None
    layout = deserialized(data, Layout, f"a layout of {topic}")
    found: dict[str, Any] = {"base": layout.base, "axes": _AXES[layout.axes]}
    found |= {"algorithm": "auto", "contacts.names": list(layout.contacts)}
    selections = np.reshape(layout.selections, (-1, 6))
    rows = np.diff([*layout.row_offsets])
    for name, frame, pose, kind, count in zip(
        layout.contacts, layout.frames, layout.placements, layout.kinds, rows, strict=True
    ):
        p, o = pose.position, pose.orientation
        rotation = rotation_from_quaternion(np.array([o.x, o.y, o.z, o.w]))
        contact = {"frame": frame, "kind": kind, "xyz": [p.x, p.y, p.z]}
        contact["rpy"] = rpy_from_rotation(rotation).tolist()
        if kind == "selection":
            contact["selection"] = selections[:count].ravel().tolist()
            selections = selections[count:]
        found |= {f"contacts.{name}.{part}": value for part, value in contact.items()}
    return found


def names_of_contacts(recording: Recording, remap: Mapping[str, str]) -> set[str]:
    """Return the names of the contacts in recorded messages."""
    topic = topic_names(remap)["active_contacts"]
    if recording.scan().get(topic) not in (type_name(ActiveContacts), ""):
        return set()
    messages = recording.messages({topic})
    read = (deserialized(item.data, ActiveContacts, f"a message of {topic}") for item in messages)
    return {name for message in read for name in message.names}
