"""Statistics of prediction errors while a node runs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


class Books:
    """Errors of predicted forces, by the state of the contact.

    Parameters
    ----------
    feet : names of the feet.

    Attributes
    ----------
    instants : how many were compared.
    worst : largest error of a foot's force so far, N.
    """

    def __init__(self, feet: Sequence[str]) -> None:
        self.instants = 0
        self.worst = 0.0
        self._feet = tuple(feet)
        # Per state: how many, largest, sum of squares.
        self._sums: dict[str, tuple[int, float, float]] = {}
        self._last = np.zeros((2, len(self._feet), 3))

    def add(self, states: Sequence[str], predicted: FloatArray, simulated: FloatArray) -> None:
        """Compare the forces of an instant, both (k, 3), N; `states` has one word per foot."""
        self.instants += 1
        self._last = np.array([predicted, simulated])
        errors = np.linalg.norm(predicted - simulated, axis=1).tolist()
        self.worst = max(self.worst, *errors)
        for state, error in zip(states, errors, strict=True):
            count, largest, squares = self._sums.get(state, (0, 0.0, 0.0))
            self._sums[state] = count + 1, max(largest, error), squares + error * error

    def line(self) -> str:
        """Return the normal forces of the last instant, predicted and simulated."""
        predicted, simulated = self._last[:, :, 2]
        pairs = [
            f"{foot} {p:6.2f} {s:6.2f}"
            for foot, p, s in zip(self._feet, predicted, simulated, strict=True)
        ]
        return f"predicted, simulated [N]: {' | '.join(pairs)} | worst error {self.worst:.2g}"

    def summary(self) -> list[str]:
        """Return number, largest and root mean square of the errors per state, in words."""
        lines = [f"{self.instants} instants compared"]
        for state, (count, largest, squares) in sorted(self._sums.items()):
            rms = math.sqrt(squares / count)
            lines.append(f"{state}: {count} forces, worst error {largest:.2g} N, rms {rms:.2g} N")
        return lines
