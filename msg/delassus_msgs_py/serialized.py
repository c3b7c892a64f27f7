"""Messages that stay serialized: numbers are changed in their bytes, the rest is kept."""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from rclpy.serialization import serialize_message

from .cdr import TEXT, Field, MessageLayout, NotPlainError, fields_of
from .errors import MessageError


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
        Per group, the names of the numbers to change, dots included (``"header.stamp.sec"``). The
        numbers of a group follow each other in the message, with no more between them than
        alignment asks for.
    arrays
        Names of ``float64[]`` fields to change; their sizes stay.

    Attributes
    ----------
    arrays
        Per name a writable array on the bytes; not aligned.

    Raises
    ------
    MessageError
        If a message of this type has no such number, those of a group are not neighbours, or the
        middleware lays out its bytes in another way than CDR does.

    """

    def __init__(
        self, msg: Any, fields: Mapping[str, Iterable[str]], arrays: tuple[str, ...] = ()
    ) -> None:
        kind: type = type(msg)
        check_layout(kind)
        data = serialize_message(msg)
        self._buffer = bytearray(data)
        layout = _layout(kind, data)
        self._places: dict[str, tuple[struct.Struct, int]] = {}
        for group, names in fields.items():
            try:
                self._places[group] = layout.group(names)
            except KeyError as error:
                raise MessageError(
                    f"{kind.__name__}: no place of {error.args[0]} in its bytes; numbers: "
                    f"{', '.join(layout.places)}"
                ) from None
            except ValueError as error:
                raise MessageError(f"{kind.__name__}: group {group!r}: {error}") from None
        self.arrays: dict[str, npt.NDArray[np.float64]] = {}
        for name in arrays:
            place = layout.places.get(name)
            if place is None or place.code != "d":
                raise MessageError(f"{kind.__name__}: {name} is no array of float64 in its bytes")
            self.arrays[name] = np.frombuffer(
                self._buffer, np.dtype("<f8"), place.length, place.offset if place.length else 0
            )

    def set(self, group: str, *values: float) -> None:
        """Change the numbers of a group, in their order."""
        place, offset = self._places[group]
        place.pack_into(self._buffer, offset, *values)

    def to_bytes(self) -> bytes:
        """Return the present bytes, for `publish`."""
        return bytes(self._buffer)


@functools.cache
def check_layout(kind: type) -> None:
    """Compare the computed layout of a message type with what the middleware writes.

    Fields in arrays of messages are left out.

    Raises
    ------
    MessageError
        If a number or string of a sample is not where the layout has it.

    """
    sample = kind()
    values = {field.path: _sample(field, k) for k, field in enumerate(_plain(kind), 1)}
    for path, value in values.items():
        *owners, name = path.split(".")
        setattr(functools.reduce(getattr, owners, sample), name, value)
    data = serialize_message(sample)
    layout = _layout(kind, data)
    for path, value in values.items():
        if path in layout.texts:
            found = layout.texts[path]
        else:
            form, offset = layout.group([path])
            numbers = form.unpack_from(data, offset)
            found = list(numbers) if isinstance(value, list) else numbers[0]
        if found != value:
            raise MessageError(
                f"{kind.__name__}: its bytes are laid out in another way: {path} is not where it "
                "was expected"
            )


def _layout(kind: type, data: bytes) -> MessageLayout:
    try:
        return MessageLayout(kind, data)
    except NotPlainError as error:
        raise MessageError(
            f"{kind.__name__}: its bytes are laid out in another way: {error}"
        ) from error


def _plain(kind: type) -> list[Field]:
    return [field for field in fields_of(kind) if not field.parts]


def _sample(field: Field, number: int) -> Any:
    """Return a value that no neighbour of a field has."""
    one: Any
    if field.code == TEXT:
        one = "x" * (number % 5)
    elif field.code == "c":
        one = bytes([1 + number % 120])
    elif field.code == "?":
        one = True
    else:
        one = 1 + number % 120
        if field.code in "fd":
            one = float(one)
    if field.single:
        return one
    return [one] * (field.length if field.length >= 0 else 2)
