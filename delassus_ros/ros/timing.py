"""Timing of the node: latency, jitter, overruns, ticks at a fixed rate."""

from __future__ import annotations

from array import array
from math import nan

import numpy as np

from delassus.errors import InputError

_SMOOTHING = 0.02
"""Weight of the latest interval in the usual interval, a mean of about the last fifty."""


class Timing:
    """Counts and measures ticks by a monotonic clock.

    Parameters
    ----------
    deadline : time from input to output above which a tick is an overrun [s]; infinite for none.
    period : expected time between ticks [s]; None for the mean of the last intervals.

    Attributes
    ----------
    latency : times from a tick's input to its output.
    jitter : differences between the intervals of ticks and the period.
    ticks, overruns : number of ticks, and of ticks beyond the deadline.
    """

    def __init__(self, deadline: float = float("inf"), period: float | None = None) -> None:
        if not deadline > 0 or (period is not None and not period > 0):
            raise InputError(f"deadline {deadline} and period {period} must be positive times, s")
        self.deadline = deadline
        self.latency, self.jitter = Times(), Times()
        self._period = period
        self.clear()

    def clear(self) -> None:
        """Return to the state before the first tick."""
        self.ticks = 0
        self.overruns = 0
        self.latency.clear()
        self.jitter.clear()
        self.pause()
        self._reported_at: float | None = None
        self._reported_ticks = 0

    def pause(self) -> None:
        """Do not count the time until the next tick as an interval: no input was expected."""
        self._began: float | None = None
        self._usual = self._period

    def begin(self, now: float, arrived: float) -> None:
        """Note the begin of a tick, and the arrival of its input [s]."""
        if self._began is not None:
            interval = now - self._began
            usual = interval if self._usual is None else self._usual
            self.jitter.add(abs(interval - usual))
            if self._period is None:
                self._usual = usual + _SMOOTHING * (interval - usual)
        self._began, self._arrived = now, arrived

    def end(self, now: float) -> float:
        """Note the output of the tick; return its latency [s]."""
        took = now - self._arrived
        self.ticks += 1
        self.latency.add(took)
        self.overruns += took > self.deadline
        return took

    def rate(self, now: float) -> float:
        """Return ticks per second since the last call; NaN at the first."""
        before, self._reported_at = self._reported_at, now
        ticks, self._reported_ticks = self.ticks - self._reported_ticks, self.ticks
        if before is None or not now > before:
            return float("nan")
        return ticks / (now - before)


def timer_period(rate: float) -> float:
    """Return the period of rclpy's timers at a rate [s]: whole nanoseconds, rounded down.

    A schedule with any other period would drift away from the timer.
    """
    return int(1.0 / rate * 1e9) * 1e-9


class Schedule:
    """Instants at a fixed rate; missed instants are counted, not made up for.

    Parameters
    ----------
    period : time between instants [s].
    start : first instant, by a monotonic clock [s].

    Attributes
    ----------
    due : next instant [s].
    """

    def __init__(self, period: float, start: float) -> None:
        if not 0 < period < float("inf"):
            raise InputError(f"period is {period}; expected a positive time in s")
        self._period = period
        self.due = start
        self.missed = 0

    def is_due(self, now: float) -> bool:
        """Return whether an instant is due, once for each; the next one is after `now`."""
        if now < self.due:
            return False
        behind = int((now - self.due) / self._period)
        self.missed += behind
        self.due += (behind + 1) * self._period
        return True


_MOST_TIMES = 1024
"""Times that quantiles are of, those of 1 s at 1 kHz: more would hold up the loop that reports."""


class Times:
    """Times of which the last 1024 are kept; :meth:`add` allocates no memory.

    Attributes
    ----------
    largest : largest of all times [s]; 0 without times.
    """

    def __init__(self) -> None:
        self._last = array("d", bytes(8 * _MOST_TIMES))
        self.clear()

    def clear(self) -> None:
        """Remove all times."""
        self.count = 0
        self.largest = 0.0

    def add(self, seconds: float) -> None:
        """Add a time [s]."""
        self._last[self.count % _MOST_TIMES] = seconds
        self.count += 1
        if seconds > self.largest:
            self.largest = seconds

    def quantiles(self, *fractions: float) -> list[float]:
        """Return the times [s] that these fractions of the last times do not exceed.

        NaN without times.
        """
        if not self.count:
            return [nan] * len(fractions)
        last = np.frombuffer(self._last, count=min(self.count, _MOST_TIMES))
        found = np.quantile(last, fractions, method="inverted_cdf")
        return [float(value) for value in found]
