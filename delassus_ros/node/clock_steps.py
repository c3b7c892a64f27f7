"""Simulated time goes on in steps: how long they are, and what is said of stamps ahead of it.

Knows no ROS.
"""

from __future__ import annotations

from collections import deque

LONGEST = 1_000_000_000  # ns
"""A longer advance is a jump (e.g. to the simulation's start time), not a step."""
_REMEMBERED = 16


class ClockSteps:
    """The steps of the node's clock.

    Simulated time stands still from one message on /clock to the next. Stamps that a simulation
    takes meanwhile are ahead of it by up to a step, with nothing wrong.

    Parameters
    ----------
    simulated : whether the node's clock follows /clock.

    Attributes
    ----------
    longest : of the last few [ns]; 0 if time is not simulated, and as long as a step can be where
        none has been seen yet.
    """

    def __init__(self, simulated: bool) -> None:
        self.longest = LONGEST if simulated else 0
        self._recent: deque[int] = deque(maxlen=_REMEMBERED)

    def add(self, step: int) -> None:
        """Take the next step [ns]."""
        if 0 < step <= LONGEST:
            self._recent.append(step)
            self.longest = max(self._recent)


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
