"""What can be known or wanted of a robot's dynamics, by name, and how well it is known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from delassus_ros.errors import InputError

WRENCH_ROWS = ("force x", "force y", "force z", "moment x", "moment y", "moment z")
"""Of a wrench on a frame, along its axes, linear first [N, N m]."""
ALL = tuple(range(len(WRENCH_ROWS)))


@dataclass(frozen=True)
class JointTorque:
    """Torques of a joint with independent rates (nv,) [N m, N]; of a base, the wrench on it."""

    joint: str


@dataclass(frozen=True)
class JointAcceleration:
    """Accelerations of a joint with independent rates (nv,) [rad/s², m/s²]."""

    joint: str


@dataclass(frozen=True)
class ExternalWrench:
    """Components of the wrench of the surroundings on a frame, along its axes [N, N m].

    Attributes
    ----------
    frame : name of the frame.
    rows : which of :data:`WRENCH_ROWS`; of those that are not known nothing is supposed.
    """

    frame: str
    rows: Sequence[int] = ALL

    def __post_init__(self) -> None:
        """Check the rows.

        Raises
        ------
        InputError
            If there are none, or one is unknown or named twice.
        """
        rows = _checked_rows(self.rows, f"the wrench on {self.frame!r}")
        object.__setattr__(self, "rows", rows)


@dataclass(frozen=True)
class Accelerometer:
    """What an accelerometer in a frame measures: acceleration less gravity (3,) [m/s²]."""

    frame: str


@dataclass(frozen=True)
class ForceTorqueSensor:
    """Wrench that a joint transmits to the link it moves, linear first [N, N m].

    That of a sensor between the joint and the link, at the origin and along the axes of a frame
    that is fixed to this link.

    Attributes
    ----------
    frame : name of the frame; its body's joint is the one that is meant.
    rows : which of :data:`WRENCH_ROWS`.
    """

    frame: str
    rows: Sequence[int] = ALL

    def __post_init__(self) -> None:
        """Check the rows, as those of a wrench."""
        object.__setattr__(self, "rows", _checked_rows(self.rows, f"the sensor {self.frame!r}"))


@dataclass(frozen=True)
class Resting:
    """Spatial acceleration of a frame, zero where it rests on what does not move.

    The wrench that holds it is unknown, but for components that are measured beside it.

    Attributes
    ----------
    frame : name of the frame.
    rows : components that rest, linear first: three of a point that is held.
    """

    frame: str
    rows: Sequence[int] = ALL

    def __post_init__(self) -> None:
        """Check the rows, as those of a wrench."""
        object.__setattr__(self, "rows", _checked_rows(self.rows, f"{self.frame!r} at rest"))


Quantity = (
    JointTorque | JointAcceleration | ExternalWrench | ForceTorqueSensor | Accelerometer | Resting
)
"""Any of them."""


@dataclass(frozen=True)
class Measurement:
    """A quantity that is known.

    Attributes
    ----------
    quantity : what it is of.
    sigma : standard deviation of each of its numbers, in their units; 0 is exact.
    value : of all of its numbers where it is always the same, as zero of what rests; it is then
        not given again when it is solved.
    """

    quantity: Quantity
    sigma: float = 0.0
    value: float | None = None

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises
        ------
        InputError
            If it is negative or not finite, or the value is not finite.
        """
        if not 0.0 <= self.sigma < math.inf:
            raise InputError(
                f"sigma of {self.quantity} is {self.sigma}; expected a finite number, 0 or more"
            )
        if self.value is not None and not math.isfinite(self.value):
            raise InputError(f"value of {self.quantity} is {self.value}; expected a finite number")


def _checked_rows(rows: Sequence[int], what: str) -> tuple[int, ...]:
    found = tuple(rows)
    if not found or len(set(found)) < len(found) or set(found) - set(ALL):
        raise InputError(
            f"rows of {what} are {list(found)}; expected different numbers of 0 to 5: "
            f"{', '.join(WRENCH_ROWS)}"
        )
    return found
