"""Friction cones: nearest points, accelerations, and how far forces are from their law.

In the subset of Python that is compiled (:mod:`~delassus.compiler.codegen.loops`).
"""

from __future__ import annotations

from math import sqrt

from delassus.compiler.codegen.loops import Doubles, Ints

BILATERAL, UNILATERAL, POINT = 0, 1, 3
"""Kinds of cones: a row that holds, one that pushes, a point with its friction cone."""
COULOMB, CONVEX = 0, 1
SWEEPS, NEWTON, INTERIOR, RESIDUAL, LAW, DIVISION, RANK, ROWS, INFO = 0, 1, 2, 3, 4, 5, 6, 7, 8
"""Places in ``info``: the number of steps of each stage, the residual, the law, the division of
forces where G is singular, and there rank and number of the rows that push; its size."""
SPEEDS = 3
"""Number of thresholds of velocities: of contacts that slide, leave and strike."""
TINY = 1e-300
EPSILON = 2.3e-16
"""Relative rounding error of a number."""


def residual(contacts: int, law: int, kinds: Ints, mu: Doubles, f: Doubles, u: Doubles) -> float:
    """Return how far forces are from their law.

    Under Coulomb's law the norm of min(f_N, u_N) and of f_T - P(f_T - u_T), P to the disc of
    radius mu f_N: penetration, cone and complementarity count as they are, whatever mu. Under the
    convex law the norm of f - P_K(f - u). The rounding error of the forces counts: accelerations
    below that of large forces are not seen in the differences.
    """
    total = 0.0
    forces = 0.0
    at = 0
    for c in range(contacts):
        if kinds[c] == POINT:
            x, y, z = f[at] - u[at], f[at + 1] - u[at + 1], f[at + 2] - u[at + 2]
            along, normal = 1.0, max(z, 0.0)
            if law == COULOMB:
                t = sqrt(x * x + y * y)
                radius = mu[c] * max(f[at + 2], 0.0)
                if t > radius:
                    along = radius / t
            else:
                along, normal = cone_factors(mu[c], x, y, z), cone_normal(mu[c], x, y, z)
            dx, dy, dz = f[at] - along * x, f[at + 1] - along * y, f[at + 2] - normal
            total += dx * dx + dy * dy + dz * dz
            forces += f[at] * f[at] + f[at + 1] * f[at + 1] + f[at + 2] * f[at + 2]
            at += 3
        else:
            d = u[at]
            if kinds[c] == UNILATERAL:
                d = f[at] - max(f[at] - u[at], 0.0)
            total += d * d
            forces += f[at] * f[at]
            at += 1
    return sqrt(total + EPSILON * EPSILON * forces)


def cone_normal(mu: float, x: float, y: float, z: float) -> float:
    """Return the normal part of the nearest point of the cone |x_T| <= mu x_N."""
    t = sqrt(x * x + y * y)
    if mu * t <= -z:
        return 0.0
    if t <= mu * z:
        return z
    return (mu * t + z) / (1.0 + mu * mu)


def cone_factors(mu: float, x: float, y: float, z: float) -> float:
    """Return by what the tangential part is multiplied on the way to that point."""
    t = sqrt(x * x + y * y)
    if mu * t <= -z:
        return 0.0
    if t <= mu * z:
        return 1.0
    return mu * (mu * t + z) / ((1.0 + mu * mu) * t)


def project(contacts: int, kinds: Ints, mu: Doubles, f: Doubles) -> None:
    """Replace forces by the nearest ones in the cones."""
    at = 0
    for c in range(contacts):
        if kinds[c] == POINT:
            along = cone_factors(mu[c], f[at], f[at + 1], f[at + 2])
            normal = cone_normal(mu[c], f[at], f[at + 1], f[at + 2])
            f[at] *= along
            f[at + 1] *= along
            f[at + 2] = normal
            at += 3
        else:
            if kinds[c] == UNILATERAL:
                f[at] = max(f[at], 0.0)
            at += 1


def acceleration(k: int, H: Doubles, a: Doubles, f: Doubles, u: Doubles) -> None:
    """Write u = H f + a."""
    for i in range(k):
        u[i] = a[i]
    for j in range(k):
        force = f[j]
        column = H[j * k :]
        for i in range(k):
            u[i] += column[i] * force
