"""Account of the joint states of a soak run, and of the gaps between matrices; knows no ROS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


STRETCH = 1000
"""Changes in a stretch of the run that is looked at by itself."""


class Arrivals:
    """The messages that a consumer got of one publisher, in the order of arrival.

    Parameters
    ----------
    capacity
        Most messages that can be noted; beyond it they are only counted.

    Attributes
    ----------
    count
        Number of messages noted.
    overflow
        Number of messages beyond the capacity.
    """

    def __init__(self, capacity: int) -> None:
        self.count = 0
        self.overflow = 0
        # Written while measuring, so all of it is allocated, and touched, before.
        self._table = np.full((capacity, 4), -1, dtype=np.int64)

    def note(self, stamp: int, arrival: int, sequence: int, good: bool) -> None:
        """Note a message: its stamp and arrival [ns], its number, and whether it says OK."""
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
        """Stamps of the joint states answered, ns."""
        return self._table[: self.count, 0]

    @property
    def sequences(self) -> IntArray:
        """Numbers of the messages."""
        return self._table[: self.count, 2]

    @property
    def good(self) -> npt.NDArray[np.bool_]:
        """Whether each message says OK."""
        return np.asarray(self._table[: self.count, 3] == 1)

    def any_good(self) -> bool:
        """Whether a message says OK."""
        return bool(self.good.any())

    def answers(self) -> IntArray:
        """Return stamp and arrival [ns] (n, 2) of the good messages, by stamp."""
        table = self._table[: self.count]
        table = table[table[:, 3] == 1][:, :2]
        return np.asarray(table[np.argsort(table[:, 0], kind="stable")])

    def latency(self, begin: int = 0) -> FloatArray:
        """Return the time from stamp to arrival [s] of the good messages from a stamp on."""
        table = self._table[: self.count]
        table = table[(table[:, 3] == 1) & (table[:, 0] >= begin)]
        return np.asarray(1e-9 * (table[:, 1] - table[:, 0]), dtype=np.float64)


@dataclass(frozen=True)
class NodeCounts:
    """Counts that the node logs of the time in which it was active."""

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
        Of them, those with a matrix in the consumer.
    refused
        Those with an INVALID or DEGRADED answer in the consumer.
    superseded
        Joint states that the node left out for a newer one, by its own count.
    lost_before
        Those that never reached the node.
    lost_after
        Those whose answer never reached the consumer.
    strange
        Messages that belong to no joint state sent, or to one answered already.
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
        """Return it in one line."""
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
        Stamps of the publisher, ns, rising. All that was on its way has arrived.
    arrivals
        All that the consumer got.
    node
        What the node counted, from its first joint state on.

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
    own, first = np.unique(stamps, return_index=True)
    asked = np.zeros(len(stamps), dtype=bool)
    asked[first[np.isin(own, sent)]] = True
    # A node may speak without being asked, to say that its input has fallen silent.
    notices = int((~asked & ~good).sum())
    seen = node.seen - (int(arrivals.sequences[begin]) - 1) - notices
    # What is more than was seen from then on was superseded before.
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
class Gaps:
    """The longest ways from one matrix to the next.

    Attributes
    ----------
    periods
        The longest, in joint states sent: 1 if all were answered.
    arrival
        Longest time between the arrivals of two matrices that follow each other, s.
    sent
        Longest time between two joint states that follow each other, s.
    stretches
        The longest, in joint states sent, of each stretch of the run, the one that it ended in
        included.
    """

    periods: int = 0
    arrival: float = float("nan")
    sent: float = float("nan")
    stretches: tuple[int, ...] = ()

    @classmethod
    def of(
        cls, sent: IntArray, arrivals: Arrivals, pause: float, marks: Sequence[int] = ()
    ) -> Gaps:
        """Return those of a run.

        Parameters
        ----------
        sent
            Stamps of the publisher, ns, rising.
        arrivals
            What the consumer got.
        pause
            Time without joint states after which the publisher had stopped for a while [s].
        marks
            Instants at which stretches begin, ns, rising.
        """
        table = arrivals.answers()
        answered = np.flatnonzero(np.isin(sent, table[:, 0]))
        if len(answered) < 2:
            return cls()
        sent = sent[answered[0] : answered[-1] + 1]
        sent_gaps = 1e-9 * np.diff(sent)
        # Pauses end a turn; what was sent last before one may have been superseded.
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
        """Return them in a few words."""
        return f"at most {self.periods} periods, {1e3 * self.arrival:.2f} ms by arrival"
