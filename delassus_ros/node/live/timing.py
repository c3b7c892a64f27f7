"""Whether the node keeps its rate: latency, jitter, overruns, ticks at a fixed rate.

Histograms of times never grow: from a microsecond to half a minute, to 2 %.
"""

from __future__ import annotations

from array import array
from math import log2

from delassus_ros.errors import InputError

_SMOOTHING = 0.02
"""Weight of the latest interval in the usual one: that of about the last fifty."""


class Timing:
    """Counts and measures ticks by a monotonic clock.

    Parameters
    ----------
    deadline : a tick that takes longer, from its input to its output, is an overrun [s];
        infinite for none.
    period : expected time between ticks [s]; None to expect what was usual so far.

    Attributes
    ----------
    latency : from when a tick's input was taken up to its output.
    jitter : how much the time between two ticks differs from the period.
    ticks, overruns : numbers of ticks, and of those beyond the deadline.
    """

    def __init__(self, deadline: float = float("inf"), period: float | None = None) -> None:
        if not deadline > 0 or (period is not None and not period > 0):
            raise InputError(f"deadline {deadline} and period {period} must be positive times, s")
        self.deadline = deadline
        self.latency, self.jitter = Histogram(), Histogram()
        self._period = period
        self.clear()

    def clear(self) -> None:
        """Begin anew, as after a time without input."""
        self.ticks = 0
        self.overruns = 0
        self.latency.clear()
        self.jitter.clear()
        self.pause()
        self._reported_at: float | None = None
        self._reported_ticks = 0

    def pause(self) -> None:
        """Take the time until the next input for no interval: there was none to come."""
        self._began: float | None = None
        self._usual = self._period

    def begin(self, now: float, arrived: float) -> None:
        """Note that a tick begins, and when its input was taken up."""
        if self._began is not None:
            interval = now - self._began
            usual = interval if self._usual is None else self._usual
            self.jitter.add(abs(interval - usual))
            if self._period is None:
                self._usual = usual + _SMOOTHING * (interval - usual)
        self._began, self._arrived = now, arrived

    def end(self, now: float) -> float:
        """Note that the tick's output is there; return its latency [s]."""
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
    """Return the period that rclpy's timers keep at a rate [s]: whole nanoseconds, rounded down.

    Instants with any other period would come out of step with the timer.
    """
    return int(1.0 / rate * 1e9) * 1e-9


class Schedule:
    """Instants at a fixed rate; one that was missed is counted, not made up for.

    Parameters
    ----------
    period : time between instants [s].
    start : the first one, by a monotonic clock [s].

    Attributes
    ----------
    due : the next instant [s].
    missed : number of instants at which nothing could be done.
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


_SHORTEST = 1e-6  # s
_PER_OCTAVE = 16
_OCTAVES = 25
_BINS = _PER_OCTAVE * _OCTAVES
_LOG_SHORTEST = log2(_SHORTEST)


class Histogram:
    """How often which time was seen.

    The bins are a sixteenth of an octave wide, 4.4 %; what is shorter than 1 µs or longer than
    34 s is in the first or last one. Adding makes no object that stays.

    Attributes
    ----------
    count : number of times added.
    total : their sum [s].
    largest : the longest [s]; 0 without any.
    """

    def __init__(self) -> None:
        self._bins = array("Q", bytes(8 * _BINS))
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self.count = 0
        self.total = 0.0
        self.largest = 0.0
        for i in range(_BINS):
            self._bins[i] = 0

    def add(self, seconds: float) -> None:
        """Add a time; negative ones count as 0, NaN is passed over."""
        if seconds > _SHORTEST:
            at = (
                int((log2(seconds) - _LOG_SHORTEST) * _PER_OCTAVE) if seconds < 30.0 else _BINS - 1
            )
            if seconds > self.largest:
                self.largest = seconds
            self.total += seconds
        elif seconds <= _SHORTEST:
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

        NaN without any time; the largest time itself for the fraction 1.
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
                # The middle of the bin, on the logarithmic scale.
                return min(_SHORTEST * float(2.0 ** ((at + 0.5) / _PER_OCTAVE)), self.largest)
        return self.largest

    @property
    def mean(self) -> float:
        """Mean of the times [s]; NaN without any."""
        return self.total / self.count if self.count else float("nan")
