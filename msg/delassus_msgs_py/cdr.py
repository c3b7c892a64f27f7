"""The places of all fields in the bytes of a serialized message, computed from its type.

CDR, the encoding of ROS 2, writes the fields of a message one after the other: a number at a
multiple of its size, a string as its length and its bytes, a sequence as its count and its
elements. Where a field begins thus follows from the type and from the lengths before the field.
"""

from __future__ import annotations

import functools
import importlib
import re
import struct
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

ORIGIN = 4
"""Bytes before the first field: the encapsulation. Alignment counts from here."""
PLAIN = b"\x00\x01"
"""First two bytes of little-endian CDR, the only encoding that is read here."""
STAMP = struct.Struct("<iI")
"""Seconds and nanoseconds of a stamp; the first field of a message with a header."""
_COUNT = struct.Struct("<I")
_CODES = {
    "boolean": "?", "octet": "c", "int8": "b", "uint8": "B", "int16": "h", "uint16": "H",
    "int32": "i", "uint32": "I", "int64": "q", "uint64": "Q", "float": "f", "double": "d",
}  # fmt: skip
"""`struct` code of each primitive type, by its name in ``get_fields_and_field_types()``."""
_SIZES = {code: struct.calcsize(f"<{code}") for code in _CODES.values()}
TEXT = "s"
"""Code of a string."""
_SEQUENCE = -1
"""Length of a field whose number of elements stands before them in the bytes."""
_TYPE = re.compile(r"(sequence<)?([\w/]+)(?:<\d+>)?(?:, \d+)?>?(?:\[(\d+)\])?")


class NotPlainError(ValueError):
    """The places of the fields cannot be computed; the middleware may know them."""


class Field(NamedTuple):
    """A field of a message type; the fields of a nested message stand for that message.

    Attributes
    ----------
    path
        Name with those of the messages around it: ``header.stamp.sec``.
    code
        `struct` code of a number, :data:`TEXT`, or empty for a message.
    length
        Number of elements; 1 for a single value, -1 where the bytes tell it.
    single
        Whether the field is a single value, not an array of them.
    parts
        Fields of an element that is a message.
    """

    path: str
    code: str
    length: int
    single: bool
    parts: tuple[Field, ...] = ()


class Place(NamedTuple):
    """The place of a number, or of an array of numbers, in the bytes of a message.

    Attributes
    ----------
    offset
        Index of the first byte.
    code
        `struct` code of a number.
    length
        Number of numbers.
    """

    offset: int
    code: str
    length: int


@functools.cache
def fields_of(kind: type) -> tuple[Field, ...]:
    """Return the fields of a message type in the order in which they are serialized.

    Raises
    ------
    NotPlainError
        If the type has a field of a type that is not read here, as ``wstring``.

    """
    found: list[Field] = []
    types: dict[str, str] = kind.get_fields_and_field_types()  # type: ignore[attr-defined]
    for name, text in types.items():
        match = _TYPE.fullmatch(text)
        if match is None or match[2] == "wstring":
            raise NotPlainError(f"{kind.__name__}.{name} of type {text} is not read")
        sequence, base, length = match.groups()
        count = _SEQUENCE if sequence else int(length or 1)
        single = not sequence and length is None
        if base == "string" or base in _CODES:
            found.append(Field(name, _CODES.get(base, TEXT), count, single))
            continue
        package, part = base.split("/")
        parts = fields_of(getattr(importlib.import_module(f"{package}.msg"), part))
        if single:
            found.extend(field._replace(path=f"{name}.{field.path}") for field in parts)
        else:
            found.append(Field(name, "", count, False, parts))
    return tuple(found)


class MessageLayout:
    """The places of the fields in the bytes of one message, and of all that are shaped like it.

    Places follow from the lengths in the bytes, never from those of decoded text: a string that
    is no UTF-8, or ends before its last byte, has another length when it is encoded again.

    Parameters
    ----------
    kind
        Type of the message.
    data
        The serialized message.

    Attributes
    ----------
    places
        Place of each number and array of numbers, by path; those in sequences of messages by the
        index of their element: ``placements[0].position.x``.
    texts
        Text of each string, and list of the texts of each array of strings, by path.

    Raises
    ------
    NotPlainError
        If the bytes are not little-endian CDR, as all middlewares of ROS 2 write it on
        little-endian machines, end within a field, or have a string that would have other bytes
        if it was encoded again.

    """

    def __init__(self, kind: type, data: bytes) -> None:
        if data[:2] != PLAIN:
            raise NotPlainError("not plain little-endian CDR")
        self.places: dict[str, Place] = {}
        self.texts: dict[str, Any] = {}
        self._data = data
        self._runs: list[tuple[int, int, str]] = []
        try:
            self._walk(fields_of(kind), "", ORIGIN)
        except struct.error:
            raise NotPlainError(f"{len(data)} bytes end within a field") from None

    def group(self, paths: Iterable[str]) -> tuple[struct.Struct, int]:
        """Return what reads and writes some numbers at once, and the index of the first byte.

        Parameters
        ----------
        paths
            Numbers that are neighbours in the message, in their order.

        Raises
        ------
        KeyError
            If there is no such number.
        ValueError
            If one does not follow the one before it.

        """
        places = [(path, *self.places[path]) for path in paths]
        layout, first = "<", places[0][1]
        end = first
        for path, offset, code, count in places:
            if offset != end and offset != end + (ORIGIN - end) % _SIZES[code]:
                raise ValueError(f"{path} does not follow the one before it")
            layout += f"{offset - end}x{count}{code}"
            end = offset + count * _SIZES[code]
        return struct.Struct(layout), first

    def constant(self, changing: Collection[str]) -> ConstantBytes:
        """Return what recognises messages that differ from this one in some numbers at most.

        Parameters
        ----------
        changing
            Paths of numbers and arrays of numbers that may differ; lengths of arrays may not.

        """
        parts: list[list[tuple[int, int]]] = [[]]
        for start, end, path in self._runs:
            if path in changing:
                parts.append([])
            else:
                parts[-1].append((start, end))
        return ConstantBytes(self._data, [runs for runs in parts if runs])

    def _walk(self, fields: Iterable[Field], prefix: str, at: int) -> int:
        """Note the places of fields that begin at an index; return the index behind them."""
        data, runs = self._data, self._runs
        for path, code, count, single, parts in fields:
            path = prefix + path
            if count == _SEQUENCE:
                at += (ORIGIN - at) % _COUNT.size
                (count,) = _COUNT.unpack_from(data, at)
                runs.append((at, at + _COUNT.size, ""))
                at += _COUNT.size
            if code == TEXT:
                found = []
                for _ in range(count):
                    text, at = self._text(at)
                    found.append(text)
                self.texts[path] = found[0] if single else found
            elif code:
                size = _SIZES[code]
                if count:
                    at += (ORIGIN - at) % size
                self.places[path] = Place(at, code, count)
                runs.append((at, at + count * size, path))
                at += count * size
                if at > len(data):
                    raise NotPlainError(f"{len(data)} bytes end within a field")
            else:
                for k in range(count):
                    at = self._walk(parts, f"{path}[{k}].", at)
        return at

    def _text(self, at: int) -> tuple[str, int]:
        """Return the string that begins at an index, and the index behind it."""
        at += (ORIGIN - at) % _COUNT.size
        (size,) = _COUNT.unpack_from(self._data, at)
        begin = at + _COUNT.size
        end = begin + size
        text = self._data[begin:end]
        if len(text) != size or text.find(b"\0") != size - 1:
            raise NotPlainError("a string that does not end where it says")
        self._runs.append((at, end, ""))
        try:
            return text[:-1].decode(), end
        except UnicodeDecodeError as error:
            raise NotPlainError("a string that is not UTF-8") from error


class ConstantBytes:
    """The constant bytes of messages whose fields have the same places.

    Bytes between fields, which alignment asks for, may be any: middlewares leave in them what was
    there before.

    Parameters
    ----------
    data
        A message.
    parts
        Start and end of each constant field, in parts that changing numbers separate.

    """

    __slots__ = ("_parts", "_size", "_spans")

    def __init__(self, data: bytes, parts: list[list[tuple[int, int]]]) -> None:
        self._size, self._parts = len(data), parts
        self._spans = [
            (slice(runs[0][0], runs[-1][1]), data[runs[0][0] : runs[-1][1]]) for runs in parts
        ]

    def fits(self, data: bytes) -> bool:
        """Whether a message has the same constant bytes, hence its fields in the same places."""
        if len(data) != self._size or data[:2] != PLAIN:
            return False
        for number, (span, constant) in enumerate(self._spans):
            if data[span] != constant and not self._fits(number, data):
                return False
        return True

    def _fits(self, number: int, data: bytes) -> bool:
        """Compare a part field by field, without the bytes between them."""
        span, constant = self._spans[number]
        first = span.start
        return all(
            data[start:end] == constant[start - first : end - first]
            for start, end in self._parts[number]
        )
