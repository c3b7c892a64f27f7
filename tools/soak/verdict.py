"""The verdict on a soak run: its figures, and the figures that exceed limits."""

from __future__ import annotations

import math
from dataclasses import dataclass

from delassus_ros.monitor.latency import Percentiles

from .accounting import STRETCH, Account, MatrixGaps

_KEPT = 0.98  # share of the wanted rate below which a run has no verdict


@dataclass(frozen=True)
class Limits:
    """Limits of a run that passes; every limit is an option of the command.

    Lost, refused or wrong answers are always faults, without an option. Times are relative to
    those of the echo node, which computes nothing, as they depend mostly on the machine.
    """

    ratio: float = 1.3
    """Median and 99th percentile as multiples of the peer's."""
    p50: float = math.inf
    """Median time from joint state to matrix [ms]."""
    p99: float = math.inf
    """99th percentile of the time from joint state to matrix [ms]."""
    cpu: float = 20.0
    """Processor time of the node [% of one core, at 1 kHz; in proportion at other rates]."""
    superseded: float = 0.5
    """Joint states superseded by newer ones [%]."""
    growth: float = 2.0
    """Growth of the node's memory after the warm-up [MB]."""
    gap: float = 2.0
    """Periods between consecutive matrices, while the algorithm changes."""


@dataclass(frozen=True)
class EndedReaders:
    """Counts of further readers of the matrices that were ended.

    Attributes
    ----------
    killed
        Number of killed readers.
    stopped
        Killed readers that were stopped for a while before.
    deaf
        Killed readers that received no matrix.
    """

    killed: int
    stopped: int
    deaf: int

    def words(self) -> str:
        """Return the counts in one line."""
        return (
            f"{self.killed} other readers killed, {self.stopped} of them stopped before; "
            f"{self.deaf} had got no matrix"
        )


@dataclass(frozen=True)
class Result:
    """Measurements of a run.

    Attributes
    ----------
    rate, sent_rate
        Joint states per second: wanted, and sent during the node's turns.
    account
        Account of the joint states.
    node, echo
        Times from stamp to arrival.
    cpu, echo_cpu
        Processor time as a share of one core.
    memory
        Memory of the node after the warm-up and at the end, MB.
    checked, wrong
        Matrices recomputed by another algorithm, and recomputed matrices that differ.
    node_gaps, echo_gaps
        MatrixGaps between consecutive matrices.
    changes
        Changes of the algorithm; None without changes.
    readers
        Counts of killed readers; None without further readers.
    peer
        Name of the node that the node is compared with.
    """

    rate: float
    sent_rate: float
    account: Account
    node: Percentiles
    echo: Percentiles
    cpu: float
    echo_cpu: float
    memory: tuple[float, float]
    checked: int
    wrong: int
    node_gaps: MatrixGaps
    echo_gaps: MatrixGaps
    changes: int | None = None
    readers: EndedReaders | None = None
    peer: str = "echo"

    @property
    def growth(self) -> float:
        """Growth of the node's memory, MB."""
        return self.memory[1] - self.memory[0]

    def report(self) -> list[str]:
        """Return the figures, one per line."""
        ratios = (self.node.p50 / self.echo.p50, self.node.p99 / self.echo.p99)
        return [
            f"{self.sent_rate:.0f} Hz; {self.account.words()}",
            f"node  {self.node.words()}; {100.0 * self.cpu:.1f} % of a core",
            f"{self.peer:5} {self.echo.words()}; {100.0 * self.echo_cpu:.1f} % of a core",
            f"node to {self.peer}: p50 {ratios[0]:.2f}, p99 {ratios[1]:.2f}; "
            "there is no hard bound",
            f"memory of the node {self.memory[0]:.1f} MB after the warm-up, "
            f"{self.memory[1]:.1f} MB at the end",
            f"{self.checked} answers recomputed, {self.wrong} of them wrong",
            f"from one matrix to the next: node {self.node_gaps.words()}; "
            f"{self.peer} {self.echo_gaps.words()}; joint states at most "
            f"{1e3 * self.node_gaps.sent:.2f} and {1e3 * self.echo_gaps.sent:.2f} ms apart",
            *([] if self.changes is None else [self._change_words()]),
            *([] if self.readers is None else [self.readers.words()]),
        ]

    def _change_words(self) -> str:
        text = f"{self.changes} changes of the algorithm; at most "
        *whole, rest = self.node_gaps.stretches or (self.node_gaps.periods,)
        if whole:
            text += f"{', '.join(map(str, whole))} periods in each {STRETCH} of them, "
        return f"{text}{rest} periods in the {'rest' if whole else 'time'}"

    def faults(self, limits: Limits) -> list[str]:
        """Return descriptions of the figures that exceed limits."""
        count = self.account
        faults = [
            f"{number} {what}"
            for number, what in (
                (count.lost_before, "joint states lost between publisher and node"),
                (count.lost_after, "answers lost between node and consumer"),
                (count.refused, "joint states without a valid matrix"),
                (count.strange, "answers to joint states that were not sent, or answered twice"),
                (self.wrong, f"of {self.checked} answers wrong"),
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
        over.append(
            (f"median to that of {self.peer}", self.node.p50 / self.echo.p50, limits.ratio)
        )
        over.append(
            (
                f"99th percentile to that of {self.peer}",
                self.node.p99 / self.echo.p99,
                limits.ratio,
            )
        )
        if self.changes == 0:
            faults.append("the algorithm has not changed once after the warm-up")
        if self.changes is not None:
            over.append(("periods between two matrices", self.node_gaps.periods, limits.gap))
        if self.sent_rate < _KEPT * self.rate:
            faults.append(
                f"only {self.sent_rate:.0f} joint states per second instead of {self.rate:g}: "
                "the machine was too busy for the publisher"
            )
        # NaN exceeds every limit.
        faults += [
            f"{words} {value:.3f}, limit {limit:g}"
            for words, value, limit in over
            if not value <= limit
        ]
        return faults
