"""Statistics of the comparison of two nodes, whose matrices are matched by stamp."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

from delassus_ros.monitor.checked import TOLERANCE, WINDOW, CheckedMatrix, Comparisons

_TIMES = 1000  # latest compute times kept
_NAMES = ("first", "second")


@dataclass(frozen=True)
class NodeAnswer:
    """Message of one of the two nodes for a joint state.

    Attributes
    ----------
    stamp
        Stamp of the joint state, ns.
    contacts_stamp
        Stamp of the message's set of active contacts [ns]; 0 without a set.
    sample
        The matrix; None if the message is INVALID.
    algorithm
        Name of the algorithm; empty if the message is INVALID.
    compute_time
        Time of the computation, s.
    """

    stamp: int
    contacts_stamp: int
    sample: CheckedMatrix | None
    algorithm: str = ""
    compute_time: float = math.nan


class Pairs(Comparisons):
    """Counts and errors of the pairs of messages since the start.

    Attributes
    ----------
    one_sided
        Pairs of a matrix and an INVALID message, for the same set of active contacts.
    unlike
        Pairs for different sets of active contacts, as the nodes receive changes at different
        times.
    unpaired
        Per node, messages without a message of the other node: superseded or lost there.
    algorithms
        Per node, the algorithm of its last matrix.
    """

    def __init__(self, tolerance: float = TOLERANCE) -> None:
        super().__init__(tolerance)
        self.one_sided = 0
        self.unlike = 0
        self.unpaired = [0, 0]
        self.algorithms = ["", ""]
        self._waiting: tuple[dict[int, NodeAnswer], dict[int, NodeAnswer]] = ({}, {})
        self._times = (deque[float](maxlen=_TIMES), deque[float](maxlen=_TIMES))

    def add(self, side: int, answer: NodeAnswer) -> float | None:
        """Add a message of the first (0) or the second (1) node.

        Returns
        -------
        float or None
            The error, if the message completes a pair of matrices that can be compared.
        """
        if answer.sample is not None:
            self.algorithms[side] = answer.algorithm
            self._times[side].append(answer.compute_time)
        pending, others = self._waiting[side], self._waiting[1 - side]
        other = others.pop(answer.stamp, None)
        if other is None:
            pending[answer.stamp] = answer
            if len(pending) > WINDOW:
                del pending[next(iter(pending))]
                self.unpaired[side] += 1
            return None
        # Nodes answer in the order of the stamps: older messages stay without a counterpart.
        for place, waiting in enumerate(self._waiting):
            for stamp in [stamp for stamp in waiting if stamp < answer.stamp]:
                del waiting[stamp]
                self.unpaired[place] += 1
        return self._hold(*((answer, other) if side == 0 else (other, answer)))

    def compute_time(self, side: int) -> float:
        """Return the median of the latest compute times of a node [s]; NaN without data."""
        times = sorted(self._times[side])
        return times[len(times) // 2] if times else math.nan

    def faults(self) -> list[str]:
        """Return the faults of the comparison in words; empty if all matrices agree."""
        faults = []
        if not self.compared:
            alone = zip(self._alone(), _NAMES, strict=True)
            words = ", ".join(f"{count} of the {name}" for count, name in alone)
            faults.append(f"no two matrices could be compared; messages left alone: {words}")
        if self.disagreed:
            faults.append(self.disagreement("pairs disagree"))
        if self.one_sided:
            faults.append(f"{self.one_sided} times only one of the two had a matrix")
        if faults and self.first_fault:
            faults.append(f"first: {self.first_fault}")
        return faults

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

    def _alone(self) -> tuple[int, int]:
        first, second = (
            count + len(waiting)
            for count, waiting in zip(self.unpaired, self._waiting, strict=True)
        )
        return first, second

    def _hold(self, first: NodeAnswer, second: NodeAnswer) -> float | None:
        if first.contacts_stamp != second.contacts_stamp:
            self.unlike += 1
            return None
        if first.sample is None or second.sample is None:
            if first.sample is not second.sample:
                self.one_sided += 1
                lacking = _NAMES[0] if first.sample is None else _NAMES[1]
                self.fault(f"stamp {first.stamp}: INVALID from the {lacking}, not from the other")
            return None
        between = f" of {first.algorithm} and {second.algorithm}"
        return self.compare(second.sample, first.sample, between)
