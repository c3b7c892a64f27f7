"""Changing the algorithm of the node all the time, during a soak run."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

STRETCH = 1000
"""Changes in a stretch of the run that is looked at by itself."""


_PATIENCE = 30.0  # s for a change to come about


class Swapper:
    """Ask for the next of some algorithms as soon as the last change is seen in a matrix.

    Parameters
    ----------
    node
        The consumer, a :class:`~delassus_ros.sim.soak_node.SoakNode`.
    others
        Algorithms to go through, with the one that the node begins with; none to do nothing.

    Attributes
    ----------
    count
        Changes that were seen.
    marks
        When counting began, and when each :data:`STRETCH` changes more were seen, ns.
    refusal
        What became of a change that did not come about; empty if all did.
    """

    def __init__(self, node: Any, others: Sequence[str]) -> None:
        self.restart()
        self.refusal = ""
        self._node = node
        self._names = list(others)
        self._wanted = ""
        self._answer: Any = None
        self._latest = math.inf

    @property
    def is_used(self) -> bool:
        """Whether there are algorithms to go through."""
        return bool(self._names)

    def restart(self) -> None:
        """Count from here on."""
        self.count = 0
        self.marks = [time.time_ns()]

    def pause(self) -> None:
        """Do not wait for a change any more: no matrices come for a while."""
        self._latest = math.inf

    def look(self) -> None:
        """Go on with the next change, if the last one has come about."""
        present = self._node.algorithm
        if not self._names or not present or not self._is_accepted():
            return
        if not self._wanted:
            if present in self._names:
                self.refusal = f"it computes with {present!r} already"
                return
            self._names.append(present)
        elif present != self._wanted:
            self._wait()
            return
        else:
            self.count += 1
            if self.count % STRETCH == 0:
                self.marks.append(time.time_ns())
        self._wanted = self._names[0]
        self._names.append(self._names.pop(0))
        self._answer = self._node.set_algorithm(self._wanted)
        self._latest = math.inf

    def _is_accepted(self) -> bool:
        """Return whether there is no answer to wait for; note what it says."""
        if self._answer is None:
            return True
        if not self._answer.done():
            self._wait()
            return False
        (result,) = self._answer.result().results
        self.refusal = self.refusal or result.reason
        self._answer = None
        return True

    def _wait(self) -> None:
        now = time.monotonic()
        self._latest = min(self._latest, now + _PATIENCE)
        if now >= self._latest:
            self.refusal = f"{self._wanted!r} is not in use {_PATIENCE:g} s after it was asked for"
