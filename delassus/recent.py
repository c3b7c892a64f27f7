"""A dictionary of bounded size."""

from __future__ import annotations

from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Recent(dict[K, V]):
    """A dictionary whose oldest entry gives way to a further one."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def put(self, key: K, value: V) -> tuple[K, V] | None:
        """Set the value of a key; return the entry that gave way, or None."""
        self[key] = value
        if len(self) <= self.most:
            return None
        oldest = next(iter(self))
        return oldest, self.pop(oldest)
