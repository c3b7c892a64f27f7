"""Messages that stay serialized: numbers are changed in their bytes, the rest is kept."""

from __future__ import annotations

import array
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from rclpy.serialization import serialize_message

from .errors import MessageError

# Bytes that are finite numbers of every type, and that no other field has by chance.
_PATTERNS = (bytes.fromhex("1122334455667708"), bytes.fromhex("9ba7b3bfc5d1df0e"))


class SerializedMessage:
    """The bytes of a message, with places in which numbers may be changed.

    Publishing bytes costs about half of publishing a message, whose every field is converted
    each time. Fields outside of the named ones keep the value that they have now. Numbers that
    change together are named together: neighbours in the message are then written at once.

    Parameters
    ----------
    msg
        The message; it is left as it is.
    fields
        Per group of numbers to change, by name, dots included (``"header.stamp.sec"``), the
        `struct` code of each: ``"i"``, ``"I"``, ``"Q"``, ``"d"``. The numbers of a group follow
        each other in the message without gaps.
    arrays
        Names of ``float64[]`` fields to change; their sizes stay.

    Attributes
    ----------
    arrays
        Per name a writable array on the bytes; not aligned.

    Raises
    ------
    MessageError
        If a field is not found in the bytes as a number of its own, or those of a group are
        not neighbours.

    """

    def __init__(
        self, msg: Any, fields: Mapping[str, Mapping[str, str]], arrays: tuple[str, ...] = ()
    ) -> None:
        self._buffer = bytearray(serialize_message(msg))
        self._places = {group: _place(msg, group, codes) for group, codes in fields.items()}
        self.arrays: dict[str, npt.NDArray[np.float64]] = {}
        for name in arrays:
            size = len(getattr(msg, name))
            start = _offset(msg, name, "d") if size else 0
            self.arrays[name] = np.frombuffer(self._buffer, np.dtype("<f8"), size, start)

    def set(self, group: str, *values: float) -> None:
        """Change the numbers of a group, in their order."""
        place, offset = self._places[group]
        place.pack_into(self._buffer, offset, *values)

    def to_bytes(self) -> bytes:
        """Return the present bytes, for `publish`."""
        return bytes(self._buffer)


def _place(msg: Any, group: str, codes: Mapping[str, str]) -> tuple[struct.Struct, int]:
    """Return how and where the numbers of a group are written."""
    place = struct.Struct("<" + "".join(codes.values()))
    offsets = [_offset(msg, name, code) for name, code in codes.items()]
    expected = offsets[0]
    for (name, code), offset in zip(codes.items(), offsets, strict=True):
        if offset != expected:
            raise MessageError(
                f"{type(msg).__name__}: {name} does not follow the one before it in {group!r}"
            )
        expected += struct.calcsize(code)
    return place, offsets[0]


def _offset(msg: Any, path: str, code: str) -> int:
    """Return where a number (of an array the first one) is in the bytes."""
    *owners, name = path.split(".")
    owner = msg
    for part in owners:
        owner = getattr(owner, part)
    before = getattr(owner, name)
    is_array = not isinstance(before, (int, float))
    size = struct.calcsize(code)
    places = []
    for pattern in _PATTERNS:
        # The last bytes, as the highest one makes the number a small positive one.
        wanted = pattern[8 - size :]
        (value,) = struct.unpack("<" + code, wanted)
        setattr(owner, name, array.array("d", [value, *before[1:]]) if is_array else value)
        image = serialize_message(msg)
        # Numbers are aligned to their size, counted from the end of the 4-byte header.
        places.append({i for i in range(4, len(image), size) if image[i : i + size] == wanted})
    setattr(owner, name, before)
    # Bytes between fields hold anything, an older message's numbers too: both have to agree.
    both = places[0] & places[1]
    if len(both) != 1:
        raise MessageError(f"{type(msg).__name__}: no place of {path} in its bytes")
    return both.pop()
