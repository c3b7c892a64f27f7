"""Whether the measurements of an instant agree as well as their deviations say.

Two tests of least squares. The sum of squared residuals is χ² distributed with as many freedoms
as there are redundant measurements. The residual of one measurement has the variance σ² − σ̂²,
where σ̂² is the variance of the estimate of the same quantity: divided by its root it is normal,
which shows a single sensor that contradicts, also one that the estimate follows closely
(W. Baarda, "A testing procedure for use in geodetic networks", 1968). Knows no ROS.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from delassus_ros.estimator.settings import EstimatorSettings
from delassus_ros.measured import (
    Accelerometer,
    ExternalWrench,
    JointAcceleration,
    JointTorque,
    SparseDynamics,
)
from delassus_ros.measured.quantities import Quantity
from delassus_ros.model.spatial import Array
from delassus_ros.node.reasons import InputWarning, Reason

_LARGEST = 6.0
"""Largest residual of one measurement, in its standard deviations: 1 in 5e8 is beyond."""
_QUANTILE = 4.753
"""Normal deviate that 1 in a million is beyond, for the sum of squared residuals."""
_LEAST_SHARE = 1e-9
"""Least σ² − σ̂² in units of σ²: below, nothing else tells the quantity."""


class Consistency:
    """Judges estimates by their residuals.

    Parameters
    ----------
    system : its wanted quantities are those whose measurements are tested one by one; it computes
        covariances.
    settings : name the sensors.
    """

    def __init__(self, system: SparseDynamics, settings: EstimatorSettings) -> None:
        self._system, self._settings = system, settings
        variances = _variances(system)
        tested = [
            (quantity, place, variances[quantity, row], sigma)
            for quantity, places, sigma in self._measured()
            for place, row in zip(places, _rows_of(quantity), strict=False)
            if (quantity, row) in variances
        ]
        self._tested = [quantity for quantity, *_ in tested]
        self._at = np.array([place for _, place, *_ in tested], dtype=np.intp)
        self._variances_at = np.array([each for *_, each, _ in tested], dtype=np.intp)
        self._scale = np.array([sigma**-2 for *_, sigma in tested])
        r = system.redundant
        # E. Wilson, M. Hilferty, "The distribution of chi-square", 1931.
        share = 2.0 / (9.0 * r) if r else 0.0
        self._most = r * (1.0 - share + _QUANTILE * math.sqrt(share)) ** 3

    def warning(self, numbers: Array) -> InputWarning | None:
        """Return what contradicts the other measurements, or None.

        Parameters
        ----------
        numbers : as :meth:`~delassus_ros.measured.SparseDynamics.solve_flat` returns them.
        """
        squared = numbers[self._system.squared_at]
        if not self._system.redundant or squared <= _LARGEST**2 < self._most:
            return None
        residuals = np.abs(numbers[self._at])
        share = 1.0 - numbers[self._variances_at] * self._scale
        residuals /= np.sqrt(np.maximum(share, _LEAST_SHARE))
        residuals[share < _LEAST_SHARE] = 0.0
        largest = int(residuals.argmax()) if len(residuals) else -1
        if largest >= 0 and residuals[largest] > _LARGEST:
            what, size = self._tested[largest], residuals[largest]
        elif squared > self._most:
            what, size = self._least_fitting(numbers)
        else:
            return None
        return InputWarning(
            Reason.SENSORS_CONTRADICT,
            f"{self._words(what)} contradicts the other measurements by {size:.3g} standard "
            f"deviations; the squared residuals are {squared:.4g}, expected about "
            f"{self._system.redundant}",
        )

    def _least_fitting(self, numbers: Array) -> tuple[Quantity, float]:
        """Return the measurement with the largest residual, and that in deviations."""
        places = self._system.residuals_at.items()
        found = {quantity: float(np.abs(numbers[at]).max()) for quantity, at in places}
        what = max(found, key=found.__getitem__)
        return what, found[what]

    def _measured(self) -> Iterator[tuple[Quantity, range, float]]:
        """Yield what is measured with a deviation, where its residuals are, and the deviation."""
        for known in self._system.known:
            place = self._system.residuals_at.get(known.quantity)
            if place is not None:
                yield known.quantity, range(place.start, place.stop), known.sigma

    def _words(self, quantity: Quantity) -> str:
        """Return the source of a measured quantity in words."""
        match quantity:
            case ExternalWrench(frame=frame):
                pushed = next(each for each in self._settings.pushed if each.frame == frame)
                return f"the sensor of {pushed.name}"
            case Accelerometer():
                return "the inertial sensor"
            case JointTorque(joint=joint):
                return f"the effort of joint {joint!r}"
            case JointAcceleration(joint=joint):
                return f"the acceleration of joint {joint!r}, by its velocities,"
        return str(quantity)


def _rows_of(quantity: Quantity) -> tuple[int, ...]:
    return tuple(getattr(quantity, "rows", range(6)))


def _variances(system: SparseDynamics) -> dict[tuple[Quantity, int], int]:
    """Return where the variance of each number of a measured and wanted quantity is.

    Parameters
    ----------
    system : returns covariances.

    Returns
    -------
    Index by measured quantity and row.
    """
    found: dict[tuple[Quantity, int], int] = {}
    first = sum(system.sizes.values())
    for wanted, size in system.sizes.items():
        for known in system.known:
            frame = getattr(wanted, "frame", None)
            same = isinstance(known.quantity, ExternalWrench) and known.quantity.frame == frame
            if known.quantity == wanted or (same and isinstance(wanted, ExternalWrench)):
                # Of a lower triangle by rows the diagonal.
                for row in range(size):
                    found[known.quantity, row] = first + row * (row + 3) // 2
        first += size * (size + 1) // 2
    return found
