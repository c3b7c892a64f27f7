"""Timing of the node: latency, jitter, overruns, ticks at a fixed rate.

Histograms have a fixed size: times from 1 µs to 30 s, with an error of 2 %.
"""

from __future__ import annotations

from array import array
from math import log2

from delassus_ros.errors import InputError

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
        self.latency, self.jitter = Histogram(), Histogram()
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
    missed : number of missed instants.
    """

    def __init__(self, period: float, start: float) -> None:
        if not 0 < period < float("inf"):
            raise InputError(f"period is {period}; expected a positive time in s")
        self._period = period
        self.due = start
        self.missed = 0

    def take(self, now: float) -> bool:
        """Return whether an instant is due; if so, the next one is after `now`."""
        if now < self.due:
            return False
        behind = int((now - self.due) / self._period)
        self.missed += behind
        self.due += (behind + 1) * self._period
        return True


_SHORTEST_S, _LONGEST_S = 1e-6, 30.0
"""Range of times that have separate bins [s]."""
_PER_OCTAVE = 16
_OCTAVES = 25
_BINS = _PER_OCTAVE * _OCTAVES
_LOG_SHORTEST = log2(_SHORTEST_S)


class Histogram:
    """Histogram of times.

    The bins are a sixteenth of an octave wide, 4.4 %. The first bin has all times up to 1 µs, the
    last bin all times above 30 s. :meth:`add` allocates no memory.

    Attributes
    ----------
    count : number of times.
    total : sum of the times [s].
    largest : largest time [s]; 0 without times.
    """

    def __init__(self) -> None:
        self._bins = array("Q", bytes(8 * _BINS))
        self.clear()

    def clear(self) -> None:
        """Remove all times."""
        self.count = 0
        self.total = 0.0
        self.largest = 0.0
        for i in range(_BINS):
            self._bins[i] = 0

    def add(self, seconds: float) -> None:
        """Add a time [s]; negative times count as 0, NaN is ignored."""
        if seconds > _SHORTEST_S:
            at = (
                int((log2(seconds) - _LOG_SHORTEST) * _PER_OCTAVE)
                if seconds < _LONGEST_S
                else _BINS - 1
            )
            if seconds > self.largest:
                self.largest = seconds
            self.total += seconds
        elif seconds <= _SHORTEST_S:
            at = 0
            if seconds > 0.0:
                self.total += seconds
                self.largest = max(self.largest, seconds)
        else:
            return
        self._bins[at] += 1
        self.count += 1

    def quantile(self, fraction: float) -> float:
        """Return the time [s] that this fraction of the times does not exceed, within 2.2 %.

        NaN without times; exactly the largest time for the fraction 1.
        """
        if not self.count:
            return float("nan")
        needed = fraction * self.count
        if needed >= self.count:
            return self.largest
        seen = 0
        for at, number in enumerate(self._bins):
            seen += number
            if seen >= needed and seen:
                # Middle of the bin on the logarithmic scale.
                return min(_SHORTEST_S * float(2.0 ** ((at + 0.5) / _PER_OCTAVE)), self.largest)
        return self.largest

    @property
    def mean(self) -> float:
        """Mean of the times [s]; NaN without times."""
        return self.total / self.count if self.count else float("nan")
