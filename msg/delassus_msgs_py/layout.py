"""Identity of a layout."""

from __future__ import annotations

import hashlib
import json

from delassus_msgs.msg import Layout


def compute_layout_id(msg: Layout) -> str:
    """Return the identity of a layout: a hash over all its fields but stamp and layout_id.

    Parameters
    ----------
    msg
        A layout; its `layout_id` is not read.

    Returns
    -------
    str
        16 hexadecimal digits, the same for equal layouts on every machine.

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
    return hashlib.sha256(json.dumps(fields).encode()).hexdigest()[:16]
