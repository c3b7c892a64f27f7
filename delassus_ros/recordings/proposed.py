"""What a recording itself tells of its contacts, where nobody gives the parameters of a node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from delassus_msgs.msg import ActiveContacts, Layout

from delassus_ros.model.spatial import rotation_from_quaternion, rpy_from_rotation
from delassus_ros.node.joint_state_bytes import deserialized
from delassus_ros.recordings.recording import Recording
from delassus_ros.recordings.replay import topic_names
from delassus_ros.recordings.writer import type_name

_AXES = {Layout.AXES_CONTACT: "contact", Layout.AXES_WORLD: "world"}


def parameters_of_layout(recording: Recording) -> dict[str, Any] | None:
    """Return the parameters of the node whose layout was recorded; None if none was."""
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
        own = {"frame": frame, "kind": kind, "xyz": [p.x, p.y, p.z]}
        own["rpy"] = rpy_from_rotation(rotation).tolist()
        if kind == "selection":
            own["selection"], selections = selections[:count].ravel().tolist(), selections[count:]
        found |= {f"contacts.{name}.{part}": value for part, value in own.items()}
    return found


def names_of_contacts(recording: Recording, remap: Mapping[str, str]) -> set[str]:
    """Return the names of contacts that the first message with any of them has."""
    topic = topic_names(remap)["active_contacts"]
    if recording.scan().get(topic) != type_name(ActiveContacts):
        return set()
    for message in recording.messages({topic}):
        names = deserialized(message.data, ActiveContacts, f"a message of {topic}").names
        if names:
            return set(names)
    return set()
