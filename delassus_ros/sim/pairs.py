"""Book-keeping of the comparison: do two nodes publish the same matrix for each joint state.

Messages are paired by the stamp of the joint state, in whichever order they arrive. Nothing here
knows of ROS.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

from delassus_ros.sim.agreement import TOLERANCE, Sample, relative_error

_WINDOW = 5000  # messages that wait for their counterpart: 5 s at 1 kHz
_TIMES = 1000  # latest compute times kept
_NAMES = ("first", "second")


@dataclass(frozen=True)
class Answer:
    """What one of the two nodes says for a joint state.

    Attributes
    ----------
    stamp
        Stamp of the joint state, ns.
    contacts_stamp
        Stamp of the set of active contacts it was made for, ns; 0 without one.
    sample
        The matrix; None if the message is INVALID.
    algorithm
        Name of the algorithm; empty if the message is INVALID.
    compute_time
        Time that it took, s.
    """

    stamp: int
    contacts_stamp: int
    sample: Sample | None
    algorithm: str = ""
    compute_time: float = math.nan


class Pairs:
    """Counts and errors since the start; feed it what arrives, read its attributes.

    Parameters
    ----------
    tolerance
        Largest relative error that counts as agreement.

    Attributes
    ----------
    compared
        Pairs of matrices of the same contacts.
    disagreed
        Of them, those with an error above the tolerance.
    worst
        Largest error; NaN counts as larger than all others.
    one_sided
        Pairs of a matrix and an INVALID message, for the same set of active contacts.
    unlike
        Pairs for different sets of active contacts: one node heard of a change before the other.
    unpaired
        Per node, messages whose counterpart did not come: superseded there, or lost.
    algorithms
        Per node, the algorithm of its last matrix.
    first_fault
        The first disagreement or one-sided pair in words, or None.
    """

    def __init__(self, tolerance: float = TOLERANCE) -> None:
        self.tolerance = tolerance
        self.compared = 0
        self.disagreed = 0
        self.worst = 0.0
        self.one_sided = 0
        self.unlike = 0
        self.unpaired = [0, 0]
        self.algorithms = ["", ""]
        self.first_fault: str | None = None
        self._waiting: tuple[dict[int, Answer], dict[int, Answer]] = ({}, {})
        self._times = (deque[float](maxlen=_TIMES), deque[float](maxlen=_TIMES))

    def add(self, side: int, answer: Answer) -> float | None:
        """Take a message of the first (0) or the second (1) node.

        Returns
        -------
        float or None
            The error, if the message completes a pair of matrices that can be compared.
        """
        if answer.sample is not None:
            self.algorithms[side] = answer.algorithm
            self._times[side].append(answer.compute_time)
        own, others = self._waiting[side], self._waiting[1 - side]
        other = others.pop(answer.stamp, None)
        if other is None:
            own[answer.stamp] = answer
            if len(own) > _WINDOW:
                del own[next(iter(own))]
                self.unpaired[side] += 1
            return None
        # Each node answers in the order of the stamps: what is older stays alone.
        for place, waiting in enumerate(self._waiting):
            for stamp in [stamp for stamp in waiting if stamp < answer.stamp]:
                del waiting[stamp]
                self.unpaired[place] += 1
        return self._compare(*((answer, other) if side == 0 else (other, answer)))

    def compute_time(self, side: int) -> float:
        """Return the median of the latest compute times of a node, s; NaN without data."""
        times = sorted(self._times[side])
        return times[len(times) // 2] if times else math.nan

    def faults(self) -> list[str]:
        """Say in words what speaks against agreement; empty if there was some and it is good."""
        faults = []
        if not self.compared:
            alone = zip(self._alone(), _NAMES, strict=True)
            words = ", ".join(f"{count} of the {name}" for count, name in alone)
            faults.append(f"no two matrices could be compared; messages left alone: {words}")
        if self.disagreed:
            faults.append(
                f"{self.disagreed} of {self.compared} pairs disagree (tolerance "
                f"{self.tolerance:g}, worst {self.worst:.1e})"
            )
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

    def _compare(self, first: Answer, second: Answer) -> float | None:
        if first.contacts_stamp != second.contacts_stamp:
            self.unlike += 1
            return None
        if first.sample is None or second.sample is None:
            if first.sample is not second.sample:
                self.one_sided += 1
                lacking = _NAMES[0] if first.sample is None else _NAMES[1]
                self._fault(f"stamp {first.stamp}: INVALID from the {lacking}, not from the other")
            return None
        if not first.sample.contacts:
            return None
        self.compared += 1
        error = relative_error(second.sample, first.sample)
        if math.isnan(error) or error > self.worst:
            self.worst = error
        if not error <= self.tolerance:
            self.disagreed += 1
            self._fault(
                f"stamp {first.stamp}: contacts {', '.join(first.sample.contacts)}, relative "
                f"error {error:.1e} of {first.algorithm} and {second.algorithm}"
            )
        return error

    def _fault(self, words: str) -> None:
        if self.first_fault is None:
            self.first_fault = words
