"""Reading serialized DelassusMatrix messages without making all their Python objects anew."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from delassus_msgs.msg import DelassusMatrix
from rclpy.serialization import deserialize_message

from .errors import MessageError
from .matrix import matrix_to_numpy

_ORIGIN = 4  # where the fields begin, after the encapsulation; alignment counts from here
_TIME = struct.Struct("<iI")
_NUMBER = struct.Struct("<QiI")  # sequence, contacts_stamp
# validity, reasons, conditioning, rank, structural_rank, condition, damping_mode, damping, and
# the length of the algorithm's name; the first of them on a multiple of 8
_TAIL = struct.Struct("<B7xQB3xii4xdB7xdI")
_TIMES = struct.Struct("<dd")  # compute_time, input_age
_DOUBLE = np.dtype("<f8")
_CDR = b"\x00\x01"  # plain, little-endian; the two bytes behind it may hold anything
_MOST_KNOWN = 64


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
    """

    def __init__(self) -> None:
        self._known: list[_Known] = []

    def read(self, data: bytes) -> ReceivedMatrix:
        """Return what a message says; overwritten by the next one, but for `matrix`.

        Parameters
        ----------
        data
            The serialized message.

        Raises
        ------
        MessageError
            As `matrix_to_numpy`, if the message contradicts itself, or if the bytes are no
            DelassusMatrix.

        """
        for place, known in enumerate(self._known):
            if known.fits(data):
                if place:
                    # What comes often is found soon.
                    self._known.insert(0, self._known.pop(place))
                received = known.read(data)
                if received is None:
                    break
                return received
        return self._learn(data)

    def _learn(self, data: bytes) -> ReceivedMatrix:
        """Read the whole message, and where its numbers are."""
        try:
            message = deserialize_message(data, DelassusMatrix)
        except RuntimeError as error:
            raise MessageError(f"{len(data)} bytes are no DelassusMatrix: {error}") from error
        received = ReceivedMatrix.of(message)
        if len(message.matrix) and data[:2] == _CDR:
            known = _Known(message, data, replace(received))
            # Only if it reads the same: another layout than the expected one is noticed.
            if known.fits(data) and known.reads(data, received):
                del self._known[_MOST_KNOWN - 1 :]
                self._known.insert(0, known)
        return received


class _Known:
    """A message as it came before: what is constant in its bytes, and where its numbers are."""

    def __init__(self, message: DelassusMatrix, data: bytes, received: ReceivedMatrix) -> None:
        self._received, self._m = received, len(received.matrix)
        self._algorithm = message.algorithm.encode()
        self._states = bytes(message.status)
        head = _Head()
        head.number(4, changes=True)
        head.number(4, changes=True)
        head.string(message.header.frame_id)
        head.string(message.layout_id)
        self._number = head.number(8, changes=True)
        head.number(4, changes=True)
        head.number(4, changes=True)
        for names in (message.contacts, message.kinds):
            head.number(4)
            for name in names:
                head.string(name)
        head.number(4)
        self._status = head.number(0)
        for _ in message.status:
            head.number(1, changes=True)
        head.number(4)
        for _ in message.row_offsets:
            head.number(4)
        head.number(1)
        head.number(4)
        self._mask = int.from_bytes(head.mask, "little")
        self._head_end = _ORIGIN + len(head.mask)
        self._constant = int.from_bytes(data[_ORIGIN : self._head_end], "little") & self._mask
        self._matrix = _ORIGIN + _aligned(len(head.mask), 8)
        self._tail = self._matrix + _DOUBLE.itemsize * self._m**2
        self._name = self._tail + _TAIL.size

    def fits(self, data: bytes) -> bool:
        """Whether a message has the constant part of this one, and may have a matrix."""
        head = int.from_bytes(data[_ORIGIN : self._head_end], "little")
        return (
            head & self._mask == self._constant
            and data[:2] == _CDR
            and len(data) > self._name
            and data[self._tail] != DelassusMatrix.VALIDITY_INVALID
        )

    def read(self, data: bytes) -> ReceivedMatrix | None:
        """Return what a message says that fits; None if its end is not what it should be."""
        try:
            tail = _TAIL.unpack_from(data, self._tail)
            end = self._name + tail[-1]
            times = _TIMES.unpack_from(data, _ORIGIN + _aligned(end - _ORIGIN, 8))
            name = data[self._name : end]
            if name[:-1] != self._algorithm or name[-1:] != b"\0":
                if name.find(b"\0") != len(name) - 1:
                    return None
                self._received.algorithm = name[:-1].decode()
                self._algorithm = name[:-1]
        except (struct.error, UnicodeDecodeError):
            return None
        received, m = self._received, self._m
        sec, nanosec = _TIME.unpack_from(data, _ORIGIN)
        received.stamp = sec * 1_000_000_000 + nanosec
        received.sequence, sec, nanosec = _NUMBER.unpack_from(data, self._number)
        received.contacts_stamp = sec * 1_000_000_000 + nanosec
        states = data[self._status : self._status + len(self._states)]
        if states != self._states:
            self._states, received.status = states, tuple(states)
        received.matrix = np.frombuffer(data, _DOUBLE, m * m, self._matrix).reshape(m, m)
        (
            received.validity, received.reasons, received.conditioning, received.rank,
            received.structural_rank, received.condition, received.damping_mode,
            received.damping, _,
        ) = tail  # fmt: skip
        received.compute_time, received.input_age = times
        return received

    def reads(self, data: bytes, expected: ReceivedMatrix) -> bool:
        """Whether what it reads is what the message says."""
        found = self.read(data)
        return found is not None and all(
            # As numbers, of which NaN is one.
            np.array_equal(getattr(found, name), getattr(expected, name), equal_nan=True)
            if isinstance(getattr(expected, name), (float, np.ndarray))
            else getattr(found, name) == getattr(expected, name)
            for name in ReceivedMatrix.__slots__
        )


class _Head:
    """The bytes before the matrix: 255 where they are constant, 0 where not, as in between."""

    def __init__(self) -> None:
        self.mask = bytearray()

    def number(self, size: int, changes: bool = False) -> int:
        """Add a number, of some bytes or none; return where it is in the message."""
        self.mask.extend(bytes(_aligned(len(self.mask), size or 1) - len(self.mask)))
        place = _ORIGIN + len(self.mask)
        self.mask.extend(bytes([0 if changes else 255]) * size)
        return place

    def string(self, text: str) -> None:
        """Add a string: its length with the final zero, then its bytes."""
        self.number(4)
        self.mask.extend(b"\xff" * (len(text.encode()) + 1))


def _aligned(place: int, size: int) -> int:
    """Return the next multiple of a size."""
    return place + -place % size
