"""Accounts of joint states of a soak run, and of gaps between matrices, without ROS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


STRETCH = 1000
"""Number of changes in a stretch of the run that is evaluated separately."""


class Arrivals:
    """The messages of one publisher at a consumer, in the order of arrival.

    Parameters
    ----------
    capacity
        Largest number of recorded messages; further messages are only counted.

    Attributes
    ----------
    count
        Number of recorded messages.
    overflow
        Number of messages beyond the capacity.
    """

    def __init__(self, capacity: int) -> None:
        self.count = 0
        self.overflow = 0
        # Written while measuring: allocated, and touched, in advance.
        self._table = np.full((capacity, 4), -1, dtype=np.int64)

    def note(self, stamp: int, arrival: int, sequence: int, good: bool) -> None:
        """Record a message: stamp and arrival [ns], sequence number, and validity."""
        if self.count == len(self._table):
            self.overflow += 1
            return
        row = self._table[self.count]
        row[0] = stamp
        row[1] = arrival
        row[2] = sequence
        row[3] = good
        self.count += 1

    @property
    def stamps(self) -> IntArray:
        """Stamps of the answered joint states [ns]."""
        return self._table[: self.count, 0]

    @property
    def sequences(self) -> IntArray:
        """Numbers of the messages."""
        return self._table[: self.count, 2]

    @property
    def good(self) -> npt.NDArray[np.bool_]:
        """Validity of the messages: True for OK."""
        return np.asarray(self._table[: self.count, 3] == 1)

    def any_good(self) -> bool:
        """Return whether a message is OK."""
        return bool(self.good.any())

    def answers(self) -> IntArray:
        """Return stamp and arrival [ns] (n, 2) of the good messages, by stamp."""
        table = self._table[: self.count]
        table = table[table[:, 3] == 1][:, :2]
        return np.asarray(table[np.argsort(table[:, 0], kind="stable")])

    def latency(self, begin: int = 0) -> FloatArray:
        """Return the times from stamp to arrival [s] of good messages from a stamp [ns] on."""
        table = self._table[: self.count]
        table = table[(table[:, 3] == 1) & (table[:, 0] >= begin)]
        return np.asarray(1e-9 * (table[:, 1] - table[:, 0]), dtype=np.float64)


@dataclass(frozen=True)
class NodeCounts:
    """Counts that the node logs for its active time."""

    published: int
    refused: int
    superseded: int

    @property
    def seen(self) -> int:
        """Joint states that reached the node."""
        return self.published + self.refused + self.superseded


@dataclass(frozen=True)
class Account:
    """Account of all joint states.

    Attributes
    ----------
    sent
        Joint states that the publisher sent.
    answered
        Sent joint states with a matrix in the consumer.
    refused
        Sent joint states with an INVALID or DEGRADED answer in the consumer.
    superseded
        Joint states that the node skipped for a newer one, by the node's count.
    lost_before
        Sent joint states that never reached the node.
    lost_after
        Sent joint states whose answer never reached the consumer.
    strange
        Messages that belong to no sent joint state, or to a joint state answered before.
    """

    sent: int
    answered: int
    refused: int
    superseded: int
    lost_before: int
    lost_after: int
    strange: int

    @property
    def superseded_share(self) -> float:
        """Share of joint states superseded."""
        return self.superseded / self.sent if self.sent else 0.0

    def words(self) -> str:
        """Return the account in one line."""
        return (
            f"{self.sent} joint states: {self.answered} answered, {self.superseded} superseded "
            f"({100.0 * self.superseded_share:.3f} %), {self.refused} refused, "
            f"{self.lost_before} lost before and {self.lost_after} after the node"
            + (f", {self.strange} strange answers" if self.strange else "")
        )


def account(sent: IntArray, arrivals: Arrivals, node: NodeCounts) -> Account:
    """Compare the joint states sent with the counts of the node and the messages received.

    The account begins with the first valid answer: discovery may lose messages before it.

    Parameters
    ----------
    sent
        Stamps of the publisher [ns], rising. All messages have arrived.
    arrivals
        All messages of the consumer.
    node
        Counts of the node since its first joint state.

    Notes
    -----
    The node's counts are needed: from outside, a lost answer looks like a superseded joint state.
    """
    good = arrivals.good
    begin = int(np.argmax(good)) if good.any() else arrivals.count
    good, stamps = good[begin:], arrivals.stamps[begin:]
    if not stamps.size:
        return Account(0, 0, 0, 0, 0, 0, arrivals.overflow)
    sent = sent[sent >= stamps[0]]
    distinct, first = np.unique(stamps, return_index=True)
    asked = np.zeros(len(stamps), dtype=bool)
    asked[first[np.isin(distinct, sent)]] = True
    # A node publishes unrequested messages when its input has fallen silent.
    notices = int((~asked & ~good).sum())
    seen = node.seen - (int(arrivals.sequences[begin]) - 1) - notices
    # Superseded joint states beyond those seen since then belong to the time before.
    superseded = min(node.superseded, max(seen - int(asked.sum()), 0))
    return Account(
        sent=len(sent),
        answered=int((asked & good).sum()),
        refused=int((asked & ~good).sum()),
        superseded=superseded,
        lost_before=len(sent) - seen,
        lost_after=seen - superseded - int(asked.sum()),
        strange=int((~asked & good).sum()) + arrivals.overflow,
    )


@dataclass(frozen=True)
class MatrixGaps:
    """The longest gaps between consecutive matrices.

    Attributes
    ----------
    periods
        Longest gap in sent joint states: 1 if all were answered.
    arrival
        Longest time between the arrivals of consecutive matrices [s].
    sent
        Longest time between consecutive joint states [s].
    stretches
        Longest gaps per stretch of the run, in sent joint states, including the last stretch.
    """

    periods: int = 0
    arrival: float = float("nan")
    sent: float = float("nan")
    stretches: tuple[int, ...] = ()

    @classmethod
    def of(
        cls, sent: IntArray, arrivals: Arrivals, pause: float, marks: Sequence[int] = ()
    ) -> MatrixGaps:
        """Return the gaps of a run.

        Parameters
        ----------
        sent
            Stamps of the publisher, ns, rising.
        arrivals
            Messages of the consumer.
        pause
            Time without joint states that counts as a pause of the publisher [s].
        marks
            Begins of stretches [ns], rising.
        """
        table = arrivals.answers()
        answered = np.flatnonzero(np.isin(sent, table[:, 0]))
        if len(answered) < 2:
            return cls()
        sent = sent[answered[0] : answered[-1] + 1]
        sent_gaps = 1e-9 * np.diff(sent)
        # Pauses end a turn; the last joint state before a pause may have been superseded.
        turns = np.concatenate(([0], np.cumsum(sent_gaps > pause)))
        places = answered - answered[0]
        together = np.diff(turns[places]) == 0
        periods = np.diff(places)[together]
        ends = sent[places[1:]][together]
        times = table[np.searchsorted(table[:, 0], sent[places]), 1]
        stretch = np.searchsorted(np.asarray(marks, dtype=np.int64), ends, side="right")
        return cls(
            int(periods.max(initial=0)),
            float(1e-9 * np.diff(times)[together].max(initial=0)),
            float(sent_gaps[sent_gaps <= pause].max(initial=0.0)),
            tuple(
                int(periods[stretch == number].max(initial=0))
                for number in range(1, len(marks) + 1)
            ),
        )

    def words(self) -> str:
        """Return the gaps as text."""
        return f"at most {self.periods} periods, {1e3 * self.arrival:.2f} ms by arrival"
