"""Clocks that do not go on evenly: the steps of simulated time, a system clock that is set back.

Knows no ROS.
"""

from __future__ import annotations

import time
from collections import deque

LONGEST = 1_000_000_000  # ns
"""A longer advance is a jump (e.g. to the simulation's start time), not a step."""
_REMEMBERED = 16
_SLEW = 10_000_000  # ns; what synchronisation does bit by bit is no step


class ClockSteps:
    """The steps of the node's clock.

    Simulated time stands still from one message on /clock to the next. Stamps that a simulation
    takes meanwhile are ahead of it by up to a step, with nothing wrong.

    Parameters
    ----------
    simulated : whether the node's clock follows /clock.

    Attributes
    ----------
    simulated : as given.
    longest : of the last few [ns]; 0 if time is not simulated, and as long as a step can be where
        none has been seen yet.
    """

    def __init__(self, simulated: bool) -> None:
        self.simulated = simulated
        self.longest = LONGEST if simulated else 0
        self._recent: deque[int] = deque(maxlen=_REMEMBERED)

    def add(self, step: int) -> None:
        """Take the next step [ns]."""
        if 0 < step <= LONGEST:
            self._recent.append(step)
            self.longest = max(self._recent)


class SystemClock:
    """Notices that the machine's clock was set back, of which ROS tells nobody."""

    def __init__(self) -> None:
        self._offset = time.time_ns() - time.monotonic_ns()

    def set_back(self) -> int:
        """Return by how much it was since the last call [ns]; 0 if it was not, or hardly."""
        offset = time.time_ns() - time.monotonic_ns()
        before, self._offset = self._offset, offset
        return before - offset if before - offset > _SLEW else 0


def ahead_of_clock(ahead: float, step: int) -> str:
    """Return the words for a stamp that is further ahead of the node's clock than it may be.

    Parameters
    ----------
    ahead : how far [s].
    step : :attr:`ClockSteps.longest`.
    """
    if step:
        return (
            f"{ahead:.4g} s ahead of /clock, which goes on by up to {1e-9 * step:.3g} s at once: "
            "who publishes them goes by another clock (check its use_sim_time), or /clock is late"
        )
    return (
        f"{ahead:.4g} s ahead of this node's clock: synchronise the clocks of the two hosts, or "
        "check use_sim_time"
    )
