"""Messages of several topics that belong together by their stamp."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

_WAITING = 500  # instants: half a second at 1 kHz


class ByStamp:
    """Collect parts, whatever their order, until an instant has all of them.

    Where ROS has the package message_filters, its TimeSynchronizer does the same.

    Parameters
    ----------
    parts : names of the parts.

    Attributes
    ----------
    incomplete : instants given up, as others have taken their place.
    """

    def __init__(self, parts: Iterable[str]) -> None:
        self._parts = frozenset(parts)
        self._waiting: dict[tuple[int, int], dict[str, Any]] = {}
        self.incomplete = 0

    def add(self, stamp: Any, part: str, value: Any) -> dict[str, Any] | None:
        """Add a part of the instant `stamp`; return all of its parts if it was the last."""
        key = (stamp.sec, stamp.nanosec)
        found = self._waiting.setdefault(key, {})
        found[part] = value
        if found.keys() >= self._parts:
            return self._waiting.pop(key)
        if len(self._waiting) > _WAITING:
            del self._waiting[next(iter(self._waiting))]
            self.incomplete += 1
        return None
