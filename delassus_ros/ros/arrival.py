"""Time of sending and age of an input; texts about stamps and clocks that go back.

Knows no ROS. Stamps and times are integers, ns; an age is in seconds. The time `now` of the node's
clock is 0 while that clock has no time, and `delay` is the time between sending and arrival.
"""

from __future__ import annotations

import math
import time
from collections import deque
from typing import Any

from delassus.errors import InputError


class Arrival:
    """Time at which the latest message of an input was sent, by the node's clock.

    The age of every input counts from the time of sending, or from its stamp where the stamp is
    earlier. No action of this node (subscribing, deactivation, a new robot) and no step of the
    clock makes a message younger. The time that a message waits in the middleware, or at a
    publisher that keeps it for late subscribers, counts as age.

    A message that came before simulated time began, or before the clock was set back, keeps the
    age it had on arrival; this age grows from the next call of :meth:`since` on.

    Parameters
    ----------
    now : time of arrival; None before the first message.
    """

    __slots__ = ("_at", "_delay")

    def __init__(self, now: int | None = None, delay: int = 0) -> None:
        self._at: int | None = None
        if now is not None:
            self.note(now, delay)

    def reset(self) -> None:
        """Return to the state before the first message."""
        self._at = None

    @property
    def has_come(self) -> bool:
        """Whether a message has arrived."""
        return self._at is not None

    def note(self, now: int, delay: int = 0) -> None:
        """Note the arrival of a message."""
        self._at = (now - delay or -1) if now > 0 else 0
        self._delay = delay

    def restart(self, now: int) -> None:
        """Count the age of the latest message, if there is one, from now on."""
        if self._at is not None:
            self.note(now)

    def since(self, now: int, stamp: int = 0) -> int | None:
        """Return the time since the latest message was sent; None before the first message.

        Parameters
        ----------
        now : time of the node's clock; ages stand still while the clock has no time.
        stamp : stamp of the message, counted from if it is earlier; 0 if the message has none.
            Stamps in the future are ignored.
        """
        at = self._at
        if at is None:
            return None
        if now <= 0:
            self._at = 0
            return self._delay
        if at == 0 or at > now:
            self._at = at = now - self._delay or -1
        return now - (min(at, stamp) if stamp > 0 else at)

    def age(self, now: int, stamp: int = 0) -> float:
        """Return :meth:`since` in s; NaN before the first message or without a time."""
        since = self.since(now, stamp)
        return math.nan if since is None or now <= 0 else 1e-9 * since

    def within(self, timeout: float, now: int, stamp: int = 0) -> bool:
        """Whether a message has come that was sent at most this time ago [ns]."""
        since = self.since(now, stamp)
        return since is not None and since <= timeout


LATEST_S = 2**31
"""Bound of the times [s] for which a message has room, from 1970 on or from its stamp."""
TIMES = "expected finite times of less than 2^31 s"


def delay_since(sent: int, now: int) -> int:
    """Return the time since a message was sent [ns]; 0 if unknown or in the future.

    Parameters
    ----------
    sent : time of sending, by the system clock of the publisher [ns]; 0 if unknown.
    now : time by the system clock of this host [ns].
    """
    return max(now - sent, 0) if sent > 0 else 0


def stamp_of(seconds: int, nanoseconds: int) -> int:
    """Return a stamp in ns; 0, which means no stamp, for a stamp that no clock gives."""
    return seconds * 1_000_000_000 + nanoseconds if nanoseconds < 1_000_000_000 else 0


def write_stamp(at: Any, stamp: int) -> None:
    """Write a stamp [ns] to a message.

    Parameters
    ----------
    at : the ``builtin_interfaces/Time`` that is written to, such as ``header.stamp``.

    Raises
    ------
    InputError
        If the stamp is too far from 1970 for a message.
    """
    seconds, nanoseconds = divmod(stamp, 1_000_000_000)
    if abs(seconds) >= LATEST_S:
        raise InputError(f"the stamp is {seconds} s; expected less than 2^31 s")
    at.sec, at.nanosec = seconds, nanoseconds


def age_of(stamp: int, now: int) -> float:
    """Return the age of a stamp [s], negative in the future; NaN without a stamp or a time."""
    return 1e-9 * (now - stamp) if stamp > 0 and now > 0 else math.nan


_ANOTHER_CLOCK_S = 1e6
"""Age [s] above which a stamp is assumed to be from another clock."""


def too_old(age: float) -> str:
    """Return the likely cause of an old stamp, from its age [s]."""
    if age > _ANOTHER_CLOCK_S:
        return (
            "the stamps are of another clock: set use_sim_time on this node if they are of "
            "simulated time, and on their publisher if the node's clock is"
        )
    return "or the clock of their host is behind"


def backward_jump(by: int, other_cause: str) -> str:
    """Return the text about stamps that jump back: by how much, and the likely cause.

    Parameters
    ----------
    by : size of the jump, more than 0.
    """
    return f"{1e-9 * by:.4g} s: a simulation was reset, a clock was set, {other_cause}"


LONGEST_STEP_NS = 1_000_000_000
"""Longest step of simulated time [ns]; a longer advance is a jump, e.g. to the start time."""
_REMEMBERED = 16
_SLEW_NS = 10_000_000
"""Smallest step back of the system clock [ns]; smaller changes are gradual synchronisation."""


class ClockSteps:
    """Length of the steps of simulated time.

    Simulated time stands still from one message on /clock to the next. Correct stamps of a
    simulation may be ahead of the node's clock by up to one step.

    Attributes
    ----------
    simulated : whether the node's clock follows /clock.
    longest : longest of the last few steps [ns]; 0 if time is not simulated, and the largest
        possible step before the first one.
    """

    def __init__(self, simulated: bool) -> None:
        self.simulated = simulated
        self.longest = LONGEST_STEP_NS if simulated else 0
        self._recent: deque[int] = deque(maxlen=_REMEMBERED)

    def add(self, step: int) -> None:
        """Add the next step [ns]."""
        if 0 < step <= LONGEST_STEP_NS:
            self._recent.append(step)
            self.longest = max(self._recent)


def _offset() -> int:
    """Return how far the system clock is ahead of the steady clock [ns].

    Both clocks are read again if the process paused between the two reads: such a pause would
    appear as a step.
    """
    while True:
        before = time.monotonic_ns()
        system = time.time_ns()
        after = time.monotonic_ns()
        if after - before < _SLEW_NS:
            return system - after


class SystemClock:
    """Detects that the system clock was set back; ROS has no notification for this."""

    def __init__(self) -> None:
        self._offset = _offset()

    def set_back(self) -> int:
        """Return how far the clock was set back since the last call [ns]; 0 for slewing."""
        offset = _offset()
        before, self._offset = self._offset, offset
        return before - offset if before - offset > _SLEW_NS else 0


def ahead_of_clock(ahead: float, step: int) -> str:
    """Return the text about a stamp that is too far ahead of the node's clock.

    Parameters
    ----------
    ahead : distance to the clock [s].
    step : :attr:`ClockSteps.longest`.
    """
    if step:
        return (
            f"{ahead:.4g} s ahead of /clock, which goes on by up to {1e-9 * step:.3g} s at once: "
            "their publisher uses another clock (check its use_sim_time), or /clock is late"
        )
    return (
        f"{ahead:.4g} s ahead of this node's clock: synchronise the clocks of the two hosts, or "
        "check use_sim_time"
    )
