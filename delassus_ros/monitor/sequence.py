"""Missing sequence numbers of messages, and their joint states, without ROS."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable

_STANDSTILL_NS = 400_000_000
"""Time between two answers [ns] above which a middleware may lose joint states at 1 kHz, of which
it stores some 500 for a node that does not run."""


class SequenceNumbers:
    """Counter of missing numbers in a sequence of messages.

    Attributes
    ----------
    skipped : missing numbers: superseded by the node, or lost.
    backwards : messages whose number is not larger than the previous number.
    """

    def __init__(self) -> None:
        self.skipped = self.backwards = 0
        self._last: int | None = None

    def count(self, number: int) -> int:
        """Add the number of the next message; return the count of missing numbers before it."""
        step = 1 if self._last is None else number - self._last
        self._last = number
        self.backwards += step <= 0
        skipped = max(step - 1, 0)
        self.skipped += skipped
        return skipped


class SequenceGaps:
    """The gaps between answers to joint states with increasing stamps.

    Joint states that the middleware loses while a node stands still are no fault of the node.

    Parameters
    ----------
    window : least number of stored gaps.

    Attributes
    ----------
    settled : settled joint states without a skipped number.
    """

    def __init__(self, window: int) -> None:
        self.settled = 0
        self._window = window
        # Per gap: the stamp of the answer that ends the gap, and the count of skipped numbers.
        self._ends: list[int] = []
        self._skipped: list[int] = []
        self._carried = 0
        self._counts: Counter[int] = Counter()

    def end(self, stamp: int, skipped: int) -> None:
        """Add the answer to the joint state of a stamp [ns], after `skipped` missing numbers."""
        if stamp <= (self._ends[-1] if self._ends else 0):
            # No answer to a newer joint state, such as the report that joint states have stopped.
            self._carried += skipped
            return
        self._ends.append(stamp)
        self._skipped.append(skipped + self._carried)
        self._carried = 0
        if len(self._ends) > 2 * self._window:
            for end in self._ends[: self._window]:
                self._counts.pop(end, None)
            del self._ends[: self._window], self._skipped[: self._window]

    def settle(self, stamp: int) -> None:
        """Count a joint state that will have no answer, before its gap is dropped."""
        self.settled += self._exceeds(stamp, self._counts)

    def unaccounted(self, unanswered: Iterable[int]) -> int:
        """Return the number of joint states without a skipped number.

        Parameters
        ----------
        unanswered : stamps of joint states without an answer that are not settled [ns].
        """
        counts = self._counts.copy()
        return self.settled + sum(self._exceeds(stamp, counts) for stamp in sorted(unanswered))

    def _exceeds(self, stamp: int, counts: Counter[int]) -> bool:
        """Count a joint state in its gap; return whether the count exceeds skipped numbers."""
        gap = bisect_left(self._ends, stamp)
        if gap in (0, len(self._ends)):
            # Before the first answer, or after the last: the answer may still arrive.
            return False
        end = self._ends[gap]
        counts[end] += 1
        stood_still = end - self._ends[gap - 1] > _STANDSTILL_NS
        return counts[end] > self._skipped[gap] and not stood_still
