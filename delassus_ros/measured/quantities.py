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
        object.__setattr__(self, "rows", tuple(self.rows))
        if not self.rows or len(set(self.rows)) < len(self.rows) or set(self.rows) - set(ALL):
            raise InputError(
                f"rows of the wrench on {self.frame!r} are {list(self.rows)}; expected different "
                f"numbers of 0 to 5: {', '.join(WRENCH_ROWS)}"
            )


@dataclass(frozen=True)
class Accelerometer:
    """What an accelerometer in a frame measures: acceleration less gravity (3,) [m/s²]."""

    frame: str


@dataclass(frozen=True)
class Resting:
    """Spatial acceleration of a frame (6,), zero where it rests on what does not move."""

    frame: str


Quantity = JointTorque | JointAcceleration | ExternalWrench | Accelerometer | Resting
"""Any of them."""


@dataclass(frozen=True)
class Measurement:
    """A quantity that is known.

    Attributes
    ----------
    quantity : what it is of.
    sigma : standard deviation of each of its numbers, in their units; 0 is exact.
    """

    quantity: Quantity
    sigma: float = 0.0

    def __post_init__(self) -> None:
        """Check the deviation.

        Raises
        ------
        InputError
            If it is negative or not finite.
        """
        if not 0.0 <= self.sigma < math.inf:
            raise InputError(
                f"sigma of {self.quantity} is {self.sigma}; expected a finite number, 0 or more"
            )
