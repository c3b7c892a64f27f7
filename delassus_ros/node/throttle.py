"""Log lines that may be repeated a thousand times per second, written a few times per minute."""

from __future__ import annotations

import time
from collections.abc import Callable


class Throttle:
    """Passes on one line per kind and period, and says how many were left out.

    Parameters
    ----------
    write : takes the lines that are passed on.
    period : time between lines of a kind [s].
    clock : monotonic clock [s].
    """

    def __init__(
        self,
        write: Callable[[str], object],
        period: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._write = write
        self._period = period
        self._clock = clock
        self._due: dict[str, float] = {}
        self._omitted: dict[str, int] = {}

    def __call__(self, kind: str, text: str) -> None:
        """Write `text`, unless a line of this kind was written less than a period ago."""
        now = self._clock()
        if now < self._due.get(kind, now):
            self._omitted[kind] = self._omitted.get(kind, 0) + 1
            return
        self._due[kind] = now + self._period
        omitted = self._omitted.pop(kind, 0)
        self._write(f"{text} ({omitted} more like this since the last)" if omitted else text)
