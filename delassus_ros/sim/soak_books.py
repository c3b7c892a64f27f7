"""Book-keeping of the soak run: is every joint state accounted for, how fast, within limits.

Nothing here knows of ROS.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_KEPT = 0.98  # of the wanted rate, below which a run says nothing of that rate


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
    """What the node says that it did since it became active."""

    published: int
    refused: int
    superseded: int

    @property
    def seen(self) -> int:
        """Joint states that reached the node."""
        return self.published + self.refused + self.superseded


@dataclass(frozen=True)
class Account:
    """Where the joint states went.

    Attributes
    ----------
    sent
        Joint states that the publisher sent.
    answered
        Of them, those with a matrix in the consumer.
    refused
        Those with an INVALID or DEGRADED answer in the consumer.
    superseded
        Those that the node passed over as a newer one was there, as it says itself.
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
    """Hold what the publisher sent against what the node says and what the consumer got.

    It begins with the first good answer: before that, discovery loses what it wants.

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
    The words of the node are needed: from outside, an answer that was lost looks like a joint
    state that was superseded.
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
class Swaps:
    """What changes of the algorithm cost.

    Attributes
    ----------
    count
        How many there were.
    periods
        Longest way from one matrix to the next, in joint states sent: 1 if all were answered.
    gap
        Longest time between the arrivals of two matrices that follow each other, s.
    sent_gap
        Longest time between two joint states, s: the gap is no shorter.
    """

    count: int
    periods: int
    gap: float
    sent_gap: float

    @classmethod
    def of(cls, count: int, sent: IntArray, arrivals: Arrivals, pause: float) -> Swaps:
        """Return the figures of a run.

        Parameters
        ----------
        count
            Number of changes.
        sent
            Stamps of the publisher, ns, rising.
        arrivals
            What the consumer got.
        pause
            Time without joint states after which the publisher had stopped for a while [s].
        """
        table = arrivals.answers()
        answered = np.flatnonzero(np.isin(sent, table[:, 0]))
        if len(answered) < 2:
            return cls(count, 0, float("nan"), float("nan"))
        sent = sent[answered[0] : answered[-1] + 1]
        sent_gaps = 1e-9 * np.diff(sent)
        # Pauses end a stretch; what was sent last before one may have been superseded.
        turns = np.concatenate(([0], np.cumsum(sent_gaps > pause)))
        places = answered - answered[0]
        together = np.diff(turns[places]) == 0
        times = table[np.searchsorted(table[:, 0], sent[places]), 1]
        return cls(
            count,
            int(np.diff(places)[together].max(initial=0)),
            float(1e-9 * np.diff(times)[together].max(initial=0)),
            float(sent_gaps[sent_gaps <= pause].max(initial=0.0)),
        )

    def words(self, rate: float) -> str:
        """Return them in one line."""
        return (
            f"{self.count} changes of the algorithm: from one matrix to the next at most "
            f"{self.periods} periods by stamp, {rate * self.gap:.1f} by arrival "
            f"({1e3 * self.gap:.2f} ms); joint states at most {1e3 * self.sent_gap:.2f} ms apart"
        )


@dataclass(frozen=True)
class Timing:
    """Times from stamp to arrival, s; NaN without data."""

    p50: float
    p99: float
    worst: float

    @classmethod
    def of(cls, latency: FloatArray) -> Timing:
        """Return the percentiles of many latencies."""
        if not latency.size:
            return cls(*3 * (float("nan"),))
        p50, p99 = np.percentile(latency, [50.0, 99.0])
        return cls(float(p50), float(p99), float(latency.max()))

    def words(self) -> str:
        """Return them in ms."""
        return (
            f"p50 {1e3 * self.p50:.3f} ms, p99 {1e3 * self.p99:.3f} ms, "
            f"max {1e3 * self.worst:.2f} ms"
        )


@dataclass(frozen=True)
class Limits:
    """What a run must keep to pass; each is an option of the command.

    Nothing may be lost, refused, or wrong: that has no option.
    """

    p50: float = 0.15
    """Median time from joint state to matrix [ms]."""
    p99: float = 0.5
    """99th percentile of it [ms]."""
    ratio: float = 1.3
    """Median and 99th percentile as multiples of the echo node's."""
    cpu: float = 20.0
    """Processor time of the node [% of one core, at 1 kHz; in proportion at other rates]."""
    superseded: float = 0.5
    """Joint states superseded by newer ones [%]."""
    growth: float = 2.0
    """Growth of the node's memory after the warm-up [MB]."""
    gap: float = 2.0
    """Periods from one matrix to the next, while the algorithm changes."""


@dataclass(frozen=True)
class Result:
    """All that a run has measured.

    Attributes
    ----------
    rate, sent_rate
        Joint states per second: as wanted, and as they were sent while the node had its turn.
    account
        Where they went.
    node, echo
        Times from stamp to arrival.
    cpu, echo_cpu
        Processor time as a share of one core.
    memory
        Memory of the node after the warm-up and at the end, MB.
    checked, wrong
        Matrices recomputed by another algorithm, and those of them that differ.
    swaps
        Changes of the algorithm; None if it was left alone.
    """

    rate: float
    sent_rate: float
    account: Account
    node: Timing
    echo: Timing
    cpu: float
    echo_cpu: float
    memory: tuple[float, float]
    checked: int
    wrong: int
    swaps: Swaps | None = None

    @property
    def growth(self) -> float:
        """Growth of the node's memory, MB."""
        return self.memory[1] - self.memory[0]

    def report(self) -> list[str]:
        """Return the figures, a line each."""
        ratios = (self.node.p50 / self.echo.p50, self.node.p99 / self.echo.p99)
        return [
            f"{self.sent_rate:.0f} Hz; {self.account.words()}",
            f"node  {self.node.words()}; {100.0 * self.cpu:.1f} % of a core",
            f"echo  {self.echo.words()}; {100.0 * self.echo_cpu:.1f} % of a core",
            f"node to echo: p50 {ratios[0]:.2f}, p99 {ratios[1]:.2f}",
            f"memory of the node {self.memory[0]:.1f} MB after the warm-up, "
            f"{self.memory[1]:.1f} MB at the end",
            f"{self.checked} matrices recomputed, {self.wrong} of them wrong",
            *([self.swaps.words(self.sent_rate)] if self.swaps else []),
        ]

    def faults(self, limits: Limits) -> list[str]:
        """Say in words what is not within the limits; empty if all is."""
        count = self.account
        faults = [
            f"{number} {what}"
            for number, what in (
                (count.lost_before, "joint states lost between publisher and node"),
                (count.lost_after, "answers lost between node and consumer"),
                (count.refused, "joint states without a valid matrix"),
                (count.strange, "answers to joint states that were not sent, or answered twice"),
                (self.wrong, f"of {self.checked} matrices wrong"),
            )
            if number
        ]
        if not count.answered or not self.checked:
            faults.append(f"{count.answered} matrices arrived, {self.checked} were recomputed")
        measured = {
            "p50": ("median [ms]", 1e3 * self.node.p50),
            "p99": ("99th percentile [ms]", 1e3 * self.node.p99),
            "cpu": ("processor time [% at 1 kHz]", 100.0 * self.cpu * 1000.0 / self.sent_rate),
            "superseded": ("superseded [%]", 100.0 * count.superseded_share),
            "growth": ("memory growth [MB]", self.growth),
        }
        over = [(words, value, getattr(limits, name)) for name, (words, value) in measured.items()]
        over.append(("median to the echo node's", self.node.p50 / self.echo.p50, limits.ratio))
        over.append(
            ("99th percentile to the echo node's", self.node.p99 / self.echo.p99, limits.ratio)
        )
        if self.swaps:
            over.append(("periods between two matrices", self.swaps.periods, limits.gap))
        if self.sent_rate < _KEPT * self.rate:
            faults.append(
                f"only {self.sent_rate:.0f} joint states per second instead of {self.rate:g}: "
                "the machine was too busy for the publisher"
            )
        # Not a number is not within a limit.
        faults += [
            f"{words} {value:.3f}, limit {limit:g}"
            for words, value, limit in over
            if not value <= limit
        ]
        return faults
