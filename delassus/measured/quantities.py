"""Quantities of a robot's dynamics, measured or wanted, and the accuracy of measurements.

F. Nori, "Inverse, forward and other dynamic computations computationally optimized with sparse
matrix factorizations", measures accelerations and external wrenches (8), torques (15) and parts of
the wrenches on two feet (19); wrenches here are linear first, as the rest of the API.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from delassus.arguments import number, whole
from delassus.errors import InputError

WRENCH_ROWS = ("force x", "force y", "force z", "moment x", "moment y", "moment z")
"""Components of a wrench on a frame, along the frame's axes, linear first [N, N m]."""
ALL = tuple(range(len(WRENCH_ROWS)))


@dataclass(frozen=True)
class JointTorque:
    """Torques of a joint with independent rates (nv,) [N m, N]; of a base, the base's wrench."""

    joint: str


@dataclass(frozen=True)
class JointAcceleration:
    """Accelerations of a joint with independent rates (nv,) [rad/s², m/s²]."""

    joint: str


@dataclass(frozen=True)
class ExternalWrench:
    """Components of the external wrench on a frame, along the frame's axes [N, N m].

    Attributes
    ----------
    frame : name of the frame.
    rows : indices in :data:`WRENCH_ROWS`; all other components are unknown.
    """

    frame: str
    rows: Sequence[int] = ALL

    def __post_init__(self) -> None:
        """Check the rows.

        Raises
        ------
        InputError
            If no row is named, or a row is unknown or named twice.
        """
        rows = _checked_rows(self.rows, f"the wrench on {self.frame!r}")
        object.__setattr__(self, "rows", rows)


@dataclass(frozen=True)
class Accelerometer:
    """Reading of an accelerometer in a frame: acceleration less gravity (3,) [m/s²]."""

    frame: str


@dataclass(frozen=True)
class ForceTorqueSensor:
    """Wrench that a joint transmits to the link it moves, linear first [N, N m].

    The reading of a sensor between the joint and the link, at the origin and along the axes of a
    frame that is fixed to this link.

    Attributes
    ----------
    frame : name of the frame; the sensor is at the joint of the frame's body.
    rows : indices in :data:`WRENCH_ROWS`.
    """

    frame: str
    rows: Sequence[int] = ALL

    def __post_init__(self) -> None:
        """Check the rows, as those of a wrench."""
        object.__setattr__(self, "rows", _checked_rows(self.rows, f"the sensor {self.frame!r}"))


@dataclass(frozen=True)
class Resting:
    """Spatial acceleration of a frame, zero for a frame that rests on the ground.

    The wrench that holds the frame is unknown, except measured components.

    Attributes
    ----------
    frame : name of the frame.
    rows : components that rest, linear first; three for a point that is held.
    """

    frame: str
    rows: Sequence[int] = ALL

    def __post_init__(self) -> None:
        """Check the rows, as those of a wrench."""
        object.__setattr__(self, "rows", _checked_rows(self.rows, f"{self.frame!r} at rest"))


Quantity = (
    JointTorque | JointAcceleration | ExternalWrench | ForceTorqueSensor | Accelerometer | Resting
)
"""Any quantity of this module."""


@dataclass(frozen=True)
class Measurement:
    """A quantity that is known.

    Attributes
    ----------
    quantity : the measured quantity.
    sigma : standard deviation of the quantity's numbers, in their units; 0 is exact.
    value : constant value of all numbers of the quantity, as 0 for a resting frame; constant
        values are not passed to ``solve``.
    """

    quantity: Quantity
    sigma: float = 0.0
    value: float | None = None

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises
        ------
        InputError
            If sigma is negative or not finite, or the value is not finite, or either no number.
        """
        # As plain numbers, whose text is part of the key of compiled code.
        for name in ("sigma", "value"):
            given = getattr(self, name)
            if given is None and name == "value":
                continue
            found = number(f"{name} of {self.quantity}", given)
            if not math.isfinite(found) or (name == "sigma" and found < 0.0):
                expected = "a finite number" + (", 0 or more" if name == "sigma" else "")
                raise InputError(f"{name} of {self.quantity} is {found}; expected {expected}")
            object.__setattr__(self, name, found)


def _checked_rows(rows: Sequence[int], what: str) -> tuple[int, ...]:
    found = tuple(whole(f"a row of {what}", row, "a number of 0 to 5") for row in rows)
    if not found or len(set(found)) < len(found) or set(found) - set(ALL):
        raise InputError(
            f"rows of {what} are {list(found)}; expected different numbers of 0 to 5: "
            f"{', '.join(WRENCH_ROWS)}"
        )
    return found
