"""Changing the algorithm of the node all the time, during a soak run."""

from __future__ import annotations

import time
from typing import Any

STRETCH = 1000
"""Changes in a stretch of the run that is looked at by itself."""


class Swapper:
    """Ask for the other one of two algorithms as soon as the last change is seen in a matrix.

    Parameters
    ----------
    node
        The consumer, a :class:`~delassus_ros.sim.soak_node.SoakNode`.
    other
        Algorithm to exchange with the one that the node begins with; empty to do nothing.

    Attributes
    ----------
    count
        Changes that were seen.
    marks
        When counting began, and when each :data:`STRETCH` changes more were seen, ns.
    refusal
        Why the node refused a change; empty if it did not.
    """

    def __init__(self, node: Any, other: str) -> None:
        self.restart()
        self.refusal = ""
        self._node = node
        self._names = ("", other)
        self._wanted = ""
        self._answer: Any = None

    def restart(self) -> None:
        """Count from here on."""
        self.count = 0
        self.marks = [time.time_ns()]

    def look(self) -> None:
        """Go on with the next change, if the last one has come about."""
        present = self._node.algorithm
        if not self._names[1] or not present or (self._answer and not self._answer.done()):
            return
        if self._answer is not None:
            (result,) = self._answer.result().results
            self.refusal = self.refusal or result.reason
            self._answer = None
        if not self._wanted:
            if present == self._names[1]:
                self.refusal = f"it computes with {present!r} already"
                return
            self._names = (present, self._names[1])
        elif present != self._wanted:
            return
        else:
            self.count += 1
            if self.count % STRETCH == 0:
                self.marks.append(time.time_ns())
        self._wanted = self._names[0] if present != self._names[0] else self._names[1]
        self._answer = self._node.set_algorithm(self._wanted)
