"""Histograms of times that never grow: from a microsecond to half a minute, to 2 %."""

from __future__ import annotations

from array import array
from math import log2

_SHORTEST = 1e-6  # s
_PER_OCTAVE = 16
_OCTAVES = 25
_BINS = _PER_OCTAVE * _OCTAVES
_LOG_SHORTEST = log2(_SHORTEST)


class Histogram:
    """How often which time was seen.

    The bins are a sixteenth of an octave wide, 4.4 %; what is shorter than 1 µs or longer than
    34 s is in the first or last one. Adding makes no object that stays.

    Attributes
    ----------
    count : number of times added.
    total : their sum [s].
    largest : the longest [s]; 0 without any.
    """

    def __init__(self) -> None:
        self._bins = array("Q", bytes(8 * _BINS))
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self.count = 0
        self.total = 0.0
        self.largest = 0.0
        for i in range(_BINS):
            self._bins[i] = 0

    def add(self, seconds: float) -> None:
        """Add a time; negative ones count as 0, NaN is passed over."""
        if seconds > _SHORTEST:
            at = (
                int((log2(seconds) - _LOG_SHORTEST) * _PER_OCTAVE) if seconds < 30.0 else _BINS - 1
            )
            if seconds > self.largest:
                self.largest = seconds
            self.total += seconds
        elif seconds <= _SHORTEST:
            at = 0
            if seconds > 0.0:
                self.total += seconds
                self.largest = max(self.largest, seconds)
        else:
            return
        self._bins[at] += 1
        self.count += 1

    def quantile(self, fraction: float) -> float:
        """Return the time [s] that this fraction of the times does not exceed, within 2.2 %.

        NaN without any time; the largest time itself for the fraction 1.
        """
        if not self.count:
            return float("nan")
        needed = fraction * self.count
        if needed >= self.count:
            return self.largest
        seen = 0
        for at, number in enumerate(self._bins):
            seen += number
            if seen >= needed and seen:
                # The middle of the bin, on the logarithmic scale.
                return min(_SHORTEST * float(2.0 ** ((at + 0.5) / _PER_OCTAVE)), self.largest)
        return self.largest

    @property
    def mean(self) -> float:
        """Mean of the times [s]; NaN without any."""
        return self.total / self.count if self.count else float("nan")
