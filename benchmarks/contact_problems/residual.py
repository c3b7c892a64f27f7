"""Residuals of contact forces, apart from the solver that is measured: NumPy alone.

The natural map |f - P(f - u~)| / |a0| in scaled rows, u = G f + a0. Under Coulomb's law u~ is u
with mu |u_T| added to the normals (De Saxce), under the convex law u. A factor per contact scales
rows, 1 / sqrt(mean diagonal of its block), so that the residual does not depend on units.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from delassus_ros.model.spatial import Array

NO_ROW = 1e-16
"""Blocks with a smaller mean diagonal, as a share of the largest diagonal, count as zero."""


def scales(G: Array, sizes: Sequence[int]) -> Array:
    """Return the factor of each row.

    Parameters
    ----------
    G : (n, n), 1/kg.
    sizes : rows per contact; their sum is n.
    """
    diagonal, largest = np.diag(G), float(np.diag(G).max())
    largest = largest if largest > 1e-300 else 1e16
    first = np.cumsum([0, *sizes[:-1]])
    mean = np.add.reduceat(diagonal, first) / sizes
    zero = mean <= NO_ROW * largest
    factor = np.where(zero, 1e8 / np.sqrt(largest), 1.0 / np.sqrt(np.where(zero, 1.0, mean)))
    return np.repeat(factor, sizes)


def nearest(mu: Array, x: Array) -> Array:
    """Return the nearest points (n, 3) of the cones |x_T| <= mu x_z."""
    t, z = np.hypot(x[:, 0], x[:, 1]), x[:, 2]
    normal = np.where(mu * t <= -z, 0.0, np.where(t <= mu * z, z, (mu * t + z) / (1.0 + mu**2)))
    factor = np.minimum(1.0, mu * normal / np.where(t > 0.0, t, 1.0))
    return np.column_stack([factor * x[:, 0], factor * x[:, 1], normal])


def point_residual(G: Array, a0: Array, mu: Array, f: Array, law: str) -> float:
    """Return the residual of point contacts with rows x, y, z.

    Parameters
    ----------
    G : (3n, 3n); a0, f : (3n,); mu : (n,).
    law : "coulomb" or "convex".
    """
    return residual(G, a0, ["point"] * len(mu), mu, f, law)


def residual(G: Array, a0: Array, kinds: Sequence[str], mu: Array, f: Array, law: str) -> float:
    """Return the residual of contacts of the kinds "point", "unilateral" and "bilateral".

    Parameters
    ----------
    G : (n, n); a0, f : (n,); mu : per contact.
    law : "coulomb" or "convex".
    """
    sizes = [3 if kind == "point" else 1 for kind in kinds]
    s = scales(G, sizes)
    size = float(np.linalg.norm(s * a0))
    size = size if size > 0.0 else 1.0
    u, f = s * (G @ f + a0) / size, f / s / size
    each, rows = np.repeat(np.asarray(kinds), sizes), np.arange(len(a0))
    gap = np.where(each == "bilateral", u, np.minimum(f, u))
    points = rows[each == "point"].reshape(-1, 3)
    if len(points):
        friction = np.asarray(mu)[np.asarray(kinds) == "point"]
        speed = u[points]
        if law == "coulomb":
            speed[:, 2] += friction * np.hypot(speed[:, 0], speed[:, 1])
        gap[points] = f[points] - nearest(friction, f[points] - speed)
    return float(np.linalg.norm(gap))
