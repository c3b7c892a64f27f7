"""The pace of a loop: one tick per period on the machine's clock."""

from __future__ import annotations

import time

CATCH_UP_S = 0.02
"""Largest delay that is caught up [s]."""


class Pace:
    """The schedule of ticks. Late ticks catch up at up to twice the rate, never back to back.

    A delay of more than :data:`CATCH_UP_S` is not caught up: the schedule is moved.
    """

    def __init__(self) -> None:
        self._due = self._earliest = time.monotonic()

    def begin(self, period: float) -> float:
        """Begin a tick; return the delay by which the schedule was moved, 0 if none [s].

        The next tick is due after a period [s].
        """
        now = time.monotonic()
        delay = now - self._due
        moved = delay if delay > CATCH_UP_S else 0.0
        self._due = (now if moved else self._due) + period
        self._earliest = now + 0.5 * period
        return moved

    @property
    def rest(self) -> float:
        """Return the time until the next tick [s]; 0 or less if the tick is due."""
        return max(self._due, self._earliest) - time.monotonic()
