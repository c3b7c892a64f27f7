"""Reading serialized DelassusMatrix messages without making all their Python objects anew."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from delassus_msgs.msg import DelassusMatrix

from .cdr import MessageLayout
from .errors import WITH_VALUES, MessageError
from .matrix import matrix_to_numpy
from .memory import MessageMemory, deserialized

_STAMP = ("header.stamp.sec", "header.stamp.nanosec")
_NUMBER = ("sequence", "contacts_stamp.sec", "contacts_stamp.nanosec")
_JUDGEMENT = (
    "validity", "reasons", "conditioning", "rank", "structural_rank", "condition", "damping_mode",
    "damping",
)  # fmt: skip
_TIMES = ("compute_time", "input_age")
_CHANGING = frozenset((*_STAMP, *_NUMBER, "status", "matrix", *_JUDGEMENT, *_TIMES))
"""Numbers that may differ among messages that are read by one layout."""
_DOUBLE = np.dtype("<f8")


@dataclass(slots=True)
class ReceivedMatrix:
    """What a DelassusMatrix says; the fields are those of the message, with these differences.

    Attributes
    ----------
    stamp, contacts_stamp
        Stamps of the joint state and of the set of contacts [ns].
    matrix
        (m, m), read-only; mostly a view on the bytes of the message, which it keeps, and not
        aligned, so take a copy for more than a look. (0, 0) if the message is INVALID or no
        contact is active.
    """

    stamp: int
    frame_id: str
    layout_id: str
    sequence: int
    contacts_stamp: int
    contacts: tuple[str, ...]
    kinds: tuple[str, ...]
    status: tuple[int, ...]
    row_offsets: tuple[int, ...]
    axes: int
    matrix: npt.NDArray[np.float64]
    validity: int
    reasons: int
    conditioning: int
    rank: int
    structural_rank: int
    condition: float
    damping_mode: int
    damping: float
    algorithm: str
    compute_time: float
    input_age: float

    @classmethod
    def of(cls, message: DelassusMatrix) -> ReceivedMatrix:
        """Return what a message says.

        Raises
        ------
        MessageError
            As `matrix_to_numpy`, if the message contradicts itself.

        """
        matrix = matrix_to_numpy(message)
        matrix.flags.writeable = False
        stamp, contacts_stamp = message.header.stamp, message.contacts_stamp
        return cls(
            stamp.sec * 10**9 + stamp.nanosec, message.header.frame_id, message.layout_id,
            message.sequence, contacts_stamp.sec * 10**9 + contacts_stamp.nanosec,
            tuple(message.contacts), tuple(message.kinds),
            tuple(message.status), tuple(message.row_offsets),
            message.axes, matrix, message.validity, message.reasons,
            message.conditioning, message.rank, message.structural_rank, message.condition,
            message.damping_mode, message.damping, message.algorithm,
            message.compute_time, message.input_age,
        )  # fmt: skip


class MatrixReader:
    """Reads matrices from the bytes that a raw subscription delivers; one for each of those.

    One matrix mostly differs from the one before in its numbers alone: names and sizes, which
    cost most of the time of converting a message, are read once for each set of contacts, of
    which the last 64 are remembered. ::

        reader = MatrixReader()
        node.create_subscription(
            DelassusMatrix, "delassus_node/delassus",
            lambda data: use(reader.read(data)), qos_profile_sensor_data, raw=True,
        )

    Best effort, as of ``rclpy.qos.qos_profile_sensor_data``, is what a controller wants: a matrix
    that has to be sent again comes too late.

    A reader follows one robot. It goes over to another layout only where the sequence goes on, as
    it does where a node changes its robot: matrices of two robots on one topic are not mixed up.

    Attributes
    ----------
    layout_id
        The layout that is followed; None before the first message. Setting it follows another
        one, or with None the next one that comes.

    """

    def __init__(self) -> None:
        self.layout_id: str | None = None
        self._memory = MessageMemory(_whole, _layout)
        self._latest: ReceivedMatrix | None = None
        self._read_at = self._sequence = 0

    def read(self, data: bytes) -> ReceivedMatrix:
        """Return what a message says; overwritten by the next one, but for `matrix`.

        Parameters
        ----------
        data
            The serialized message.

        Raises
        ------
        MessageError
            As `matrix_to_numpy`, if the message contradicts itself, if the bytes are no
            DelassusMatrix or more than :data:`.memory.LARGEST`, or if it is of another layout and
            not a later one of the same node.

        """
        received = self._memory.read(data)
        self._follow(received)
        return received

    def fresh(self, max_age: float, now: int | None = None) -> bool:
        """Whether the latest message has a matrix, and that is of the present.

        To be asked just before the matrix is used, as silence brings no message.

        Parameters
        ----------
        max_age
            How long ago the message may have been read, and its joint state been stamped [s].
        now
            Time of the clock of the stamps [ns]; by default the system's. With simulated time
            ``node.get_clock().now().nanoseconds``.

        Returns
        -------
        bool
            False before the first message, after one that is INVALID, and where the latest is too
            old. A matrix without a stamp is as old as its message.

        """
        latest = self._latest
        if latest is None or latest.validity == DelassusMatrix.VALIDITY_INVALID:
            return False
        limit = 1e9 * max_age
        if time.monotonic_ns() - self._read_at > limit:
            return False
        now = time.time_ns() if now is None else now
        return latest.stamp <= 0 or now - latest.stamp <= limit

    def _follow(self, received: ReceivedMatrix) -> None:
        """Take a message for the latest one, unless it is another robot's."""
        latest, followed = self._latest, self.layout_id
        if followed is not None and received.layout_id != followed:
            if latest is not None and received.sequence <= self._sequence:
                raise MessageError(
                    f"a matrix of layout {received.layout_id!r} (sequence {received.sequence}), "
                    f"but {followed!r} is followed (sequence {self._sequence}): another node "
                    "publishes on the same topic, or this one was started anew with another "
                    "robot; read its Layout, and set layout_id to follow it"
                )
        self.layout_id = received.layout_id
        self._sequence, self._latest = received.sequence, received
        self._read_at = time.monotonic_ns()


def _whole(data: bytes) -> ReceivedMatrix:
    """Return the contents of a message by the middleware."""
    return ReceivedMatrix.of(deserialized(data, DelassusMatrix))


def _layout(data: bytes, received: ReceivedMatrix) -> _Known | None:
    """Return the layout of a message with a matrix."""
    return _Known(data, replace(received)) if received.matrix.size else None


class _Known:
    """The layout of a message that came before, and what it says.

    Parameters
    ----------
    data
        The serialized message.
    received
        What it says; overwritten.

    Raises
    ------
    NotPlainError
        If the places of the fields cannot be computed.

    """

    def __init__(self, data: bytes, received: ReceivedMatrix) -> None:
        self._received, self._m = received, len(received.matrix)
        self._states = bytes(received.status)
        layout = MessageLayout(DelassusMatrix, data)
        self._constant = layout.constant(_CHANGING)
        self._stamp, self._stamp_at = layout.group(_STAMP)
        self._number, self._number_at = layout.group(_NUMBER)
        self._judgement, self._judgement_at = layout.group(_JUDGEMENT)
        self._times, self._times_at = layout.group(_TIMES)
        self._matrix = layout.places["matrix"].offset
        status = layout.places["status"]
        self._status = slice(status.offset, status.offset + status.length)

    def fits(self, data: bytes) -> bool:
        """Whether a message has the constant part of this one, and may have a matrix."""
        return self._constant.fits(data) and data[self._judgement_at] in WITH_VALUES

    def read(self, data: bytes) -> ReceivedMatrix:
        """Return what a message says that fits."""
        received, m = self._received, self._m
        sec, nanosec = self._stamp.unpack_from(data, self._stamp_at)
        received.stamp = sec * 1_000_000_000 + nanosec
        received.sequence, sec, nanosec = self._number.unpack_from(data, self._number_at)
        received.contacts_stamp = sec * 1_000_000_000 + nanosec
        states = data[self._status]
        if states != self._states:
            self._states, received.status = states, tuple(states)
        received.matrix = np.frombuffer(data, _DOUBLE, m * m, self._matrix).reshape(m, m)
        (
            received.validity, received.reasons, received.conditioning, received.rank,
            received.structural_rank, received.condition, received.damping_mode,
            received.damping,
        ) = self._judgement.unpack_from(data, self._judgement_at)  # fmt: skip
        received.compute_time, received.input_age = self._times.unpack_from(data, self._times_at)
        return received
