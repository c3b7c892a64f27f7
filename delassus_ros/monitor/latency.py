"""Percentiles of times from a stamp to an arrival, without ROS."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


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
