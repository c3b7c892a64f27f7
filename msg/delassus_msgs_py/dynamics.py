"""Reader and writer of ContactDynamics messages."""

from __future__ import annotations

import array
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from delassus_msgs.msg import ContactDynamics

from .cdr import MessageLayout
from .errors import WITH_VALUES, MessageError, check_validity
from .memory import MessageMemory, deserialized

_Array = npt.NDArray[np.float64]
_DOUBLE = np.dtype("<f8")
BLOCKS: Mapping[str, tuple[str, str]] = {
    "a0": ("free_acceleration", "m"),
    "JdotV": ("bias_acceleration", "m"),
    "qdd0": ("free_joint_acceleration", "n"),
    "J": ("jacobian", "mn"),
    "MinvJT": ("response", "nm"),
    "h": ("bias_force", "n"),
    "M": ("mass_matrix", "nn"),
    "Lambda": ("inertia", "mm"),
    "Jbar": ("jbar", "nm"),
    "forces": ("forces", "m"),
}
"""Per block, in the order of the message, its field and its shape; m rows, n velocities."""
_STAMP = ("header.stamp.sec", "header.stamp.nanosec")
_NUMBER = ("sequence", "validity", "reasons")
_FORCES = ("forces_residual", "forces_validity", "forces_status", "forces_law")
_CHANGING = frozenset((*_STAMP, *_NUMBER, *_FORCES, *(field for field, _ in BLOCKS.values())))
"""Numbers that may differ among messages that are read by one layout."""


@dataclass(slots=True)
class ReceivedDynamics:
    """What a ContactDynamics says; the fields are those of the message, with these differences.

    Attributes
    ----------
    stamp
        Stamp of the joint state [ns].
    a0, JdotV, qdd0, J, MinvJT, h, M, Lambda, Jbar, forces
        The blocks, read-only and mostly views on the bytes of the message, which they keep; None
        for those that it does not have.
    friction, normals
        Read-only arrays (contacts,) and (contacts, 3); None without forces.
    """

    stamp: int
    frame_id: str
    layout_id: str
    sequence: int
    validity: int
    reasons: int
    contacts: tuple[str, ...]
    row_offsets: tuple[int, ...]
    axes: int
    velocities: tuple[str, ...]
    a0: _Array | None = None
    JdotV: _Array | None = None
    qdd0: _Array | None = None
    J: _Array | None = None
    MinvJT: _Array | None = None
    h: _Array | None = None
    M: _Array | None = None
    Lambda: _Array | None = None
    Jbar: _Array | None = None
    forces: _Array | None = None
    friction: _Array | None = None
    normals: _Array | None = None
    forces_residual: float = -1.0
    forces_validity: int = ContactDynamics.VALIDITY_INVALID
    forces_status: int = ContactDynamics.FORCES_NONE
    forces_law: int = ContactDynamics.LAW_NONE


def dynamics_to_numpy(msg: ContactDynamics) -> ReceivedDynamics:
    """Return what a message says, with its blocks as arrays that share its memory.

    Raises
    ------
    MessageError
        If row_offsets is not ascending from 0 with one entry more than contacts, a block has
        another size than they and velocities say, the message is INVALID and has blocks, its
        validity or that of the forces is none of the constants, or friction and normals are not
        those of the contacts.

    """
    check_validity("ContactDynamics", msg.validity)
    stamp = msg.header.stamp
    found = ReceivedDynamics(
        stamp.sec * 10**9 + stamp.nanosec, msg.header.frame_id, msg.layout_id, msg.sequence,
        msg.validity, msg.reasons, tuple(msg.contacts), tuple(msg.row_offsets), msg.axes,
        tuple(msg.velocities),
    )  # fmt: skip
    sizes = _sizes(msg)
    for name, (field, shape) in BLOCKS.items():
        values = getattr(msg, field)
        expected = tuple(sizes[letter] for letter in shape)
        if len(values) and msg.validity == ContactDynamics.VALIDITY_INVALID:
            raise MessageError(
                f"ContactDynamics is INVALID (reasons {msg.reasons:#x}), but has {len(values)} "
                f"values of {field}; expected none"
            )
        if len(values) not in (0, int(np.prod(expected))):
            raise MessageError(
                f"ContactDynamics has {len(values)} values of {field}; expected "
                f"{' * '.join(map(str, expected))} or none"
            )
        if len(values):
            block = np.asarray(values, dtype=np.float64).reshape(expected)
            block.flags.writeable = False
            setattr(found, name, block)
    _read_forces(msg, found)
    return found


def _read_forces(msg: ContactDynamics, found: ReceivedDynamics) -> None:
    """Set what belongs to the forces of a message, besides the forces."""
    check_validity("ContactDynamics, of its forces,", msg.forces_validity)
    count = len(msg.contacts)
    for name, shape in (("friction", (count,)), ("normals", (count, 3))):
        values = np.array(getattr(msg, name), dtype=np.float64)
        if values.size not in (0, int(np.prod(shape))):
            raise MessageError(
                f"ContactDynamics has {values.size} values of {name}; expected "
                f"{int(np.prod(shape))}, as it has {count} contacts, or none"
            )
        if values.size:
            values.flags.writeable = False
            setattr(found, name, values.reshape(shape))
    if msg.forces_validity > msg.validity:
        raise MessageError(
            f"ContactDynamics has the validity {msg.validity}, and its forces have "
            f"{msg.forces_validity}; expected no better one"
        )
    found.forces_residual, found.forces_validity = msg.forces_residual, msg.forces_validity
    found.forces_status, found.forces_law = msg.forces_status, msg.forces_law


def numpy_to_dynamics(msg: ContactDynamics, blocks: Mapping[str, npt.ArrayLike]) -> None:
    """Set blocks of a message to copies of arrays; no other field changes.

    Parameters
    ----------
    msg
        The message to write to, whose contacts, row_offsets and velocities are set.
    blocks
        Arrays by name: a0, JdotV, qdd0, J, MinvJT, h, M, Lambda, Jbar, forces.

    Raises
    ------
    MessageError
        For an unknown block, or one of another shape than the message says.

    """
    sizes = _sizes(msg)
    for name, values in blocks.items():
        if name not in BLOCKS:
            raise MessageError(f"there is no block {name!r}; blocks: {', '.join(BLOCKS)}")
        field, shape = BLOCKS[name]
        expected = tuple(sizes[letter] for letter in shape)
        block = np.asarray(values, dtype=np.float64)
        if block.shape != expected:
            raise MessageError(f"block {name!r} has shape {block.shape}; expected {expected}")
        # An array.array is taken over as it is; a list or ndarray would be checked one by one.
        setattr(msg, field, array.array("d", block.tobytes()))


def _sizes(msg: ContactDynamics) -> dict[str, int]:
    """Return m and n by these letters."""
    offsets = list(msg.row_offsets)
    if not offsets and not len(msg.contacts):
        return {"m": 0, "n": len(msg.velocities)}
    if len(offsets) != len(msg.contacts) + 1:
        raise MessageError(
            f"ContactDynamics has {len(offsets)} row_offsets; expected {len(msg.contacts) + 1}, "
            "one more than contacts"
        )
    if offsets[0] != 0 or any(a >= b for a, b in zip(offsets, offsets[1:], strict=False)):
        raise MessageError(
            f"row_offsets of ContactDynamics are {offsets}; expected them to ascend from 0"
        )
    return {"m": offsets[-1], "n": len(msg.velocities)}


class DynamicsReader:
    """Reads blocks from the bytes of a raw subscription; each subscription has a reader.

    As by :class:`MatrixReader`, names and sizes are read once for each set of contacts. The blocks
    of a matrix are in the message with the same sequence number.
    """

    def __init__(self) -> None:
        self._memory = MessageMemory(_whole, _layout)

    def read(self, data: bytes) -> ReceivedDynamics:
        """Return what a message says; overwritten by the next one, but for the blocks.

        Parameters
        ----------
        data
            The serialized message.

        Raises
        ------
        MessageError
            As `dynamics_to_numpy`, or if the bytes are no ContactDynamics or more than
            :data:`.memory.LARGEST`.

        """
        return self._memory.read(data)


def _whole(data: bytes) -> ReceivedDynamics:
    """Return the contents of a message by the middleware."""
    return dynamics_to_numpy(deserialized(data, ContactDynamics))


def _layout(data: bytes, received: ReceivedDynamics) -> _Known | None:
    """Return the layout of a message with blocks."""
    if received.validity == ContactDynamics.VALIDITY_INVALID:
        return None
    return _Known(data, replace(received))


class _Known:
    """The layout of a message that came before, and what it says.

    Raises
    ------
    NotPlainError
        If the places of the fields cannot be computed.

    """

    def __init__(self, data: bytes, received: ReceivedDynamics) -> None:
        self._received = received
        layout = MessageLayout(ContactDynamics, data)
        self._constant = layout.constant(_CHANGING)
        self._stamp, self._stamp_at = layout.group(_STAMP)
        self._number, self._number_at = layout.group(_NUMBER)
        self._forces, self._forces_at = layout.group(_FORCES)
        self._validity = layout.places["validity"].offset
        self._forces_validity = layout.places["forces_validity"].offset
        self._places: list[tuple[str, int, int, tuple[int, ...]]] = []
        for name, (field, _) in BLOCKS.items():
            place, block = layout.places[field], getattr(received, name)
            if place.length and block is not None:
                self._places.append((name, place.offset, place.length, block.shape))

    def fits(self, data: bytes) -> bool:
        """Whether a message has the constant part of this one, and all its blocks."""
        return (
            self._constant.fits(data)
            and data[self._validity] in WITH_VALUES
            and data[self._forces_validity] <= data[self._validity]
        )

    def read(self, data: bytes) -> ReceivedDynamics:
        """Return what a message says that fits."""
        received = self._received
        sec, nanosec = self._stamp.unpack_from(data, self._stamp_at)
        received.stamp = sec * 1_000_000_000 + nanosec
        received.sequence, received.validity, received.reasons = self._number.unpack_from(
            data, self._number_at
        )
        (
            received.forces_residual, received.forces_validity, received.forces_status,
            received.forces_law,
        ) = self._forces.unpack_from(data, self._forces_at)  # fmt: skip
        for name, start, count, shape in self._places:
            setattr(received, name, np.frombuffer(data, _DOUBLE, count, start).reshape(shape))
        return received
