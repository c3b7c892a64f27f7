"""Accelerations by finite differences of the rates between joint states."""

from __future__ import annotations

from collections import deque

import numpy as np

from delassus.model.spatial import Array

LONGEST_PAUSE = 0.1
"""Longest time between joint states whose rates are compared [s]."""


class RateChange:
    """Change of the rates over a time window of at least two consecutive joint states.

    Parameters
    ----------
    window : length of the window [s].

    Attributes
    ----------
    span : time between the rates compared last [s]; 0 with only one instant.
    """

    def __init__(self, window: float = 0.0) -> None:
        self._window = max(1, round(1e9 * window))
        self._past: deque[tuple[int, Array]] = deque()
        self.span = 0.0

    def reset(self) -> None:
        """Drop the rates of all instants."""
        self._past.clear()
        self.span = 0.0

    def add(self, stamp: int, rates: Array) -> Array | None:
        """Add the rates of an instant.

        Parameters
        ----------
        stamp : stamp of the joint state [ns]. An equal stamp replaces the last rates; an earlier
            stamp, as after a clock reset, starts a new window.
        rates : (n,).

        Returns
        -------
        ndarray or None
            The difference quotient (n,); None while the rates do not reach back over the window,
            and after a pause of more than :data:`LONGEST_PAUSE`.
        """
        past = self._past
        if past and stamp == past[-1][0]:
            # Repeated stamps occur in a simulation that waits for commands.
            past.pop()
        elif past and stamp < past[-1][0]:
            past.clear()
        past.append((stamp, rates.copy()))
        while len(past) > 2 and stamp - past[1][0] >= self._window:
            past.popleft()
        first, before = past[0]
        self.span = 1e-9 * (stamp - first)
        if not self._window <= stamp - first <= self._window + 1e9 * LONGEST_PAUSE:
            return None
        return np.asarray((rates - before) / self.span)
