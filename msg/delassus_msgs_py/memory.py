"""Messages that came before, by whose layouts serialized messages are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from rclpy.serialization import deserialize_message

from .cdr import NotPlainError
from .errors import MessageError

LARGEST = 1 << 24
"""Bytes of the largest message that is read: a matrix of some 1400 rows."""
_MOST_KNOWN = 64
_MOST_KEPT = 1 << 24
"""Bytes of all messages that are remembered, of each the latest."""
_Received = TypeVar("_Received")
_Read = TypeVar("_Read", covariant=True)


class KnownMessage(Protocol[_Read]):
    """The layout of an earlier message, and its values."""

    def fits(self, data: bytes) -> bool:
        """Whether a message has the constant part of this one, and may have its values."""

    def read(self, data: bytes) -> _Read:
        """Return what a message says that fits; the next call overwrites the answer."""


class MessageMemory(Generic[_Received]):
    """Reads messages of one type: whole at first, by the layout of a known one later.

    At most 64 layouts and 16 MiB of messages are remembered; those used last stay longest.

    Parameters
    ----------
    kind
        Type of the message.
    convert
        Returns what a message says, as an object with `__slots__`.
    known
        Returns the layout of serialized bytes, given what they say; None if only the whole
        message can be read, as without values. May raise `NotPlainError`.

    """

    def __init__(
        self,
        kind: type,
        convert: Callable[[Any], _Received],
        known: Callable[[bytes, _Received], KnownMessage[_Received] | None],
    ) -> None:
        self._kind, self._convert, self._layout = kind, convert, known
        self._known: list[tuple[KnownMessage[_Received], int]] = []
        self._kept = 0

    def read(self, data: bytes) -> _Received:
        """Return what a serialized message says.

        Raises
        ------
        MessageError
            If the bytes are no message of this type or more than :data:`LARGEST`, or the message
            contradicts itself.

        """
        if len(data) > LARGEST:
            raise MessageError(
                f"a {self._kind.__name__} of {len(data)} bytes is not read; at most {LARGEST} are"
            )
        for place, (known, _) in enumerate(self._known):
            if known.fits(data):
                if place:
                    # What comes often is found soon.
                    self._known.insert(0, self._known.pop(place))
                return known.read(data)
        return self._learn(data)

    def _learn(self, data: bytes) -> _Received:
        """Read the whole message, and remember its layout."""
        try:
            message = deserialize_message(data, self._kind)
        except (RuntimeError, UnicodeError) as error:
            raise MessageError(
                f"{len(data)} bytes are no {self._kind.__name__}: {error}"
            ) from error
        received = self._convert(message)
        try:
            known = self._layout(data, received)
        except NotPlainError:
            return received
        # Only if both readings agree: bytes laid out in another way are noticed.
        if known is not None and known.fits(data) and is_same(known.read(data), received):
            self._known.insert(0, (known, len(data)))
            self._kept += len(data)
            while len(self._known) > _MOST_KNOWN or self._kept > _MOST_KEPT:
                self._kept -= self._known.pop()[1]
        return received


def is_same(found: object, expected: object) -> bool:
    """Whether two objects of one class with `__slots__` say the same; NaN equals NaN."""
    names: Iterable[str] = type(expected).__slots__  # type: ignore[attr-defined]

    def same(a: Any, b: Any) -> bool:
        if isinstance(b, (float, np.ndarray)):
            return a is not None and np.array_equal(a, b, equal_nan=True)
        return bool(a == b)

    return all(same(getattr(found, name), getattr(expected, name)) for name in names)
