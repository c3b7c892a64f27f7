"""Shared-memory file with the soak run's commands to its publisher and the sent stamps."""

from __future__ import annotations

import enum
from pathlib import Path

import numpy as np
import numpy.typing as npt

_HEADER = 8  # numbers before the stamps


class Receiver(enum.IntEnum):
    """Node that receives joint states; the values are indices in the file."""

    NODE = 0
    ECHO = 1


class PublisherCommand(enum.IntEnum):
    """Command to the publisher."""

    WAIT = 0
    SEND = 1
    PROBE = 2


class Control:
    """Commands to the publisher, and the stamps that it has sent.

    Every number has one writer and is written atomically, so that no lock is needed.

    Parameters
    ----------
    path
        The file.
    capacity
        Number of stamps per target in a new file; None to open an existing file.
    """

    def __init__(self, path: Path, capacity: int | None = None) -> None:
        if capacity is None:
            self._numbers: npt.NDArray[np.int64] = np.memmap(path, np.int64, "r+")
        else:
            size = _HEADER + len(Receiver) * capacity
            self._numbers = np.memmap(path, np.int64, "w+", shape=(size,))
        self._stamps = self._numbers[_HEADER:].reshape(len(Receiver), -1)

    @property
    def command(self) -> PublisherCommand:
        """Present command to the publisher; set by the run."""
        return PublisherCommand(int(self._numbers[0]))

    @property
    def target(self) -> Receiver:
        """Node to which the publisher sends; set by the run."""
        return Receiver(int(self._numbers[1]))

    def order(self, command: PublisherCommand, target: Receiver) -> None:
        """Set the publisher's command from its next tick on."""
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
        """Whether the stamps of a target have reached the capacity."""
        return bool(self._numbers[4:6].max() >= self._stamps.shape[1])

    def count(self, target: Receiver) -> int:
        """Return the number of stamps of a target."""
        return int(self._numbers[4 + target])

    def add(self, target: Receiver, stamp: int) -> None:
        """Add the stamp of a joint state that is about to be sent [ns]."""
        count = self.count(target)
        self._stamps[target, count] = stamp
        self._numbers[4 + target] = count + 1

    def sent(self, target: Receiver) -> npt.NDArray[np.int64]:
        """Return the stamps sent to a target [ns]."""
        return np.array(self._stamps[target, : self.count(target)])
