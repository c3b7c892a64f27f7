"""From messages to what the books of monitor and comparison take."""

from __future__ import annotations

import numpy as np
from builtin_interfaces.msg import Time
from delassus_msgs_py import ReceivedMatrix

from delassus_ros.sim.agreement import Sample


def nanoseconds(stamp: Time) -> int:
    """Return a stamp, ns."""
    return int(stamp.sec) * 10**9 + int(stamp.nanosec)


def sample_of(received: ReceivedMatrix) -> Sample:
    """Return a copy of a matrix with what is needed to check it."""
    return Sample(
        stamp=received.stamp,
        contacts=received.contacts,
        offsets=received.row_offsets,
        matrix=np.array(received.matrix),
        contacts_stamp=received.contacts_stamp or None,
    )
