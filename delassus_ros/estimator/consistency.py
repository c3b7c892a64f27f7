"""Tests whether the measurements of an instant agree within their standard deviations.

Two tests of least squares are done. The sum of squared residuals is χ² distributed with as many
degrees of freedom as there are redundant measurements. The residual of one measurement has the
variance σ² − σ̂², where σ̂² is the variance of the estimate of the same quantity: the residual
divided by the root is normal, which shows a single contradicting sensor even if the estimate
follows that sensor closely
(W. Baarda, "A testing procedure for use in geodetic networks", 1968). Knows no ROS.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from delassus.measured import (
    Accelerometer,
    ExternalWrench,
    JointAcceleration,
    JointTorque,
    SparseDynamics,
)
from delassus.measured.quantities import Quantity
from delassus.model.spatial import Array
from delassus_ros.estimator.settings import EstimatorSettings
from delassus_ros.inputs.findings import Finding, Reason, doubtful

_LARGEST = 6.0
"""Largest residual of one measurement in standard deviations; 1 of 5e8 is larger by chance."""
_QUANTILE = 4.753
"""Normal deviate of the limit for the sum of squared residuals; 1 of 1e6 is larger by chance."""
_LEAST_SHARE = 1e-9
"""Least σ² − σ̂² in units of σ²: below, no other measurement determines the quantity."""


class Consistency:
    """Judges estimates by their residuals.

    Parameters
    ----------
    system : system that computes covariances; measurements of its wanted quantities are tested
        one by one.
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
        self._variances_at = np.array([place for *_, place, _ in tested], dtype=np.intp)
        self._scale = np.array([sigma**-2 for *_, sigma in tested])
        r = system.redundant
        # E. Wilson, M. Hilferty, "The distribution of chi-square", 1931.
        share = 2.0 / (9.0 * r) if r else 0.0
        self._most = r * (1.0 - share + _QUANTILE * math.sqrt(share)) ** 3

    def contradiction(self, numbers: Array) -> Finding | None:
        """Return a finding about the measurement that contradicts the remaining ones, or None.

        Parameters
        ----------
        numbers : result of :meth:`~delassus.measured.SparseDynamics.solve_flat`.
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
        return doubtful(
            Reason.SENSORS_CONTRADICT,
            f"{self._source_of(what)} contradicts the other measurements by {size:.3g} standard "
            f"deviations; the squared residuals are {squared:.4g}, expected about "
            f"{self._system.redundant}",
        )

    def _least_fitting(self, numbers: Array) -> tuple[Quantity, float]:
        """Return the measurement with the largest residual, and the residual in deviations."""
        places = self._system.residuals_at.items()
        found = {quantity: float(np.abs(numbers[at]).max()) for quantity, at in places}
        what = max(found, key=found.__getitem__)
        return what, found[what]

    def _measured(self) -> Iterator[tuple[Quantity, range, float]]:
        """Yield measured quantities, the places of their residuals, and their deviations."""
        for known in self._system.known:
            place = self._system.residuals_at.get(known.quantity)
            if place is not None:
                yield known.quantity, range(place.start, place.stop), known.sigma

    def _source_of(self, quantity: Quantity) -> str:
        """Return the source of a measured quantity in words."""
        match quantity:
            case ExternalWrench(frame=frame):
                pushed = next(place for place in self._settings.pushed if place.frame == frame)
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
    """Return the index of each variance of a measured and wanted quantity, by quantity and row.

    The system computes covariances.
    """
    found: dict[tuple[Quantity, int], int] = {}
    first = sum(system.sizes.values())
    for wanted, size in system.sizes.items():
        for known in system.known:
            frame = getattr(wanted, "frame", None)
            same = isinstance(known.quantity, ExternalWrench) and known.quantity.frame == frame
            if known.quantity == wanted or (same and isinstance(wanted, ExternalWrench)):
                # The diagonal of a lower triangle that is stored by rows.
                for row in range(size):
                    found[known.quantity, row] = first + row * (row + 3) // 2
        first += size * (size + 1) // 2
    return found
