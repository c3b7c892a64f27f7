"""Messages that stay serialized: numbers are changed in their bytes, the rest is kept."""

from __future__ import annotations

import array
import itertools
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from rclpy.serialization import serialize_message

from .errors import MessageError

_HEADER = 4
"""Bytes before the fields, which are aligned from there on."""
_MOST_TURNS = 8
_turns = itertools.count()


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
        `struct` code of each: ``"B"``, ``"i"``, ``"I"``, ``"Q"``, ``"d"``. The numbers of a group
        follow each other in the message, with no more between them than alignment asks for.
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
        filled = {name: "d" for name in arrays if len(getattr(msg, name))}
        codes = {name: code for group in fields.values() for name, code in group.items()}
        offsets = _offsets(msg, codes | filled)
        self._places = {
            group: _place(f"{type(msg).__name__}: group {group!r}", own, offsets)
            for group, own in fields.items()
        }
        self.arrays: dict[str, npt.NDArray[np.float64]] = {}
        for name in arrays:
            size, start = len(getattr(msg, name)), offsets.get(name, 0)
            self.arrays[name] = np.frombuffer(self._buffer, np.dtype("<f8"), size, start)

    def set(self, group: str, *values: float) -> None:
        """Change the numbers of a group, in their order."""
        place, offset = self._places[group]
        place.pack_into(self._buffer, offset, *values)

    def to_bytes(self) -> bytes:
        """Return the present bytes, for `publish`."""
        return bytes(self._buffer)


def _place(
    what: str, codes: Mapping[str, str], offsets: Mapping[str, int]
) -> tuple[struct.Struct, int]:
    """Return how and where the numbers of a group are written."""
    first = next(iter(codes))
    layout, end = "<", offsets[first]
    for name, code in codes.items():
        # Bytes between fields hold nothing.
        gap = -(end - _HEADER) % struct.calcsize(code)
        if offsets[name] != end + gap:
            raise MessageError(f"{what}: {name} does not follow the one before it")
        layout += f"{gap}x{code}"
        end = offsets[name] + struct.calcsize(code)
    return struct.Struct(layout), offsets[first]


def _offsets(msg: Any, codes: Mapping[str, str]) -> dict[str, int]:
    """Return where numbers (of arrays the first ones) are in the bytes of a message.

    All are set at once, each to a pattern of its own, and again to others: where all of its
    patterns have been is the place of a number. Bytes between fields hold anything, patterns of
    an older message too, so that it may take more than two.
    """
    owners = {path: _owner(msg, path) for path in codes}
    before = {path: getattr(owner, name) for path, (owner, name) in owners.items()}
    places: dict[str, set[int]] = {}
    try:
        for turn in range(_MOST_TURNS):
            number = next(_turns)
            wanted = {
                path: _pattern(k, number)[: struct.calcsize(code)]
                for k, (path, code) in enumerate(codes.items())
            }
            for path, (owner, name) in owners.items():
                (value,) = struct.unpack("<" + codes[path], wanted[path])
                old = before[path]
                is_array = not isinstance(old, (int, float))
                setattr(owner, name, array.array("d", [value, *old[1:]]) if is_array else value)
            image = serialize_message(msg)
            for path, pattern in wanted.items():
                found = _found(image, pattern, places.get(path))
                if not found:
                    raise MessageError(f"{type(msg).__name__}: no place of {path} in its bytes")
                places[path] = found
            if turn and all(len(found) == 1 for found in places.values()):
                break
    finally:
        for path, (owner, name) in owners.items():
            setattr(owner, name, before[path])
    several = next((path for path, found in places.items() if len(found) > 1), None)
    if several is not None:
        raise MessageError(f"{type(msg).__name__}: several places of {several} in its bytes")
    return {path: place for path, (place,) in places.items()}


def _owner(msg: Any, path: str) -> tuple[Any, str]:
    *owners, name = path.split(".")
    for part in owners:
        msg = getattr(msg, part)
    return msg, name


def _pattern(number: int, turn: int) -> bytes:
    """Return eight bytes from 1 to 127: a finite, positive number of every type."""
    return bytes(1 + (37 * number + 11 * k + 29 * turn + 7 * turn * k) % 127 for k in range(8))


def _found(image: bytes, pattern: bytes, among: set[int] | None) -> set[int]:
    """Return where a pattern is in an image, aligned to its size."""
    size = len(pattern)
    if among is not None:
        return {place for place in among if image[place : place + size] == pattern}
    places, place = set(), image.find(pattern, _HEADER)
    while place >= 0:
        if not (place - _HEADER) % size:
            places.add(place)
        place = image.find(pattern, place + 1)
    return places
