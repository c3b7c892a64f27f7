"""Deserialization of messages whose bytes may be anything."""

from __future__ import annotations

from typing import Any

from delassus_msgs_py.cdr import ORIGIN, STAMP
from rclpy.serialization import deserialize_message

from delassus.errors import InputError
from delassus_ros.ros.arrival import stamp_of

LARGEST = 1 << 17
"""Size of the largest accepted message [bytes]: enough for some 2000 joints."""


class UnreadableError(InputError):
    """Bytes that are not a message."""


def deserialized(data: bytes, kind: type, what: str) -> Any:
    """Return a deserialized message.

    Parameters
    ----------
    what : name of the message in errors.

    Raises
    ------
    UnreadableError
        If the bytes are not such a message, or more than :data:`LARGEST`.
    """
    if len(data) > LARGEST:
        raise UnreadableError(
            f"{what} of {len(data)} bytes is not read; at most {LARGEST} are, which is room for "
            "some 2000 names with their numbers"
        )
    try:
        return deserialize_message(data, kind)
    except (RuntimeError, UnicodeError) as error:
        raise UnreadableError(f"{what} cannot be read: {error}") from error


def stamp_in(data: bytes) -> int:
    """Return the stamp of a serialized message that begins with a header [ns]; 0 for none."""
    return stamp_of(*STAMP.unpack_from(data, ORIGIN))
