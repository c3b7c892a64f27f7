"""Constrained forward dynamics of a bound solver, in the subset of Python that is compiled.

(G + R) f = a − a⁰ is solved by G + R = Uᵀ U; M⁻¹Jᵀ f is added to the free accelerations. The
code has loops, as the active contacts change. The factorisation inverts the diagonal and ends at a
small pivot; with `cholesky` of :mod:`delassus.contact_forces.elimination` a call takes twice
the time.
"""

from __future__ import annotations

from math import sqrt

from delassus.compiler.codegen.loops import Doubles, Ints, doubles

REDUNDANT = 0
"""A pivot is not above a share of its diagonal entry: redundant rows, or an entry is NaN."""
SOLVED = 1
OVERFLOWED = 2
"""A force or an acceleration is not finite."""
LEAST_PIVOT_SHARE = 1e-10
"""Least share of a diagonal entry that a pivot keeps."""


def constrained_dynamics(binding: Ints) -> int:
    """Compute contact forces and accelerations; return REDUNDANT, SOLVED or OVERFLOWED.

    Parameters
    ----------
    binding : k and n; then the addresses of G (k, k), R (k,), a (k,), a⁰ (k,), M⁻¹Jᵀ (n, k), the
        free accelerations (n,), scratch (k, k), the forces f (k,) and the accelerations (n,).
    """
    k, n = binding[0], binding[1]
    U, forces, accelerations = doubles(binding[8]), doubles(binding[9]), doubles(binding[10])
    if not factorised(k, doubles(binding[2]), doubles(binding[3]), U):
        return REDUNDANT
    solve(k, U, doubles(binding[4]), doubles(binding[5]), forces)
    response, free = doubles(binding[6]), doubles(binding[7])
    # x·0 is NaN for an x that is not finite.
    zero = 0.0
    for i in range(k):
        zero += forces[i] * 0.0
    for i in range(n):
        row = response[i * k :]
        acceleration = free[i]
        for j in range(k):
            acceleration += row[j] * forces[j]
        accelerations[i] = acceleration
        zero += acceleration * 0.0
    return SOLVED if zero == 0.0 else OVERFLOWED


def factorised(k: int, G: Doubles, R: Doubles, U: Doubles) -> bool:
    """Set U of G + R = Uᵀ U by rows, its diagonal inverted; return False at a small pivot."""
    for i in range(k):
        row, given = U[i * k :], G[i * k :]
        for j in range(i, k):
            row[j] = given[j]
        row[i] += R[i]
    for p in range(k):
        row = U[p * k :]
        if not row[p] > (G[p * k + p] + R[p]) * LEAST_PIVOT_SHARE:
            return False
        inverse = 1.0 / sqrt(row[p])
        row[p] = inverse
        for j in range(p + 1, k):
            row[j] *= inverse
        for i in range(p + 1, k):
            below, factor = U[i * k :], row[i]
            for j in range(i, k):
                below[j] -= factor * row[j]
    return True


def solve(k: int, U: Doubles, wanted: Doubles, a0: Doubles, f: Doubles) -> None:
    """Set f of Uᵀ U f = a − a⁰."""
    for i in range(k):
        f[i] = wanted[i] - a0[i]
    for p in range(k):
        row = U[p * k :]
        f[p] *= row[p]
        for j in range(p + 1, k):
            f[j] -= f[p] * row[j]
    for i in range(k - 1, -1, -1):
        row, rest = U[i * k :], f[i]
        for j in range(i + 1, k):
            rest -= row[j] * f[j]
        f[i] = rest * row[i]
