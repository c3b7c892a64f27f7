"""Residuals of contact forces, apart from the solver that is measured: NumPy alone.

Each condition counts on its own scale, in scaled rows, relative to the norm of a0, with
u = G f + a0:

- normals under Coulomb's law: min(f_N, u_N), which is penetration, pull or complementarity,
- friction of a contact at rest: f_T - P(f_T - u_T), P to the disc of radius mu f_N,
- friction of a contact that slides at v: f_T + mu f_N v_T / |v_T|,
- a contact that leaves: all of f,
- the convex law of a contact at rest: f - P(f - u), P to its cone.

A factor per contact scales rows, 1 / sqrt(mean diagonal of its block), so that the residual does
not depend on units.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from delassus.model.spatial import Array

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
    largest = largest if largest > 1e-300 else 1.0
    first = np.cumsum([0, *sizes[:-1]])
    mean = np.add.reduceat(diagonal, first) / sizes
    zero = mean <= NO_ROW * largest
    return np.repeat(1.0 / np.sqrt(np.where(zero, largest, mean)), sizes)


def nearest(mu: Array, x: Array) -> Array:
    """Return the nearest points (n, 3) of the cones |x_T| <= mu x_z."""
    t, z = np.hypot(x[:, 0], x[:, 1]), x[:, 2]
    normal = np.where(mu * t <= -z, 0.0, np.where(t <= mu * z, z, (mu * t + z) / (1.0 + mu**2)))
    factor = np.minimum(1.0, mu * normal / np.where(t > 0.0, t, 1.0))
    return np.column_stack([factor * x[:, 0], factor * x[:, 1], normal])


SPEED = 0.1
"""Velocity above which a contact slides or leaves, m/s."""


def point_residual(G: Array, a0: Array, mu: Array, f: Array, law: str) -> float:
    """Return the residual of point contacts with rows x, y, z.

    Parameters
    ----------
    G : (3n, 3n); a0, f : (3n,); mu : (n,).
    law : "coulomb" or "convex".
    """
    return residual(G, a0, ["point"] * len(mu), mu, f, law)


def residual(
    G: Array,
    a0: Array,
    kinds: Sequence[str],
    mu: Array,
    f: Array,
    law: str,
    v: Array | None = None,
) -> float:
    """Return the residual of contacts of the kinds "point", "unilateral" and "bilateral".

    Parameters
    ----------
    G : (n, n); a0, f : (n,); mu : per contact.
    law : "coulomb" or "convex".
    v : (n,) velocities; None for contacts at rest.
    """
    sizes = [3 if kind == "point" else 1 for kind in kinds]
    v = np.zeros(len(a0)) if v is None else v
    s = scales(G, sizes)
    each, rows = np.repeat(np.asarray(kinds), sizes), np.arange(len(a0))
    last = np.cumsum(sizes) - 1
    leaves = np.repeat((v[last] > SPEED) & (np.asarray(kinds) != "bilateral"), sizes)
    size = float(np.linalg.norm((s * a0)[~leaves]))
    size = size if size > 0.0 else 1.0
    u, f = s * (G @ f + a0) / size, f / s / size
    gap = np.where(each == "bilateral", u, np.minimum(f, u))
    points = rows[each == "point"].reshape(-1, 3)
    if len(points):
        friction = np.asarray(mu)[np.asarray(kinds) == "point"]
        force, speed, moves = f[points], u[points], v[points]
        slip = np.hypot(moves[:, 0], moves[:, 1])
        slides = slip > SPEED
        along = moves[:, :2] / np.where(slides, slip, 1.0)[:, None]
        reach = force[:, :2] - speed[:, :2]
        length = np.hypot(reach[:, 0], reach[:, 1])
        radius = friction * np.maximum(force[:, 2], 0.0)
        shrink = np.minimum(1.0, radius / np.where(length > 0.0, length, 1.0))
        aim = np.where(
            slides[:, None], -(friction * force[:, 2])[:, None] * along, shrink[:, None] * reach
        )
        gap[points[:, :2]] = force[:, :2] - aim
        if law == "convex":
            rest = points[~slides]
            gap[rest] = f[rest] - nearest(friction[~slides], f[rest] - u[rest])
    return float(np.linalg.norm(np.where(leaves, f, gap)))
