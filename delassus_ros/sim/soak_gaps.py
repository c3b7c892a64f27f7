"""How far apart the matrices of a soak run are, where each joint state should have one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from delassus_ros.sim.soak_books import Arrivals, IntArray


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
