"""Joint states without an answer, held against the numbers that the sequence skips, gap by gap.

In totals, a joint state that a node has lost would hide behind another whose reference was lost.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable


class Gaps:
    """The gaps between answers, to joint states whose stamps grow.

    Parameters
    ----------
    window : how many of them are kept, at least.

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
        """Note that a joint state will have no answer, before its gap is forgotten."""
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
        return counts[end] > self._skipped[gap]
