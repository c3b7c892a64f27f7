"""Layouts of earlier messages, by which serialized messages are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from rclpy.serialization import deserialize_message

from .cdr import NotPlainError
from .errors import MessageError

LARGEST = 1 << 24
"""Bytes of the largest message that is read: a matrix of some 1400 rows."""
_MOST_KEPT = 1 << 24
"""Bytes of all messages that are remembered, of each the latest."""
_Received = TypeVar("_Received")
_Read = TypeVar("_Read", covariant=True)


class KnownMessage(Protocol[_Read]):
    """The layout of an earlier message, and its values."""

    def fits(self, data: bytes) -> bool:
        """Whether a message has the constant part of this one, and may have its values."""

    def read(self, data: bytes) -> _Read:
        """Return the contents of a message that fits; the next call overwrites them."""


class MessageMemory(Generic[_Received]):
    """Reads messages of one type: whole at first, by the layout of a known one later.

    At most 16 MiB of messages are remembered; those used last stay longest.

    Parameters
    ----------
    whole
        Returns the contents of serialized bytes by the middleware, as an object with `__slots__`.
    known
        Returns the layout of serialized bytes, given their contents; None if only the whole
        message can be read, as without values. May raise `NotPlainError`.
    most
        Number of layouts that are remembered.

    """

    def __init__(
        self,
        whole: Callable[[bytes], _Received],
        known: Callable[[bytes, _Received], KnownMessage[_Received] | None],
        most: int = 64,
    ) -> None:
        self._whole, self._layout, self._most = whole, known, most
        self._known: list[tuple[KnownMessage[_Received], int]] = []
        self._kept = 0

    def read(self, data: bytes) -> _Received:
        """Return the contents of a serialized message; errors are those of `whole`."""
        for place, (known, _) in enumerate(self._known):
            if known.fits(data):
                if place:
                    # Frequent layouts are found soon.
                    self._known.insert(0, self._known.pop(place))
                return known.read(data)
        return self._learn(data)

    def _learn(self, data: bytes) -> _Received:
        """Read the whole message, and remember its layout."""
        received = self._whole(data)
        try:
            known = self._layout(data, received)
        except NotPlainError:
            return received
        # Only if both readings agree: bytes laid out in another way are noticed.
        if known is not None and known.fits(data) and is_same(known.read(data), received):
            self._known.insert(0, (known, len(data)))
            self._kept += len(data)
            while len(self._known) > self._most or self._kept > _MOST_KEPT:
                self._kept -= self._known.pop()[1]
        return received


def deserialized(data: bytes, kind: type) -> Any:
    """Return a deserialized message.

    Raises
    ------
    MessageError
        If the bytes are no message of this type, or more than :data:`LARGEST`.

    """
    if len(data) > LARGEST:
        raise MessageError(
            f"a {kind.__name__} of {len(data)} bytes is not read; at most {LARGEST} are"
        )
    try:
        return deserialize_message(data, kind)
    except (RuntimeError, UnicodeError) as error:
        raise MessageError(f"{len(data)} bytes are no {kind.__name__}: {error}") from error


def is_same(found: object, expected: object) -> bool:
    """Whether two objects of one class with `__slots__` have equal contents; NaN equals NaN."""
    names: Iterable[str] = type(expected).__slots__  # type: ignore[attr-defined]
    return all(_equal(getattr(found, name), getattr(expected, name)) for name in names)


def _equal(a: Any, b: Any) -> bool:
    if isinstance(b, tuple):
        return len(a) == len(b) and all(map(_equal, a, b))
    if isinstance(b, (float, np.ndarray)):
        return a is not None and np.array_equal(a, b, equal_nan=True)
    return bool(a == b)
