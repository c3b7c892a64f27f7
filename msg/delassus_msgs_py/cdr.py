"""Going through the bytes of a serialized message, field by field."""

from __future__ import annotations

import struct
from typing import Any

ORIGIN = 4
"""Where the fields begin, after the encapsulation; alignment counts from here."""
PLAIN = b"\x00\x01"
"""How all that is read here begins: little-endian CDR; two bytes of options follow."""
_NUMBERS = {code: struct.Struct(f"<{code}") for code in "BiIQd"}


class NotPlainError(ValueError):
    """Bytes whose fields this package does not know how to find; the middleware may."""


def aligned(place: int, size: int) -> int:
    """Return the next place for a number of this size [bytes]."""
    return place + (ORIGIN - place) % size


class Walk:
    """Goes through the bytes of a message in the order of its fields.

    Where a field is depends on all strings before it. Their lengths are those in the bytes, never
    those of decoded text: a string that is no UTF-8, or ends before its last byte, is not as long
    when it is encoded again.

    Parameters
    ----------
    data
        The serialized message.

    Attributes
    ----------
    at
        Where the next field may begin, before it is aligned.

    Raises
    ------
    NotPlainError
        If the bytes are not in the plain little-endian format (CDR), as those of all ROS 2
        middlewares are on little-endian machines. The methods raise it for strings that would
        not be the same when they are encoded again, and where the bytes end too early.

    """

    __slots__ = ("at", "data")

    def __init__(self, data: bytes) -> None:
        if data[:2] != PLAIN:
            raise NotPlainError("not plain little-endian CDR")
        self.data = data
        self.at = ORIGIN

    def number(self, code: str) -> Any:
        """Return the next number; `code` is that of `struct`: B, i, I, Q or d."""
        form = _NUMBERS[code]
        return form.unpack(self.raw(form.size))[0]

    def skip(self, count: int, code: str) -> int:
        """Go over so many numbers; return where the first one is."""
        if count:
            size = _NUMBERS[code].size
            self.at = aligned(self.at, size)
            self._over(count * size)
            return self.at - count * size
        return self.at

    def raw(self, size: int) -> bytes:
        """Return the bytes of the next number of this size."""
        self.at = aligned(self.at, size)
        self._over(size)
        return self.data[self.at - size : self.at]

    def string(self) -> str:
        """Return the next string."""
        size = self.number("I")
        begin = self.at
        self._over(size)
        text = self.data[begin : self.at]
        if text.find(b"\0") != size - 1:
            raise NotPlainError("a string that does not end where it says")
        try:
            return text[:-1].decode()
        except UnicodeDecodeError as error:
            raise NotPlainError("a string that is not UTF-8") from error

    def strings(self) -> list[str]:
        """Return the next sequence of strings."""
        return [self.string() for _ in range(self.number("I"))]

    def _over(self, size: int) -> None:
        self.at += size
        if self.at > len(self.data):
            raise NotPlainError(f"{len(self.data)} bytes end within a field")


class MaskedWalk(Walk):
    """A walk that notes which bytes are constant.

    Attributes
    ----------
    mask
        255 where they are, 0 where not, as between fields.

    """

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.mask = bytearray()

    def number(self, code: str, changes: bool = False) -> Any:
        """Return the next number; note whether it changes from one message to the next."""
        number = super().number(code)
        self._note(struct.calcsize(code), changes)
        return number

    def string(self) -> str:
        """Return the next string, which does not change."""
        before = self.at
        text = super().string()
        self._note(self.at - aligned(before, 4) - 4)
        return text

    def _note(self, size: int, changes: bool = False) -> None:
        self.mask.extend(bytes(self.at - ORIGIN - size - len(self.mask)))
        self.mask.extend(bytes([0 if changes else 255]) * size)
