"""When an input was sent, how old it is, and what is said of stamps and clocks that go back.

Knows no ROS. Stamps and times are integers, ns; an age is in seconds.
"""

from __future__ import annotations

import math
import time
from collections import deque


class Arrival:
    """When the latest message of an input was sent, by the node's clock.

    The age of every input counts from here, and from its stamp where that is earlier. Neither what
    this node does (subscribing, being deactivated, stopped or given another robot) nor what the
    clock does makes a message younger: a message that has waited, in the middleware or as one that
    its publisher keeps for late subscribers, was sent when it was sent.

    What came before simulated time began, or before the clock was set back, counts from the
    first look at it afterwards: it is as old as it was when it came, and grows older from there.

    Parameters
    ----------
    now : when it came; None if it has yet to.
    delay : how long before it was sent, see :meth:`note`.
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
        """Whether a message has come."""
        return self._at is not None

    def note(self, now: int, delay: int = 0) -> None:
        """Note that a message comes.

        Parameters
        ----------
        now : time of the node's clock; 0 while that has no time yet.
        delay : how long before its publisher has sent it [ns].
        """
        self._at = (now - delay or -1) if now > 0 else 0
        self._delay = delay

    def restart(self, now: int) -> None:
        """Let the latest message, if any has come, count as new."""
        if self._at is not None:
            self.note(now)

    def since(self, now: int, stamp: int = 0) -> int | None:
        """Return how long ago the latest message was sent; None if none has come.

        Parameters
        ----------
        now : time of the node's clock; 0 while that has no time yet: then nothing grows old.
        stamp : of the message, to count from if it is earlier; 0 if it has none. One that is
            ahead of the clock makes nothing younger.
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
        """Return the same in s; NaN if none has come, or the clock has no time yet."""
        since = self.since(now, stamp)
        return math.nan if since is None or now <= 0 else 1e-9 * since

    def within(self, timeout: float, now: int, stamp: int = 0) -> bool:
        """Whether a message has come, and was sent at most so long ago [ns]."""
        since = self.since(now, stamp)
        return since is not None and since <= timeout


def delay_since(sent: int, now: int) -> int:
    """Return how long ago a message was sent [ns]: 0 if that is not told, or its host is ahead.

    Parameters
    ----------
    sent : by the system's clock of the publisher [ns]; 0 if it is not told.
    now : by that of this host [ns].
    """
    return max(now - sent, 0) if sent > 0 else 0


def stamp_of(seconds: int, nanoseconds: int) -> int:
    """Return a stamp in ns; 0, which stands for none, for one that no clock gives."""
    return seconds * 1_000_000_000 + nanoseconds if nanoseconds < 1_000_000_000 else 0


def age_of(stamp: int, now: int) -> float:
    """Return the age of a stamp, negative if it is ahead; NaN without a stamp or a time."""
    return 1e-9 * (now - stamp) if stamp > 0 and now > 0 else math.nan


_ANOTHER_CLOCK = 1e6
"""Age [s] that no message has which comes: its stamp is of another clock."""


def too_old(age: float) -> str:
    """Return the likely cause where messages come with an old stamp.

    Parameters
    ----------
    age : by the stamp [s].
    """
    if age > _ANOTHER_CLOCK:
        return (
            "the stamps are of another clock: set use_sim_time on this node if they are of "
            "simulated time, and on their publisher if the node's clock is"
        )
    return "or the clock of their host is behind"


def backward_jump(by: int, other_cause: str) -> str:
    """Return the words for stamps that jump back: by how much, and why that may be.

    Parameters
    ----------
    by : how far they jump back, more than 0.
    other_cause : what else than a clock it may be.
    """
    return f"{1e-9 * by:.4g} s: a simulation was reset, a clock was set, {other_cause}"


LONGEST = 1_000_000_000  # ns
"""A longer advance is a jump (e.g. to the simulation's start time), not a step."""
_REMEMBERED = 16
_SLEW = 10_000_000  # ns; what synchronisation does bit by bit is no step


class ClockSteps:
    """The steps of the node's clock.

    Simulated time stands still from one message on /clock to the next. Stamps that a simulation
    takes meanwhile are ahead of it by up to a step, with nothing wrong.

    Parameters
    ----------
    simulated : whether the node's clock follows /clock.

    Attributes
    ----------
    simulated : as given.
    longest : of the last few [ns]; 0 if time is not simulated, and as long as a step can be where
        none has been seen yet.
    """

    def __init__(self, simulated: bool) -> None:
        self.simulated = simulated
        self.longest = LONGEST if simulated else 0
        self._recent: deque[int] = deque(maxlen=_REMEMBERED)

    def add(self, step: int) -> None:
        """Take the next step [ns]."""
        if 0 < step <= LONGEST:
            self._recent.append(step)
            self.longest = max(self._recent)


def _offset() -> int:
    """Return how far the system's clock is ahead of the steady one [ns].

    Read again where this process did not run between the two: that would look like a step.
    """
    while True:
        before = time.monotonic_ns()
        system = time.time_ns()
        after = time.monotonic_ns()
        if after - before < _SLEW:
            return system - after


class SystemClock:
    """Notices that the machine's clock was set back, of which ROS tells nobody."""

    def __init__(self) -> None:
        self._offset = _offset()

    def set_back(self) -> int:
        """Return by how much it was since the last call [ns]; 0 if it was not, or hardly."""
        offset = _offset()
        before, self._offset = self._offset, offset
        return before - offset if before - offset > _SLEW else 0


def ahead_of_clock(ahead: float, step: int) -> str:
    """Return the words for a stamp that is further ahead of the node's clock than it may be.

    Parameters
    ----------
    ahead : how far [s].
    step : :attr:`ClockSteps.longest`.
    """
    if step:
        return (
            f"{ahead:.4g} s ahead of /clock, which goes on by up to {1e-9 * step:.3g} s at once: "
            "who publishes them goes by another clock (check its use_sim_time), or /clock is late"
        )
    return (
        f"{ahead:.4g} s ahead of this node's clock: synchronise the clocks of the two hosts, or "
        "check use_sim_time"
    )
