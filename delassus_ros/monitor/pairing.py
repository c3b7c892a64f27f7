"""Messages of several topics brought together by their stamp, without ROS."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Generic, TypeVar

from delassus.recent import Recent

P = TypeVar("P")
V = TypeVar("V")


class Instants(Generic[P, V]):
    """Collects the parts of each stamp, in any order of arrival, until a stamp has all parts.

    Each part arrives in the order of the stamps, so that a complete stamp ends the wait for older
    stamps.

    Parameters
    ----------
    most : largest number of incomplete stamps; the oldest gives way to a further one.

    Attributes
    ----------
    incomplete : stamps given up before they had all parts.
    missed : per part, the values of these stamps.
    """

    def __init__(self, parts: Iterable[P], most: int) -> None:
        self.incomplete = 0
        self.missed: Counter[P] = Counter()
        self._parts = frozenset(parts)
        self._waiting: Recent[int, dict[P, V]] = Recent(most)

    def add(self, stamp: int, part: P, value: V) -> dict[P, V] | None:
        """Add a part of a stamp [ns]; return all parts of the stamp if none is missing now."""
        found = self._waiting.get(stamp, {})
        found[part] = value
        if found.keys() < self._parts:
            given_up = self._waiting.put(stamp, found)
            if given_up is not None:
                self._give_up(given_up[1])
            return None
        self._waiting.pop(stamp, None)
        for older in [key for key in self._waiting if key < stamp]:
            self._give_up(self._waiting.pop(older))
        return found

    def waiting(self, part: P) -> int:
        """Return the number of incomplete stamps that have a part."""
        return sum(part in found for found in self._waiting.values())

    def _give_up(self, found: dict[P, V]) -> None:
        self.incomplete += 1
        self.missed.update(found.keys())
