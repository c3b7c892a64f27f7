"""Reading serialized joint states without making all their Python objects anew."""

from __future__ import annotations

import struct
import sys

import numpy as np
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState

from delassus_ros.errors import InputError

_STAMP = struct.Struct("<iI")
_STAMP_AT = 4  # after the encapsulation
_PREFIX_AT = _STAMP_AT + _STAMP.size
_DOUBLE = np.dtype("<f8")
_MOST_KNOWN = 8  # publishers of parts of a robot's joints
_PLAIN_CDR = b"\x00\x01\x00\x00"  # little-endian; what else there is goes the long way


class UnreadableError(InputError):
    """Bytes that are not a message."""


class JointPositions:
    """What a joint state says of positions; :meth:`JointStateReader.read` overwrites it.

    Attributes
    ----------
    sec, nanosec : its stamp; both 0 if it has none.
    names : names of the joints; the same list as long as they do not change.
    values : (n,) positions [rad, m].
    """

    __slots__ = ("names", "nanosec", "sec", "values")

    def __init__(self) -> None:
        self.sec = self.nanosec = 0
        self.names: list[str] = []
        self.values = np.empty(0)


class _Known:
    """A joint state as it came before: what its bytes begin with, and where its positions are."""

    __slots__ = ("end", "prefix", "prefix_end", "start", "state")

    def __init__(self, prefix: bytes, start: int, end: int, state: JointPositions) -> None:
        self.prefix, self.prefix_end = prefix, _PREFIX_AT + len(prefix)
        self.start, self.end, self.state = start, end, state


class JointStateReader:
    """Reads positions from the bytes of sensor_msgs/JointState.

    One message of a publisher mostly differs from the one before in its stamp and values alone.
    As long as the bytes in between (frame, names, number of positions) are those of a message
    that has come before, only stamp and positions are read, which takes a fraction of the time.
    Everything else is left to :func:`rclpy.serialization.deserialize_message`.
    """

    def __init__(self) -> None:
        self._known: list[_Known] = []

    def read(self, data: bytes) -> JointPositions:
        """Return the positions; overwritten by the next.

        Parameters
        ----------
        data : the serialized message.

        Raises
        ------
        UnreadableError
            If the bytes are not a joint state.
        """
        for known in self._known:
            if data[_PREFIX_AT : known.prefix_end] == known.prefix:
                if data[:_STAMP_AT] != _PLAIN_CDR or len(data) < known.end:
                    break
                state = known.state
                state.sec, state.nanosec = _STAMP.unpack_from(data, _STAMP_AT)
                state.values = np.frombuffer(data, _DOUBLE, state.values.size, known.start)
                return state
        return self._learn(data)

    def _learn(self, data: bytes) -> JointPositions:
        """Read the whole message, and where its positions are."""
        try:
            message = deserialize_message(data, JointState)
        except (RuntimeError, UnicodeError) as error:
            raise UnreadableError(f"a joint state cannot be read: {error}") from error
        state = JointPositions()
        state.sec, state.nanosec = message.header.stamp.sec, message.header.stamp.nanosec
        state.names, state.values = list(message.name), np.array(message.position)
        end = _after_string(_PREFIX_AT, message.header.frame_id)
        end = _aligned(end, 4) + 4
        for name in state.names:
            end = _after_string(end, name)
        end = _aligned(end, 4) + 4
        start = _aligned(end, 8)
        positions = message.position.tobytes()
        # Compared with what was read, so that another layout than the expected one is noticed.
        found = data[start : start + len(positions)] == positions
        if positions and found and data[:_STAMP_AT] == _PLAIN_CDR and sys.byteorder == "little":
            prefix = data[_PREFIX_AT:end]
            # A prefix may come again with bytes that were read the long way.
            others = [known for known in self._known if known.prefix != prefix]
            del others[_MOST_KNOWN - 1 :]
            self._known = [_Known(prefix, start, start + len(positions), state), *others]
        return state


def _aligned(place: int, size: int) -> int:
    """Return the next place for a value of this size; counted from after the encapsulation."""
    return place + (_STAMP_AT - place) % size


def _after_string(place: int, text: str) -> int:
    """Return where a string ends: its length with the final zero, then its bytes."""
    return _aligned(place, 4) + 4 + len(text.encode()) + 1
