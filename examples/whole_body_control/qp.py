"""Contact forces and joint torques from tasks: a quadratic program, in two forms.

Every task is a contact: the trunk with six rows, each foot with three, all along the axes of the
world. The matrix G of all of them, their free accelerations a0 and B = J M⁻¹ Sᵀ, which is part of
M⁻¹ Jᵀ, say all there is to say about torques τ and forces f of the feet that stand:

    a = a0 + G f + B τ                                                    (1)

The feet are to accelerate as wanted (zero for those that stand), which fixes τ for given f; what
is left to choose are the m forces: for the trunk's acceleration, small forces, the cones of
friction and the limits of the drives, which give way where nothing else is left, by one number
more. That is the reduced form. The full form chooses accelerations ẏ̇, forces and torques at a
time, under M ẏ̇ + h = Sᵀ τ + Jᵀ f and J ẏ̇ + J̇ ẏ = a; it has the same minimum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from control.program import least

Array = npt.NDArray[np.float64]
BASE = 6
"""Rows of the trunk, which come first, and velocities of the base."""
FOOT = 3


@dataclass(frozen=True)
class Weights:
    """Weights of the program, and bounds of forces.

    Attributes
    ----------
    trunk : of the error of the trunk's acceleration (6,), linear first.
    force : of the difference of a force from its share of the weight [1/N²].
    friction : half of the cone's width over its height; the cone is a pyramid inside of it.
    least, most : of the normal force of a foot that stands [N].
    """

    trunk: Array = field(default_factory=lambda: np.array([1.0, 1.0, 2.0, 2.0, 2.0, 1.0]))
    force: float = 1e-4
    friction: float = 0.5
    least: float = 3.0
    most: float = 200.0


@dataclass(frozen=True)
class Wanted:
    """Targets of the program at an instant.

    Attributes
    ----------
    trunk : acceleration of the trunk (6,) [m/s², rad/s²].
    feet : accelerations of the feet (k, 3) [m/s²].
    stands : which of them stand (k,).
    share : normal force that each would have at rest [N].
    limits : largest torques (n,) [N m].
    """

    trunk: Array
    feet: Array
    stands: Sequence[bool]
    share: float
    limits: Array


@dataclass(frozen=True)
class Solved:
    """Torques (n,), forces of all feet (k, 3), the trunk's acceleration (6,)."""

    torques: Array
    forces: Array
    trunk: Array


def reduced(
    G: Array, a0: Array, B: Array, wanted: Wanted, weights: Weights, solver: str = "daqp"
) -> Solved:
    """Solve for the forces of the feet that stand.

    Parameters
    ----------
    G : (6 + 3k, 6 + 3k), of trunk and feet.
    a0 : (6 + 3k,), with no torques.
    B : (6 + 3k, n), accelerations of unit torques: rows of (M⁻¹ Jᵀ)ᵀ at the joints.

    Raises
    ------
    UnsolvedError
        If the solver fails.
    """
    rows = _standing(wanted)
    feet = slice(BASE, None)
    # (1) for the feet: τ = base + slope f.
    right = np.column_stack([wanted.feet.ravel() - a0[feet], -G[feet][:, rows]])
    both = np.asarray(np.linalg.solve(B[feet], right), dtype=np.float64)
    base, slope = both[:, 0], both[:, 1:]
    A = G[:BASE][:, rows] + B[:BASE] @ slope
    c = a0[:BASE] + B[:BASE] @ base
    W = weights.trunk
    shares = _shares(wanted)
    P = A.T @ (W[:, np.newaxis] * A) + weights.force * np.eye(len(rows))
    p = A.T @ (W * (c - wanted.trunk)) - weights.force * shares
    cone, bound = _cone(wanted, weights)
    f = least(P, p, cone, bound, slope, base, wanted.limits, None, None, solver)
    return Solved(base + slope @ f, _of_all(wanted, f), A @ f + c)


def full(
    M: Array,
    h: Array,
    J: Array,
    JdotV: Array,
    wanted: Wanted,
    weights: Weights,
    solver: str = "daqp",
) -> Solved:
    """Solve for accelerations, forces and torques at a time.

    Parameters
    ----------
    M, h : (n + 6, n + 6) and (n + 6,), of base and joints.
    J, JdotV : (6 + 3k, n + 6) and (6 + 3k,), of trunk and feet.

    Raises
    ------
    UnsolvedError
        If the solver fails.
    """
    rows = _standing(wanted)
    v, m, n = len(h), len(rows), len(h) - BASE
    W, J_trunk = weights.trunk, J[:BASE]
    P = np.zeros((v + m + n, v + m + n))
    P[:v, :v] = J_trunk.T @ (W[:, np.newaxis] * J_trunk)
    P[v : v + m, v : v + m] = weights.force * np.eye(m)
    p = np.zeros(v + m + n)
    p[:v] = J_trunk.T @ (W * (JdotV[:BASE] - wanted.trunk))
    p[v : v + m] = -weights.force * _shares(wanted)
    S = np.hstack([np.zeros((n, BASE)), np.eye(n)])
    equal = np.block([[M, -J[rows].T, -S.T], [J[BASE:], np.zeros((len(J) - BASE, m + n))]])
    cone, bound = _cone(wanted, weights)
    inside = np.zeros((len(cone), v + m + n))
    inside[:, v : v + m] = cone
    right = np.concatenate([-h, wanted.feet.ravel() - JdotV[BASE:]])
    torques = np.eye(v + m + n)[v + m :]
    x = least(P, p, inside, bound, torques, np.zeros(n), wanted.limits, equal, right, solver)
    trunk = J_trunk @ x[:v] + JdotV[:BASE]
    return Solved(x[v + m :], _of_all(wanted, x[v : v + m]), trunk)


def _standing(wanted: Wanted) -> list[int]:
    """Return the rows of the feet that stand."""
    feet = [k for k, stands in enumerate(wanted.stands) if stands]
    return [BASE + FOOT * k + axis for k in feet for axis in range(FOOT)]


def _shares(wanted: Wanted) -> Array:
    return np.tile([0.0, 0.0, wanted.share], sum(map(bool, wanted.stands)))


def _of_all(wanted: Wanted, f: Array) -> Array:
    """Return the forces of all feet; of those in the air they are zero."""
    forces = np.zeros((len(wanted.stands), FOOT))
    forces[np.asarray(wanted.stands, dtype=bool)] = f.reshape(-1, FOOT)
    return forces


def _cone(wanted: Wanted, weights: Weights) -> tuple[Array, Array]:
    """Return C and c with C f <= c for forces inside of pyramids, and within bounds."""
    count = sum(map(bool, wanted.stands))
    return _pyramids(count, weights.friction, weights.least, weights.most)


@lru_cache(maxsize=16)
def _pyramids(count: int, friction: float, least: float, most: float) -> tuple[Array, Array]:
    mu = friction / np.sqrt(2.0)
    one = np.array([[1, 0, -mu], [-1, 0, -mu], [0, 1, -mu], [0, -1, -mu], [0, 0, 1], [0, 0, -1]])
    bound = np.array([0.0, 0.0, 0.0, 0.0, most, -least])
    return np.kron(np.eye(count), one), np.tile(bound, count)
