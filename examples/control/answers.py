"""How joint states were answered, and how fast the plant's clock went; knows no ROS."""

from __future__ import annotations

import numpy as np

from delassus.recent import Recent

_KEPT = 1000  # joint states whose answers may still come
_REFUSED = 0.01
"""Largest share of the joint states that may be refused."""


class Answers:
    """Counts joint states and their answers by stamp.

    Stamps are of the plant's clock and times of sending of the machine's, both in ns.

    Parameters
    ----------
    what : plural noun for the answers, in messages.

    Attributes
    ----------
    what : the argument.
    count : answers, each joint state's once.
    refused : answers without content, as to a joint state whose matrix is INVALID.
    """

    def __init__(self, what: str) -> None:
        self.what = what
        self.count = self.refused = 0
        self._sent: Recent[int, int] = Recent(_KEPT)
        self._delays: list[int] = []
        self._period = self._asked = 0
        # Stamp, and time of sending, of the first and the last answer.
        self._first = self._last = (0, 0)

    def ask(self, stamp: int, sent: int) -> None:
        """Note a joint state; one that is published again counts from the first time."""
        step, self._asked = stamp - self._asked, stamp
        if step > 0 and len(self._sent):
            self._period = min(self._period or step, step)
        self._sent.put(stamp, self._sent.get(stamp, sent))

    def answer(self, stamp: int, sent: int, refused: bool = False) -> None:
        """Note an answer; the first that is none of the refused begins the run.

        One with a later stamp than the newest joint state is of another clock, and none.
        """
        if not self._last[0] < stamp <= self._asked or (refused and not self.count):
            return
        if not self.count:
            self._first = stamp, sent
        self._last = stamp, sent
        self.refused += refused
        self.count += not refused
        asked = self._sent.get(stamp)
        if asked is not None:
            self._delays.append(sent - asked)

    @property
    def last(self) -> int:
        """Stamp of the last answer [ns]; 0 before the first."""
        return self._last[0]

    @property
    def seconds(self) -> float:
        """Time of the plant's clock from the first answer to the last [s]."""
        return 1e-9 * (self._last[0] - self._first[0])

    @property
    def factor(self) -> float:
        """Speed of the plant's clock, in units of real time; 0 before it is known."""
        took = self._last[1] - self._first[1]
        return (self._last[0] - self._first[0]) / took if took > 0 else 0.0

    @property
    def states(self) -> int:
        """Joint states from the first answer to the last, by their stamps."""
        return 1 + round((self._last[0] - self._first[0]) / self._period) if self._period else 0

    def words(self, realtime: bool) -> str:
        """Return the figures in one line.

        Parameters
        ----------
        realtime : the plant did not wait for each answer, so their rate is the machine's.
        """
        delays = 1e-6 * np.quantile(self._delays, [0.5, 0.99]) if self._delays else [0.0, 0.0]
        late = f"{delays[0]:.2f} ms after their joint states (99 %: {delays[1]:.2f})"
        clock = f"{self.factor:.2f} x real time"
        if not realtime:
            return (
                f"{self.seconds:.1f} s in lockstep at {clock}: all {self.states} joint states "
                f"answered, {self.refused} without {self.what}; {self.what} {late}"
            )
        rate = (self.count - 1) / max(1e-9 * (self._last[1] - self._first[1]), 1e-9)
        wanted = 1e9 / max(self._period, 1)
        return (
            f"{self.seconds:.1f} s on the clock: this machine reaches {rate:.0f} of {wanted:.0f} "
            f"{self.what} per second, {late}; the plant ran at {clock}"
        )

    def faults(self) -> list[str]:
        """Return faults that do not depend on the machine's speed; empty without faults."""
        if self.refused <= _REFUSED * self.states:
            return []
        return [f"{self.refused} of {self.states} joint states had no valid matrix"]
