"""From messages to what the books of monitor and comparison take."""

from __future__ import annotations

import numpy as np
from builtin_interfaces.msg import Time
from delassus_msgs.msg import DelassusMatrix
from delassus_msgs_py import matrix_to_numpy

from delassus_ros.sim.agreement import Sample


def nanoseconds(stamp: Time) -> int:
    """Return a stamp, ns."""
    return int(stamp.sec) * 10**9 + int(stamp.nanosec)


def sample_of(message: DelassusMatrix) -> Sample:
    """Return the matrix of a message with what is needed to check it.

    Raises
    ------
    delassus_msgs_py.MessageError
        If the message contradicts itself.
    """
    return Sample(
        stamp=nanoseconds(message.header.stamp),
        contacts=tuple(message.contacts),
        offsets=tuple(message.row_offsets),
        matrix=np.array(matrix_to_numpy(message), copy=True),
        contacts_stamp=nanoseconds(message.contacts_stamp) or None,
    )
