"""Identity of a layout, and of the robot behind it."""

from __future__ import annotations

import hashlib
import json

from delassus_msgs.msg import Layout


def compute_layout_id(msg: Layout, digest: str = "") -> str:
    """Return the identity of a layout and of the robot that the matrices are of.

    Parameters
    ----------
    msg
        A layout; its `layout_id` is not read.
    digest
        Stands for all that matrices depend on and a layout does not say: inertias, armature,
        loops and their reference. Any text that differs where these do.

    Returns
    -------
    str
        16 hexadecimal digits of a hash over all fields but stamp and layout_id, and with a digest
        16 more, of one over that; the same on every machine.

    """
    fields = [
        msg.header.frame_id,
        msg.robot,
        msg.base,
        list(msg.contacts),
        list(msg.frames),
        [
            [p.position.x, p.position.y, p.position.z]
            + [p.orientation.x, p.orientation.y, p.orientation.z, p.orientation.w]
            for p in msg.placements
        ],
        list(msg.kinds),
        list(msg.selections),
        [int(offset) for offset in msg.row_offsets],
        list(msg.joints),
        int(msg.axes),
    ]
    # JSON, because joining names without quotes would make different lists look equal.
    parts = [json.dumps(fields), digest] if digest else [json.dumps(fields)]
    return "".join(hashlib.sha256(part.encode()).hexdigest()[:16] for part in parts)
