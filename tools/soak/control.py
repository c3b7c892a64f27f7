"""File in memory through which the soak run orders its publisher and learns what was sent."""

from __future__ import annotations

import enum
from pathlib import Path

import numpy as np
import numpy.typing as npt

_HEADER = 8  # numbers before the stamps


class Receiver(enum.IntEnum):
    """Node to which joint states are sent; the values are places in the file."""

    NODE = 0
    ECHO = 1


class Order(enum.IntEnum):
    """Order to the publisher."""

    WAIT = 0
    SEND = 1
    PROBE = 2


class Control:
    """Commands to the publisher, and what it has sent.

    Each number has one writer and is written in one piece, so that no lock is needed.

    Parameters
    ----------
    path
        The file.
    capacity
        Room for so many stamps per target; to make the file. Without it, the file is there.
    """

    def __init__(self, path: Path, capacity: int | None = None) -> None:
        if capacity is None:
            self._numbers: npt.NDArray[np.int64] = np.memmap(path, np.int64, "r+")
        else:
            size = _HEADER + len(Receiver) * capacity
            self._numbers = np.memmap(path, np.int64, "w+", shape=(size,))
        self._stamps = self._numbers[_HEADER:].reshape(len(Receiver), -1)

    @property
    def command(self) -> Order:
        """Present order to the publisher; set by the run."""
        return Order(int(self._numbers[0]))

    @property
    def target(self) -> Receiver:
        """Node to which the publisher sends; set by the run."""
        return Receiver(int(self._numbers[1]))

    def order(self, command: Order, target: Receiver) -> None:
        """Give the publisher an order, for its next tick and on."""
        self._numbers[1] = target
        self._numbers[0] = command

    @property
    def ready(self) -> bool:
        """Whether the publisher has found its subscribers; set by the publisher."""
        return bool(self._numbers[2])

    @ready.setter
    def ready(self, value: bool) -> None:
        self._numbers[2] = value

    @property
    def late(self) -> int:
        """Number of times the publisher moved its schedule; set by the publisher."""
        return int(self._numbers[3])

    @late.setter
    def late(self, value: int) -> None:
        self._numbers[3] = value

    @property
    def full(self) -> bool:
        """Whether there is no room for another stamp for one of the targets."""
        return bool(self._numbers[4:6].max() >= self._stamps.shape[1])

    def count(self, target: Receiver) -> int:
        """Return the number of stamps so far."""
        return int(self._numbers[4 + target])

    def add(self, target: Receiver, stamp: int) -> None:
        """Note the stamp of a joint state that is about to be sent, ns."""
        count = self.count(target)
        self._stamps[target, count] = stamp
        self._numbers[4 + target] = count + 1

    def sent(self, target: Receiver) -> npt.NDArray[np.int64]:
        """Return the stamps sent so far, ns."""
        return np.array(self._stamps[target, : self.count(target)])
