"""Stamps of messages that count ticks instead of having a header."""

from __future__ import annotations

from dataclasses import dataclass

_BITS = 32
DRIFT = 2e-4
"""Largest relative difference of both clocks' speeds [1] that the mapping follows."""
JUMP_S = 1.0
"""Largest lag of the counter behind the arrivals, after which the mapping begins anew [s]."""


@dataclass(frozen=True)
class Stamp:
    """A time [ns], and a text about the fault of the counter; empty without a fault."""

    nanoseconds: int
    fault: str = ""


class TickClock:
    """Maps a counter of a robot to the clock of this computer.

    The counter has no origin. The message with the shortest delay so far is assumed to have no
    delay: stamps are never later than arrivals, and their distances are those of the counter.

    Parameters
    ----------
    period : time between two ticks [s].
    """

    def __init__(self, period: float) -> None:
        self._period = period * 1e9
        self._last: int | None = None
        # Since the first message [ns], which keeps the precision of floating-point numbers.
        self._origin, self._elapsed, self._offset = 0, 0.0, 0.0
        self._latest = 0

    def stamp(self, tick: int, arrival: int) -> Stamp:
        """Return the stamp of a message.

        A message whose tick stands still has no new information: its stamp is that of the first
        message with the same tick, so that its age grows.

        Parameters
        ----------
        tick : value of the counter, which wraps at 2³².
        arrival : time of arrival [ns].
        """
        if self._last is None:
            return self._begin(tick, arrival, "")
        ticks = (tick - self._last) % 2**_BITS
        if ticks == 0:
            return Stamp(
                self._latest,
                f"the tick stays at {tick}: the age counts from the message with which it came "
                "first; leave stamp.tick empty if the robot does not count",
            )
        if ticks >= 2 ** (_BITS - 1):
            return self._begin(tick, arrival, f"the tick goes back from {self._last} to {tick}")
        self._last = tick
        self._elapsed += ticks * self._period
        lag = (arrival - self._origin) - self._elapsed - self._offset
        if lag > JUMP_S * 1e9:
            return self._begin(tick, arrival, f"the tick is {lag / 1e9:.3g} s late")
        self._offset += min(lag, DRIFT * ticks * self._period)
        self._latest = self._origin + round(self._offset + self._elapsed)
        return Stamp(self._latest)

    def _begin(self, tick: int, arrival: int, fault: str) -> Stamp:
        self._last, self._origin, self._elapsed, self._offset = tick, arrival, 0.0, 0.0
        self._latest = arrival
        return Stamp(arrival, fault and f"{fault}; the clock of the robot is taken anew")
