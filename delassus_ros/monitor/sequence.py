"""Sequence numbers of messages: what is missing, and for which joint states; knows no ROS."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable

_STANDSTILL_NS = 400_000_000
"""Time between two answers [ns] in which a middleware may lose joint states of 1 kHz: for a node
that does not run a middleware keeps some 500 joint states."""


class SequenceNumbers:
    """Numbers that are missing in a sequence of messages.

    Attributes
    ----------
    skipped : numbers that are missing: superseded by the node, or lost.
    backwards : messages whose number is not larger than the one before.
    """

    def __init__(self) -> None:
        self.skipped = self.backwards = 0
        self._last: int | None = None

    def count(self, number: int) -> int:
        """Take the number of the next message; return how many are missing before it."""
        step = 1 if self._last is None else number - self._last
        self._last = number
        self.backwards += step <= 0
        skipped = max(step - 1, 0)
        self.skipped += skipped
        return skipped


class SequenceGaps:
    """The gaps between answers, to joint states whose stamps grow.

    Where a node stands still, the middleware loses joint states: this is no fault of the node.

    Parameters
    ----------
    window : least number of gaps that are kept.

    Attributes
    ----------
    settled : joint states that nothing accounts for, among those that were settled.
    """

    def __init__(self, window: int) -> None:
        self.settled = 0
        self._window = window
        # Per gap the stamp of the answer behind it, and the numbers skipped before that.
        self._ends: list[int] = []
        self._skipped: list[int] = []
        self._carried = 0
        self._counts: Counter[int] = Counter()

    def end(self, stamp: int, skipped: int) -> None:
        """Note an answer.

        Parameters
        ----------
        stamp : of its joint state [ns].
        skipped : how many numbers are missing in the sequence before it.
        """
        if stamp <= (self._ends[-1] if self._ends else 0):
            # No answer to a newer joint state, as one that says that they have stopped.
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
        """Note that a joint state will have no answer, before its gap is dropped."""
        self.settled += self._exceeds(stamp, self._counts)

    def unaccounted(self, unanswered: Iterable[int]) -> int:
        """Return how many joint states no skipped number accounts for.

        Parameters
        ----------
        unanswered : stamps of those that have no answer and are not settled [ns].
        """
        counts = self._counts.copy()
        return self.settled + sum(self._exceeds(stamp, counts) for stamp in sorted(unanswered))

    def _exceeds(self, stamp: int, counts: Counter[int]) -> bool:
        """Count a joint state in its gap; return whether it is one more than were skipped."""
        gap = bisect_left(self._ends, stamp)
        if gap in (0, len(self._ends)):
            # Before the first answer, or after the last: it may be on its way.
            return False
        end = self._ends[gap]
        counts[end] += 1
        stood_still = end - self._ends[gap - 1] > _STANDSTILL_NS
        return counts[end] > self._skipped[gap] and not stood_still
