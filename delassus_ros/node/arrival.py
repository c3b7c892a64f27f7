"""When an input came, how old it is, and what is said of stamps that go back.

Knows no ROS. Stamps and times are integers, ns; an age is in seconds.
"""

from __future__ import annotations

import math


class Arrival:
    """When the latest message of an input came, by the node's clock.

    What came before simulated time began, or before the clock was set back, counts from the
    first look at it afterwards: it is new then, and grows old from there on.

    Parameters
    ----------
    now : when it came; None if it has yet to.
    """

    __slots__ = ("_at",)

    def __init__(self, now: int | None = None) -> None:
        self._at = now

    def forget(self) -> None:
        """Be as before the first message."""
        self._at = None

    def note(self, now: int) -> None:
        """Note that a message comes."""
        self._at = now

    def restart(self, now: int) -> None:
        """Let the latest message, if any has come, count as new."""
        if self._at is not None:
            self._at = now

    def since(self, now: int, stamp: int = 0) -> int | None:
        """Return how long ago the latest message came; None if none has.

        Parameters
        ----------
        now : time of the node's clock; 0 while that has no time yet: then nothing is old.
        stamp : of the message, to count from if it is earlier; 0 if it has none. One that is
            ahead of the clock makes nothing younger.
        """
        at = self._at
        if at is None:
            return None
        if not 0 < at <= now:
            self._at = at = now
        return now - (min(at, stamp) if stamp > 0 else at)

    def age(self, now: int, stamp: int = 0) -> float:
        """Return the same in s; NaN if none has come, or the clock has no time yet."""
        since = self.since(now, stamp)
        return math.nan if since is None or now <= 0 else 1e-9 * since

    def within(self, timeout: float, now: int) -> bool:
        """Whether a message has come, and at most so long ago [ns]."""
        since = self.since(now)
        return since is not None and since <= timeout


def age_of(stamp: int, now: int) -> float:
    """Return the age of a stamp, negative if it is ahead; NaN without a stamp or a time."""
    return 1e-9 * (now - stamp) if stamp > 0 and now > 0 else math.nan


def backward_jump(by: int, other_cause: str) -> str:
    """Return the words for stamps that jump back: by how much, and why that may be.

    Parameters
    ----------
    by : how far they jump back, more than 0.
    other_cause : what else than a clock it may be.
    """
    return f"{1e-9 * by:.4g} s: a simulation was reset, a clock was set, {other_cause}"
