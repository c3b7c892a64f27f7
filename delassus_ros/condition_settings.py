"""How matrices are judged and damped: thresholds, hysteresis, and what may be added."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from delassus_ros.arguments import count, instance, number
from delassus_ros.errors import InputError
from delassus_ros.structural_rank import RANK_TOLERANCE


class Damping(IntEnum):
    """What may be added to a matrix; the values of ``DelassusMatrix.damping_mode``."""

    NONE = 0
    UNIFORM = 1
    """The same amount on the whole diagonal."""
    SELECTIVE = 2
    """Weak eigendirections of the scaled matrix are raised, the others left as they are."""


@dataclass(frozen=True)
class ConditionSettings:
    """How matrices are judged and damped.

    Attributes
    ----------
    characteristic_length : weighs angular against linear rows [m]: half a foot's length, say.
    weak, singular : condition numbers from which on a matrix is WEAK and SINGULAR.
    hysteresis : a matrix gets better again only below a threshold divided by this.
    damping : what may be added.
    damping_ratio : amount of uniform damping, and the smallest eigenvalue that selective
        damping leaves, both as a fraction of the largest eigenvalue.
    refresh_every : the eigenvectors for the estimate are renewed after so many matrices.

    Raises
    ------
    InputError
        For what is no number, values out of range, thresholds out of order, or a damping that is
        no :class:`Damping`.
    """

    characteristic_length: float = 0.1
    weak: float = 1e4
    singular: float = 1e6
    hysteresis: float = 2.0
    damping: Damping = Damping.NONE
    damping_ratio: float = 1e-4
    refresh_every: int = 8

    def __post_init__(self) -> None:
        ranges = {
            "characteristic_length": (0.0, np.inf),
            "weak": (1.0, np.inf),
            "singular": (1.0, 1.0 / RANK_TOLERANCE),
            "damping_ratio": (0.0, 1.0),
        }
        for name in (*ranges, "hysteresis"):
            object.__setattr__(self, name, number(name, getattr(self, name)))
        for name, (low, high) in ranges.items():
            value = getattr(self, name)
            if not low < value < high:
                expected = f"expected more than {low:g} and less than {high:g}"
                raise InputError(f"{name} is {value}; {expected}")
        if not 1.0 <= self.hysteresis < np.inf:
            raise InputError(f"hysteresis is {self.hysteresis}; expected a factor of at least 1")
        choices = " or ".join(f"Damping.{mode.name}" for mode in Damping)
        instance("damping", self.damping, Damping, choices, InputError)
        object.__setattr__(self, "refresh_every", count("refresh_every", self.refresh_every))
        if not self.weak < self.singular / self.hysteresis:
            raise InputError(
                f"thresholds out of order: weak is {self.weak:g}, singular {self.singular:g}; "
                f"expected weak < singular / hysteresis = {self.singular / self.hysteresis:g}"
            )
