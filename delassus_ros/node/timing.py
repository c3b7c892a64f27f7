"""Whether the node keeps its rate: latency, jitter, overruns, and ticks at a fixed rate."""

from __future__ import annotations

from delassus_ros.errors import InputError
from delassus_ros.node.histogram import Histogram

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
