"""Statistics of the monitor: arrivals, latencies and errors of matrices.

Matrices are matched with the references of a simulator by the stamp of their joint state, in any
order of arrival. Joint states without an answer are compared with the skipped sequence numbers gap
by gap: in totals, a joint state lost by a node could be hidden by a lost reference.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Sequence

from delassus_msgs.msg import DelassusMatrix
from delassus_msgs_py import ReceivedMatrix

from delassus.recent import Recent
from delassus_ros.monitor.comparison import TOLERANCE, WINDOW, Comparisons, copy_of
from delassus_ros.monitor.latency import Percentiles
from delassus_ros.monitor.sequence import SequenceGaps, SequenceNumbers

_LATENCIES = 200_000  # latest latencies kept for the percentiles
_RECENT = 2000  # latest latencies shown in the live view


class Agreement(Comparisons):
    """Counts and errors of all messages since the start, held against references.

    Attributes
    ----------
    invalid
        INVALID messages, by reasons (bit set).
    wrong_set
        Matrices whose contacts differ from the set of active contacts with their stamp.
    sizes
        Number of matrices by number of rows.
    """

    def __init__(self, tolerance: float = TOLERANCE) -> None:
        super().__init__(tolerance)
        self.matrices = 0
        self.invalid: Counter[int] = Counter()
        self.wrong_set = 0
        self.sizes: Counter[int] = Counter()
        self.last: ReceivedMatrix | None = None
        self._first_stamp: int | None = None
        self._first_reference: int | None = None
        self._last_reference = 0
        self._numbers = SequenceNumbers()
        self._latencies: deque[float] = deque(maxlen=_LATENCIES)
        self._references: Recent[int, ReceivedMatrix] = Recent(WINDOW)
        self._unanswered: set[int] = set()
        self._lost_answers = 0
        self._last_stamp = 0
        # By stamp; None for an INVALID message, which holds no matrix.
        self._waiting: Recent[int, ReceivedMatrix | None] = Recent(WINDOW)
        self._dropped = 0
        self._gaps = SequenceGaps(WINDOW)
        self._sets: Recent[int, frozenset[str]] = Recent(WINDOW)

    def add_reference(self, received: ReceivedMatrix) -> None:
        """Add the reference of one joint state."""
        reference, stamp = copy_of(received), received.stamp
        oldest = self._references.put(stamp, reference)
        if self._first_reference is None:
            self._first_reference = stamp
        self._last_reference = stamp
        if stamp not in self._waiting:
            self._unanswered.add(stamp)
        elif (sample := self._waiting.pop(stamp)) is not None:
            self.compare(sample, reference)
        if oldest is not None and oldest[0] in self._unanswered:
            self._unanswered.remove(oldest[0])
            self._lost_answers += self._first_stamp is not None and oldest[0] > self._first_stamp
            self._gaps.settle(oldest[0])

    def add_contacts(self, stamp: int, active: Sequence[str]) -> None:
        """Add a set of active contacts, by its stamp [ns]."""
        self._sets.put(stamp, frozenset(active))

    def add(self, received: ReceivedMatrix, latency: float) -> None:
        """Add a message of the node, with a matrix or INVALID.

        Parameters
        ----------
        latency
            Time from the stamp of the joint state to the arrival of the message [s]; NaN if
            unknown.
        """
        skipped = self._numbers.count(received.sequence)
        if received.validity == DelassusMatrix.VALIDITY_INVALID:
            self.invalid[received.reasons] += 1
            self._answer(received.stamp, None, skipped)
            return
        self.matrices += 1
        self.last = sample = copy_of(received)
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

    def faults(self) -> list[str]:
        """Return a text about the faults of the run; empty without faults."""
        if self.matrices == 0:
            return ["no matrix arrived"]
        reasons = []
        if self.disagreed:
            reasons.append(self.disagreement("matrices disagree with the reference"))
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

    def _answer(self, stamp: int, sample: ReceivedMatrix | None, skipped: int) -> None:
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
                self.compare(sample, reference)
            return
        oldest = self._waiting.put(stamp, sample)
        if oldest is not None:
            self._dropped += self._needs_reference(oldest[1])

    def _needs_reference(self, sample: ReceivedMatrix | None) -> bool:
        if sample is None or not sample.contacts or self._first_reference is None:
            return False
        return sample.stamp >= self._first_reference

    def _check_set(self, sample: ReceivedMatrix) -> None:
        active = self._sets.get(sample.contacts_stamp)
        if active is None or active == frozenset(sample.contacts):
            return
        self.wrong_set += 1
        self.fault(
            f"stamp {sample.stamp}: contacts {', '.join(sample.contacts) or 'none'}, "
            f"active were {', '.join(sorted(active)) or 'none'}"
        )
