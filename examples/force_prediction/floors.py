"""Models of the floor's contact accelerations: a rigid floor, and MuJoCo's soft floor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from force_prediction.touch import Touch

FloatArray = npt.NDArray[np.float64]


class Floor(Protocol):
    """A law of contact: the forces make G f + R f + b as small as their cones allow."""

    def compliance(self, touch: Touch) -> float:
        """Return R, 1/kg: how much a point gives way to its force."""

    def misfit(self, touch: Touch) -> FloatArray:
        """Return b, (3,), m/s²: acceleration without forces minus the wanted one."""


@dataclass(frozen=True)
class RigidFloor:
    """A floor that does not give way: what a controller assumes of the real one.

    The velocity of a touching point has to vanish within the settling time: J q̈ + J̇ q̇ = -v / T.

    Attributes
    ----------
    settling_time : T, s. A control period for a real floor; infinite for the constraint of most
        whole-body controllers, J q̈ + J̇ q̇ = 0, which knows no landing and no slip.
    """

    settling_time: float

    def compliance(self, touch: Touch) -> float:
        """Return 0."""
        return 0.0

    def misfit(self, touch: Touch) -> FloatArray:
        """Return b, (3,), m/s²."""
        return touch.free_acceleration + touch.velocity / self.settling_time


@dataclass(frozen=True)
class MujocoFloor:
    """The floor of MuJoCo: https://mujoco.readthedocs.io/en/stable/computation/index.html.

    A critically damped spring of acceleration, a_ref = -b v - k gap, followed as far as the
    impedance d, below 1, says: R = (1 - d) / d times what the foot answers to a unit force.
    MuJoCo leaves the term J̇ q̇ out. For elliptic cones, with impratio 1.

    Attributes
    ----------
    inverse_masses : (k,) `FreeMotion.inverse_masses` of all feet, 1/kg.
    solref : time constant [s] and damping ratio; as in the simulator's model.
    solimp : impedance at no depth, at full depth, that depth [m], midpoint, power.
    """

    inverse_masses: Sequence[float] | FloatArray
    solref: tuple[float, float] = (0.02, 1.0)
    solimp: tuple[float, float, float, float, float] = (0.9, 0.95, 0.001, 0.5, 2.0)

    def compliance(self, touch: Touch) -> float:
        """Return R, 1/kg."""
        d = self.impedance(touch.gap)
        return (1.0 - d) / d * float(self.inverse_masses[touch.foot])

    def misfit(self, touch: Touch) -> FloatArray:
        """Return b, (3,), m/s²."""
        time, ratio = self.solref
        damping = 2.0 / (self.solimp[1] * time)
        stiffness = self.impedance(touch.gap) / (self.solimp[1] * time * ratio) ** 2
        wanted = -damping * touch.velocity
        wanted[2] -= stiffness * touch.gap
        return touch.free_acceleration_of_joints - wanted

    def impedance(self, gap: float) -> float:
        """Return d, which rises in two arcs from the first to the second entry of solimp."""
        least, most, width, midpoint, power = self.solimp
        x = min(abs(gap) / width, 1.0)
        if x < midpoint:
            y: float = x**power / midpoint ** (power - 1.0)
        else:
            y = 1.0 - (1.0 - x) ** power / (1.0 - midpoint) ** (power - 1.0)
        return least + y * (most - least)
