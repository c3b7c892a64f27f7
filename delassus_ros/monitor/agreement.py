"""Statistics of monitor and comparison: arrivals, latencies and errors of matrices.

Matrices are matched by the stamp of their joint state, in any order of arrival, and compared by
contact name: with references of a simulator (:class:`Agreement`), or between two nodes
(:class:`Pairs`). Joint states without an answer are compared with the skipped sequence numbers gap
by gap: in totals, a joint state lost by a node could be hidden by a lost reference. Only the last
functions of this module use ROS.
"""

from __future__ import annotations

import functools
import math
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from builtin_interfaces.msg import Time
from delassus_msgs_py import ReceivedMatrix

from delassus_ros.monitor.latency import Percentiles
from delassus_ros.monitor.sequence import SequenceGaps, SequenceNumbers

FloatArray = npt.NDArray[np.float64]

TOLERANCE = 1e-9
"""Largest relative error (Frobenius) that counts as agreement."""

_WINDOW = 5000  # stamps kept while a counterpart is missing: 5 s at 1 kHz
_LATENCIES = 200_000  # latest latencies kept for the percentiles
_RECENT = 2000  # latest latencies shown in the live view


@dataclass(frozen=True)
class CheckedMatrix:
    """A Delassus matrix with stamps and contacts for comparisons.

    Attributes
    ----------
    stamp
        Stamp of the joint state, ns.
    contacts
        Contact names in the order of the rows.
    offsets
        First rows of the contacts, then the number of rows: one entry more than contacts.
    matrix
        The matrix, (m, m).
    contacts_stamp
        Stamp of the matrix's set of active contacts [ns]; None without a set.
    """

    stamp: int
    contacts: tuple[str, ...]
    offsets: tuple[int, ...]
    matrix: FloatArray
    contacts_stamp: int | None = None


def relative_error(sample: CheckedMatrix, reference: CheckedMatrix) -> float:
    """Return the Frobenius distance of a matrix to a block of a reference, relative to the block.

    Parameters
    ----------
    sample
        The compared matrix.
    reference
        A matrix of at least the contacts of `sample`, in any order.

    Returns
    -------
    float
        0 without contacts; infinite if the reference lacks a contact or has another number of
        rows for a contact; NaN if an entry is NaN.
    """
    rows = _rows(sample.contacts, sample.offsets, reference.contacts, reference.offsets)
    if rows is None or sample.matrix.shape != (len(rows), len(rows)):
        return math.inf
    if not len(rows):
        return 0.0
    expected = reference.matrix[rows[:, np.newaxis], rows]
    difference = sample.matrix - expected
    return math.sqrt(np.vdot(difference, difference) / np.vdot(expected, expected))


@functools.lru_cache(maxsize=256)
def _rows(
    contacts: tuple[str, ...],
    offsets: tuple[int, ...],
    reference_contacts: tuple[str, ...],
    reference_offsets: tuple[int, ...],
) -> npt.NDArray[np.intp] | None:
    """Return the rows of the contacts in the reference; None if a contact is missing."""
    rows: list[int] = []
    for i, name in enumerate(contacts):
        if name not in reference_contacts:
            return None
        j = reference_contacts.index(name)
        block = range(reference_offsets[j], reference_offsets[j + 1])
        if len(block) != offsets[i + 1] - offsets[i]:
            return None
        rows += block
    return np.array(rows, dtype=np.intp)


class Agreement:
    """Counts and errors of all messages since the start.

    Parameters
    ----------
    tolerance
        Largest relative error that counts as agreement.

    Attributes
    ----------
    matrices
        Messages with a matrix.
    invalid
        INVALID messages, by reasons (bit set).
    compared
        Matrices of at least one contact that were compared with their reference.
    disagreed
        Compared matrices with an error above the tolerance.
    wrong_set
        Matrices whose contacts differ from the set of active contacts with their stamp.
    worst
        Largest error; NaN counts as larger than all numbers.
    first_fault
        The first disagreement or wrong set in words, or None.
    sizes
        Number of matrices by number of rows.
    last
        The last matrix, or None.
    """

    def __init__(self, tolerance: float = TOLERANCE) -> None:
        self.tolerance = tolerance
        self.matrices = 0
        self.invalid: Counter[int] = Counter()
        self.compared = 0
        self.disagreed = 0
        self.wrong_set = 0
        self.worst = 0.0
        self.first_fault: str | None = None
        self.sizes: Counter[int] = Counter()
        self.last: CheckedMatrix | None = None
        self._first_stamp: int | None = None
        self._first_reference: int | None = None
        self._last_reference = 0
        self._numbers = SequenceNumbers()
        self._latencies: deque[float] = deque(maxlen=_LATENCIES)
        self._references: dict[int, CheckedMatrix] = {}
        self._unanswered: set[int] = set()
        self._lost_answers = 0
        self._last_stamp = 0
        # By stamp; None for an INVALID message, which holds no matrix.
        self._waiting: dict[int, CheckedMatrix | None] = {}
        self._dropped = 0
        self._gaps = SequenceGaps(_WINDOW)
        self._sets: dict[int, frozenset[str]] = {}

    def add_reference(self, reference: CheckedMatrix) -> None:
        """Add the reference of one joint state."""
        stamp = reference.stamp
        self._references[stamp] = reference
        if self._first_reference is None:
            self._first_reference = stamp
        self._last_reference = stamp
        if stamp not in self._waiting:
            self._unanswered.add(stamp)
        elif (sample := self._waiting.pop(stamp)) is not None:
            self._compare(sample, reference)
        if len(self._references) > _WINDOW:
            oldest = next(iter(self._references))
            del self._references[oldest]
            if oldest in self._unanswered:
                self._unanswered.remove(oldest)
                self._lost_answers += self._first_stamp is not None and oldest > self._first_stamp
                self._gaps.settle(oldest)

    def add_contacts(self, stamp: int, active: Sequence[str]) -> None:
        """Add a set of active contacts, by its stamp [ns]."""
        self._sets[stamp] = frozenset(active)
        if len(self._sets) > _WINDOW:
            del self._sets[next(iter(self._sets))]

    def add_invalid(self, stamp: int, sequence: int, reasons: int) -> None:
        """Add a message without a matrix: stamp of its joint state [ns], number, reasons."""
        skipped = self._numbers.count(sequence)
        self.invalid[reasons] += 1
        self._answer(stamp, None, skipped)

    def add_matrix(self, sample: CheckedMatrix, sequence: int, latency: float) -> None:
        """Add a matrix.

        Parameters
        ----------
        sample
            The matrix.
        sequence
            Number of the message.
        latency
            Time from the stamp of the joint state to the arrival of the matrix [s]; NaN if
            unknown.
        """
        skipped = self._numbers.count(sequence)
        self.matrices += 1
        self.last = sample
        self.sizes[len(sample.matrix)] += 1
        if not math.isnan(latency):
            self._latencies.append(latency)
        self._check_set(sample)
        self._answer(sample.stamp, sample, skipped)

    @property
    def skipped(self) -> int:
        """Numbers missing in the sequence of the messages: superseded by the node, or lost."""
        return self._numbers.skipped

    @property
    def backwards(self) -> int:
        """Messages whose sequence number is not larger than the previous number."""
        return self._numbers.backwards

    @property
    def unreferenced(self) -> int:
        """Matrices since the first reference without a reference of their stamp."""
        return self._dropped + sum(
            self._needs_reference(sample) and stamp <= self._last_reference
            for stamp, sample in self._waiting.items()
        )

    @property
    def unanswered(self) -> int:
        """Joint states with a reference but without an answer, between first and last answer."""
        if self._first_stamp is None:
            return 0
        first, last = self._first_stamp, self._last_stamp
        return self._lost_answers + sum(first < stamp < last for stamp in self._unanswered)

    def latency(self, recent: bool = False) -> Percentiles:
        """Percentiles of the latency, of all matrices or of the most recent ones."""
        values = list(self._latencies)
        if recent:
            values = values[-_RECENT:]
        return Percentiles.of(values)

    def condition(self) -> float:
        """2-norm condition number of the last matrix; NaN without a finite matrix."""
        if self.last is None or not self.last.matrix.size:
            return math.nan
        if not np.isfinite(self.last.matrix).all():
            return math.nan
        return float(np.linalg.cond(self.last.matrix))

    def faults(self) -> list[str]:
        """Return the faults of the run in words; empty if there are none."""
        if self.matrices == 0:
            return ["no matrix arrived"]
        reasons = []
        if self.disagreed:
            reasons.append(
                f"{self.disagreed} of {self.compared} matrices disagree with the reference "
                f"(tolerance {self.tolerance:g}, worst {self.worst:.1e})"
            )
        if self.wrong_set:
            reasons.append(f"{self.wrong_set} matrices are of other contacts than the active ones")
        if reasons and self.first_fault:
            reasons.append(f"first: {self.first_fault}")
        if self._first_reference is None:
            reasons.append("no reference arrived")
        elif self.matrices == self.sizes[0]:
            reasons.append("no matrix had rows: no contact was ever active")
        elif self.compared <= self.unreferenced:
            reasons.append(
                f"only {self.compared} matrices could be held against a reference; "
                f"{self.unreferenced} had none"
            )
        if self.backwards:
            reasons.append(f"the sequence went back {self.backwards} times")
        lost = self._gaps.unaccounted(self._unanswered)
        if lost:
            reasons.append(
                f"of {self.unanswered} joint states without an answer, {lost} are not among "
                f"the {self.skipped} that the sequence says were superseded"
            )
        return reasons

    def _answer(self, stamp: int, sample: CheckedMatrix | None, skipped: int) -> None:
        self._gaps.end(stamp, skipped)
        if stamp <= 0:
            # The node has not received a joint state yet.
            return
        if self._first_stamp is None:
            self._first_stamp = stamp
        self._last_stamp = stamp
        reference = self._references.get(stamp)
        if reference is not None:
            self._unanswered.discard(stamp)
            if sample is not None:
                self._compare(sample, reference)
            return
        self._waiting[stamp] = sample
        if len(self._waiting) > _WINDOW:
            oldest = self._waiting.pop(next(iter(self._waiting)))
            self._dropped += self._needs_reference(oldest)

    def _needs_reference(self, sample: CheckedMatrix | None) -> bool:
        if sample is None or not sample.contacts or self._first_reference is None:
            return False
        return sample.stamp >= self._first_reference

    def _check_set(self, sample: CheckedMatrix) -> None:
        if sample.contacts_stamp is None:
            return
        active = self._sets.get(sample.contacts_stamp)
        if active is None or active == frozenset(sample.contacts):
            return
        self.wrong_set += 1
        self._fault(
            f"stamp {sample.stamp}: contacts {', '.join(sample.contacts) or 'none'}, "
            f"active were {', '.join(sorted(active)) or 'none'}"
        )

    def _compare(self, sample: CheckedMatrix, reference: CheckedMatrix) -> None:
        if not sample.contacts:
            return
        self.compared += 1
        error = relative_error(sample, reference)
        if math.isnan(error) or error > self.worst:
            self.worst = error
        if not error <= self.tolerance:
            self.disagreed += 1
            self._fault(
                f"stamp {sample.stamp}: contacts {', '.join(sample.contacts)}, "
                f"relative error {error:.1e}"
            )

    def _fault(self, words: str) -> None:
        if self.first_fault is None:
            self.first_fault = words


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


class Pairs:
    """Counts and errors of all messages since the start.

    Parameters
    ----------
    tolerance
        Largest relative error that counts as agreement.

    Attributes
    ----------
    compared
        Pairs of matrices of the same contacts.
    disagreed
        Compared pairs with an error above the tolerance.
    worst
        Largest error; NaN counts as larger than all numbers.
    one_sided
        Pairs of a matrix and an INVALID message, for the same set of active contacts.
    unlike
        Pairs for different sets of active contacts, as the nodes receive changes at different
        times.
    unpaired
        Per node, messages without a message of the other node: superseded or lost there.
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
            if len(pending) > _WINDOW:
                del pending[next(iter(pending))]
                self.unpaired[side] += 1
            return None
        # Nodes answer in the order of the stamps: older messages stay without a counterpart.
        for place, waiting in enumerate(self._waiting):
            for stamp in [stamp for stamp in waiting if stamp < answer.stamp]:
                del waiting[stamp]
                self.unpaired[place] += 1
        return self._compare(*((answer, other) if side == 0 else (other, answer)))

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

    def _compare(self, first: NodeAnswer, second: NodeAnswer) -> float | None:
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


def nanoseconds(stamp: Time) -> int:
    """Return a stamp, ns."""
    return int(stamp.sec) * 10**9 + int(stamp.nanosec)


def checked_matrix_of(received: ReceivedMatrix) -> CheckedMatrix:
    """Return a copy of a received matrix for comparisons."""
    return CheckedMatrix(
        stamp=received.stamp,
        contacts=received.contacts,
        offsets=received.row_offsets,
        matrix=np.array(received.matrix),
        contacts_stamp=received.contacts_stamp or None,
    )
