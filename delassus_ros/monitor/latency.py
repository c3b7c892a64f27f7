"""Latencies and rates of messages, without ROS."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

_RATE_WINDOW_S = 1.0
"""Time over which messages are counted [s]."""
_SILENCE_S = 0.5
"""Time without a message after which the last message is outdated [s]."""


@dataclass(frozen=True)
class Percentiles:
    """Median, 99th and 99.9th percentile, and the largest [s]; NaN without data."""

    p50: float
    p99: float
    p999: float
    worst: float

    @classmethod
    def of(cls, times: Sequence[float] | npt.NDArray[np.float64]) -> Percentiles:
        """Return the percentiles of times [s]."""
        if not len(times):
            return cls(math.nan, math.nan, math.nan, math.nan)
        p50, p99, p999 = np.percentile(times, [50.0, 99.0, 99.9])
        return cls(float(p50), float(p99), float(p999), float(np.max(times)))

    def words(self) -> str:
        """Return the times in ms."""
        return (
            f"p50 {1e3 * self.p50:.3f}, p99 {1e3 * self.p99:.3f}, p99.9 {1e3 * self.p999:.3f}, "
            f"max {1e3 * self.worst:.2f} ms"
        )


class MessageRate:
    """Present rate of messages, and time since the last one."""

    def __init__(self) -> None:
        self._counts: deque[tuple[float, int]] = deque()
        self._count = 0
        self._last = self._now = self._gap = 0.0

    def update(self, now: float, count: int) -> None:
        """Note the number of messages so far, at the present time [s]."""
        while not self._count and len(self._counts) > 1:
            # The time until the first message is that of discovery.
            self._counts.popleft()
        if count > self._count:
            self._gap = now - self._last if self._count else 0.0
            self._last = now
        self._count, self._now = count, now
        self._counts.append((now, count))
        while len(self._counts) > 2 and now - self._counts[1][0] >= _RATE_WINDOW_S:
            self._counts.popleft()

    @property
    def rate(self) -> float:
        """Messages per second over the last 1 s [1/s]."""
        begin, before = self._counts[0]
        return (self._count - before) / (self._now - begin) if self._now > begin else 0.0

    @property
    def silence(self) -> float:
        """Time since the last message [s]."""
        return self._now - self._last

    @property
    def has_stopped(self) -> bool:
        """Whether the last message is outdated."""
        return self.silence >= max(_SILENCE_S, 3.0 * self._gap)
