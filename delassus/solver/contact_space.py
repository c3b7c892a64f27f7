"""Quantities derived from G for controllers: Λ, J̄, contact forces, impacts, effective masses.

All arrays refer to the active contacts, after slicing: Λ of active contacts is no block of Λ of
all contacts. Rows in 1/kg and in 1/(kg·m²) are made comparable by a characteristic length, as in
:mod:`delassus.conditioning`: computations use the scaled matrix S G S.

O. Khatib, "A unified approach for motion and force control of robot manipulators: the operational
space formulation", IEEE J. Robotics and Automation 3(1), 1987; J. Carpentier, R. Budhiraja,
N. Mansard, "Proximal and sparse resolution of constrained dynamic equations", RSS 2021.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from delassus.errors import NumericalError
from delassus.model.spatial import Array

RANK_TOLERANCE = 1e-10
"""Eigenvalues below this fraction of the largest count as zero.

The computed matrix carries an error of about 1e-16 times the condition number of the mass
matrix, which is 1e3 to 1e5 for humanoids.
"""
PROXIMAL = 1e-6
"""Weight of a proximal step, as a fraction of a bound on the largest eigenvalue."""
STEPS, _CONVERGED = 60, 1e-13
"""Largest number of proximal steps, and the relative change of forces that ends them."""
CONTRADICTION = 1e-6
"""Share of missing wanted accelerations above which rows contradict each other."""


@dataclass(frozen=True, eq=False)
class Impact:
    """Instantaneous effects of an impact at the active contacts.

    Attributes
    ----------
    velocity : (k,) contact velocities before the impact.
    velocity_change : (k,) change of the contact velocities.
    impulse : (k,) contact impulses [N·s, N·m·s].
    rates_change : (n,) change of the independent velocities.
    torque_impulse : (n,) generalised impulse, Jᵀ · impulse.
    """

    velocity: Array
    velocity_change: Array
    impulse: Array
    rates_change: Array
    torque_impulse: Array


def inertia(
    G: Array, scales: Array, damping: float, rank: Callable[[], int] | None = None
) -> Array:
    """Return Λ = G⁻¹ (k, k), symmetric.

    Parameters
    ----------
    scales : (k,) the factors S of rows.
    damping : eigenvalues of the scaled matrix below this fraction of the largest eigenvalue are
        raised to that fraction; 0 for a pseudo-inverse, which leaves out the weakest directions
        beyond the rank. In all other directions Λ grows without a bound but rounding.
    rank : returns the structural rank of these rows; called only if needed. None: directions below
        :data:`RANK_TOLERANCE` of the largest eigenvalue are left out.
    """
    scaled = G * np.outer(scales, scales)
    factor = certified_factor(scaled, max(damping, RANK_TOLERANCE))
    if factor is not None:
        half = np.linalg.inv(factor)
    else:
        eigenvalues, V = np.linalg.eigh(scaled)
        largest = eigenvalues[-1] if eigenvalues.size else 0.0
        if damping:
            roots = np.sqrt(np.maximum(eigenvalues, damping * largest))
        else:
            count = int(np.count_nonzero(eigenvalues > RANK_TOLERANCE * largest))
            if rank is not None:
                count = max(count, rank())
            least = len(G) * np.finfo(np.float64).eps * largest
            first = len(G) - count
            roots, V = np.sqrt(np.maximum(eigenvalues[first:], least)), V[:, first:]
        half = (V / roots).T
    half *= scales
    return np.asarray(half.T @ half)


def certified_factor(scaled: Array, floor: float) -> Array | None:
    """Return L with L Lᵀ = the scaled matrix if no eigenvalue is below a fraction of the largest.

    The certificate is a shifted Cholesky factorisation: S G S − floor · b · 1 is positive definite
    only if all eigenvalues are above floor · b, with b a bound on the largest eigenvalue. None
    without a certificate; the caller then needs the eigenvalues.
    """
    if not scaled.size:
        return scaled
    bound = float(np.abs(scaled).sum(axis=1).max())
    shifted = scaled.copy()
    shifted.reshape(-1)[:: len(scaled) + 1] -= floor * bound
    try:
        _cholesky(shifted)
        return _cholesky(scaled)
    except np.linalg.LinAlgError:
        return None


def forces(G: Array, scales: Array, wanted: Array, regularization: Array) -> Array:
    """Return f with (G + R) f = wanted, the rest of the contact accelerations.

    Where R is zero and rows are redundant, proximal steps f⁺ = (G + μ 1)⁻¹ (wanted + μ f) from
    zero give the smallest solution f, in scaled rows.

    Raises
    ------
    NumericalError
        If there is no solution: the rows contradict each other.
    """
    scaled = (G + np.diag(regularization)) * np.outer(scales, scales)
    right = wanted * scales
    factor = certified_factor(scaled, RANK_TOLERANCE)
    if factor is not None:
        return np.asarray(scales * _solved(factor, right))
    weight = PROXIMAL * float(np.abs(scaled).sum(axis=1).max())
    regular = _cholesky(scaled + weight * np.eye(len(scaled)))
    f, last = np.zeros(len(right)), np.inf
    for _ in range(STEPS):
        after = _solved(regular, right + weight * f)
        change = float(np.linalg.norm(after - f))
        f = after
        if is_settled(change, last, float(np.linalg.norm(f))):
            break
        last = change
    missing, size = float(np.linalg.norm(scaled @ f - right)), float(np.linalg.norm(right))
    # Of numbers that overflow nothing is known.
    if not missing <= CONTRADICTION * size < np.inf:
        raise NumericalError(
            "no contact forces give these contact accelerations: rows of redundant contacts "
            f"contradict each other, by {missing:.2g} m/s^2 of {np.linalg.norm(right):.2g}; "
            "give a regularization, or accelerations that a motion can have"
        )
    return np.asarray(scales * f)


def is_settled(change: float, last: float, size: float) -> bool:
    """Return whether proximal steps end: the last step is small, or not smaller than before.

    The latter is caused by rounding, or by contradicting rows.
    """
    return change <= _CONVERGED * size or change > 0.9 * last


def _cholesky(matrix: Array) -> Array:
    return np.asarray(np.linalg.cholesky(matrix), dtype=np.float64)


def _solved(L: Array, right: Array) -> Array:
    """Return x with L Lᵀ x = right."""
    return np.asarray(np.linalg.solve(L.T, np.linalg.solve(L, right)), dtype=np.float64)


def locked(J: Array, M: Array) -> Array:
    """Return G of a floating-base robot whose joints are locked: one rigid body (6, 6) of M."""
    half = np.linalg.solve(np.linalg.cholesky(M[:6, :6]), J[:, :6].T)
    return np.asarray(half.T @ half)
