"""The two differentials of the Tello humanoid: constraints that are given as functions.

Published by its makers with "Recursive Rigid-Body Dynamics Algorithms for Systems with Kinematic
Loops" (M. Chignoli, N. Adrian, S. Kim, P. Wensing): two motors move two joints each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from delassus.model.constraints import FunctionConstraint
from delassus.scalars.functions import sincos


def differential(name: str, joints: tuple[str, ...]) -> FunctionConstraint:
    """Return the constraint of a differential.

    Parameters
    ----------
    name : contains ``hip`` for the hip's differential, else that of knee and ankle.
    joints : the two rotors and the two links that they move.
    """
    function = hip_differential if "hip" in name else knee_ankle_differential
    return FunctionConstraint(name, joints, function, 2)


def hip_differential(q: Sequence[Any]) -> list[Any]:
    """Return the gaps of the two push rods of Tello's hip, published by its makers."""
    (s1, c1), (s2, c2) = (sincos(rotor * (1.0 / 6.0)) for rotor in q[:2])
    (sx, cx), (sy, cy) = (sincos(link) for link in q[2:])
    both = 3021.0 / 160000.0 - 49.0 / 5000.0 * cx - 57.0 / 2500.0 * cx * sy
    return [
        both + 57.0 / 2500.0 * s1 - 399.0 / 20000.0 * sx - 8.0 / 625.0 * c1 * cy
        - 7.0 / 625.0 * s1 * sx + 7.0 / 625.0 * sx * sy - 8.0 / 625.0 * cx * s1 * sy,
        both + 57.0 / 2500.0 * s2 + 399.0 / 20000.0 * sx - 8.0 / 625.0 * c2 * cy
        + 7.0 / 625.0 * s2 * sx - 7.0 / 625.0 * sx * sy - 8.0 / 625.0 * cx * s2 * sy,
    ]  # fmt: skip


def knee_ankle_differential(q: Sequence[Any]) -> list[Any]:
    """Return the gap of Tello's ankle linkage, and of the sum that moves the knee."""
    pi = 3.1415926535897932
    half = (q[0] - q[1]) / 12.0
    (_, a), (_, b) = sincos(half + 1979.0 * pi / 4500.0), sincos(half + 493.0 * pi / 1500.0)
    d, e = sincos(half + q[3] + 231.0 * pi / 500.0)[0], sincos(q[3] + 2.0 * pi / 15.0)[0]
    f, g = sincos(q[3] + pi / 45.0)[0], sincos(pi / 9.0)[1]
    return [
        21.0 / 6250.0 * a - 13.0 / 625.0 * b - 273.0 / 12500.0 * g - 7.0 / 2500.0 * d
        + 91.0 / 5000.0 * e - 147.0 / 50000.0 * f + 163349.0 / 6250000.0,
        q[2] - (q[0] + q[1]) / 12.0,
    ]  # fmt: skip
