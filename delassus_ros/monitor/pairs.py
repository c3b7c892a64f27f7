"""Statistics of the comparison of two nodes, whose matrices are matched by stamp."""

from __future__ import annotations

import math
from collections import deque

from delassus_msgs.msg import DelassusMatrix
from delassus_msgs_py import ReceivedMatrix

from delassus_ros.monitor.comparison import TOLERANCE, WINDOW, Comparisons, copy_of
from delassus_ros.monitor.pairing import Instants

_TIMES = 1000  # latest compute times kept
_NAMES = ("first", "second")


class Pairs(Comparisons):
    """Counts and errors of the pairs of messages since the start.

    Attributes
    ----------
    one_sided
        Pairs of a matrix and an INVALID message, for the same set of active contacts.
    unlike
        Pairs for different sets of active contacts, as the nodes receive changes at different
        times.
    algorithms
        Per node, the algorithm of its last matrix.
    """

    def __init__(self, tolerance: float = TOLERANCE) -> None:
        super().__init__(tolerance)
        self.one_sided = 0
        self.unlike = 0
        self.algorithms = ["", ""]
        self._instants: Instants[int, ReceivedMatrix] = Instants((0, 1), WINDOW)
        self._times = (deque[float](maxlen=_TIMES), deque[float](maxlen=_TIMES))

    def add(self, side: int, answer: ReceivedMatrix) -> float | None:
        """Add the answer of the first (0) or the second (1) node to a joint state.

        The error is returned if the message completes a pair of matrices that can be compared.
        """
        if answer.validity != DelassusMatrix.VALIDITY_INVALID:
            self.algorithms[side] = answer.algorithm
            self._times[side].append(answer.compute_time)
        both = self._instants.add(answer.stamp, side, copy_of(answer))
        return None if both is None else self._hold(both[0], both[1])

    @property
    def unpaired(self) -> tuple[int, int]:
        """Per node, messages without a message of the other node: superseded or lost there."""
        return self._instants.missed[0], self._instants.missed[1]

    def compute_time(self, side: int) -> float:
        """Return the median of the latest compute times of a node [s]; NaN without data."""
        times = sorted(self._times[side])
        return times[len(times) // 2] if times else math.nan

    def faults(self) -> list[str]:
        """Return a text about the faults of the comparison; empty if all matrices agree."""
        faults = []
        if not self.compared:
            words = ", ".join(
                f"{self.unpaired[side] + self._instants.waiting(side)} of the {name}"
                for side, name in enumerate(_NAMES)
            )
            faults.append(f"no two matrices could be compared; messages left alone: {words}")
        if self.disagreed:
            faults.append(self.disagreement("pairs disagree"))
        if self.one_sided:
            faults.append(f"{self.one_sided} times only one of the two had a matrix")
        if faults and self.first_fault:
            faults.append(f"first: {self.first_fault}")
        return faults

    def values(self) -> dict[str, str]:
        """Return the figures as text by label."""
        sides = {
            f"{name} {what}": text
            for side, name in enumerate(_NAMES)
            for what, text in (
                ("algorithm", self.algorithms[side]),
                ("without counterpart", str(self.unpaired[side])),
                ("compute time [s]", f"{self.compute_time(side):.3e}"),
            )
        }
        return {
            "pairs compared": str(self.compared),
            "pairs that disagree": str(self.disagreed),
            "worst relative error": f"{self.worst:.3e}",
            "pairs with one matrix only": str(self.one_sided),
            "pairs of different contacts": str(self.unlike),
            **sides,
        }

    def words(self) -> str:
        """Return the figures in one line."""
        sides = " and ".join(
            f"{algorithm or 'nothing yet'} ({1e6 * self.compute_time(side):.1f} µs)"
            for side, algorithm in enumerate(self.algorithms)
        )
        return (
            f"{sides}: {self.compared} pairs, {self.disagreed} disagree, worst error "
            f"{self.worst:.1e}; {self.one_sided} one-sided, {self.unlike} of different contacts, "
            f"{self.unpaired[0]} and {self.unpaired[1]} without counterpart"
        )

    def _hold(self, first: ReceivedMatrix, second: ReceivedMatrix) -> float | None:
        if first.contacts_stamp != second.contacts_stamp:
            self.unlike += 1
            return None
        invalid = [one.validity == DelassusMatrix.VALIDITY_INVALID for one in (first, second)]
        if any(invalid):
            if not all(invalid):
                self.one_sided += 1
                lacking = _NAMES[invalid.index(True)]
                self.fault(f"stamp {first.stamp}: INVALID from the {lacking}, not from the other")
            return None
        between = f" of {first.algorithm} and {second.algorithm}"
        return self.compare(second, first, between)
