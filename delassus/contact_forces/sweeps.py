"""Stage 1: sweeps of block Gauss-Seidel, in the subset of Python that is compiled.

The exact solution of each contact follows Jourdan, Alart and Jean (1998), with one root for a
contact that slides.
"""

from __future__ import annotations

from math import sqrt

from delassus.compiler.codegen.loops import Doubles, Ints
from delassus.contact_forces.cones import (
    COULOMB,
    POINT,
    TINY,
    UNILATERAL,
    cone_factors,
    cone_normal,
)

LOCAL_STEPS, CONVEX_STEPS = 60, 8
"""Largest numbers of steps for one contact under Coulomb's and under the convex law."""
IMMOVABLE, LEAST_DETERMINANT = 1e-14, 1e-16
"""Diagonal of a row that its own force does not move; determinant of a block of two rows that
counts as singular, as a share of the square of its trace. Blocks have a mean diagonal of 1."""


def sweep(
    k: int, contacts: int, law: int, kinds: Ints, mu: Doubles, H: Doubles, f: Doubles, u: Doubles
) -> None:
    """Solve contact after contact, with the forces of the other contacts as they are.

    u follows the forces.
    """
    at = 0
    for c in range(contacts):
        if kinds[c] == POINT:
            x, y, z = f[at], f[at + 1], f[at + 2]
            if law == COULOMB:
                local_coulomb(k, mu[c], H[at * k + at :], f[at:], u[at:])
            else:
                local_convex(k, mu[c], H[at * k + at :], f[at:], u[at:])
            x, y, z = f[at] - x, f[at + 1] - y, f[at + 2] - z
            if x != 0.0 or y != 0.0 or z != 0.0:
                column = H[at * k :]
                for i in range(k):
                    u[i] += column[i] * x + column[k + i] * y + column[2 * k + i] * z
            at += 3
        else:
            before = f[at]
            if H[at * k + at] > IMMOVABLE:
                f[at] -= u[at] / H[at * k + at]
            if kinds[c] == UNILATERAL:
                f[at] = max(f[at], 0.0)
            change = f[at] - before
            if change != 0.0:
                column = H[at * k :]
                for i in range(k):
                    u[i] += column[i] * change
            at += 1


def local_coulomb(k: int, mu: float, W: Doubles, f: Doubles, u: Doubles) -> None:
    """Solve one contact under Coulomb's law: it opens, sticks, or slides by a bracketed root.

    W is the contact's block of H, in columns of length k. With the normal force eliminated, a
    sliding contact has f_T = (A + lam)^-1 g, lam the ratio of sliding velocity and friction; the
    root of 1 / |f_T| - 1 / (mu f_N), which is nearly linear in lam, gives lam.
    """
    xx, xy, yy = W[0], 0.5 * (W[1] + W[k]), W[k + 1]
    wx, wy, wn = 0.5 * (W[2] + W[2 * k]), 0.5 * (W[k + 2] + W[2 * k + 1]), W[2 * k + 2]
    qx = u[0] - (xx * f[0] + W[k] * f[1] + W[2 * k] * f[2])
    qy = u[1] - (W[1] * f[0] + yy * f[1] + W[2 * k + 1] * f[2])
    qn = u[2] - (W[2] * f[0] + W[k + 2] * f[1] + wn * f[2])
    f[0], f[1], f[2] = 0.0, 0.0, 0.0
    if qn >= 0.0 or wn <= IMMOVABLE:
        return
    if mu == 0.0:
        f[2] = -qn / wn
        return
    per_normal = 1.0 / wn
    vx, vy = wx * per_normal, wy * per_normal
    ax, ay, az = xx - wx * vx, xy - wx * vy, yy - wy * vy
    gx, gy = vx * qn - qx, vy * qn - qy
    size = ax + az
    lam, low, high = 0.0, 0.0, -1.0
    x, y, normal, t = 0.0, 0.0, 0.0, 0.0
    for step in range(LOCAL_STEPS):
        bx, bz = ax + lam + 1e-14 * size, az + lam + 1e-14 * size
        singular = max(LEAST_DETERMINANT * size * size, TINY)
        inverse = 1.0 / max(bx * bz - ay * ay, singular)
        x, y = (bz * gx - ay * gy) * inverse, (bx * gy - ay * gx) * inverse
        normal = -(qn * per_normal + vx * x + vy * y)
        t = sqrt(x * x + y * y)
        if step == 0 and t <= mu * normal:
            break
        if abs(t - mu * normal) <= 1e-15 * (t + mu * abs(normal)):
            break
        if t > mu * normal:
            low = lam
        else:
            high = lam
        new = -1.0
        if normal > 0.0 and t > 0.0:
            dx, dy = -(bz * x - ay * y) * inverse, -(bx * y - ay * x) * inverse
            slope = -(x * dx + y * dy) / (t * t * t) - (wx * dx + wy * dy) / (
                wn * mu * normal * normal
            )
            if slope > 0.0:
                new = lam - (1.0 / t - 1.0 / (mu * normal)) / slope
        if not (new > low and (high < 0.0 or new < high)):
            new = 0.5 * (low + high) if high >= 0.0 else 4.0 * lam + size
        lam = new
    normal = max(normal, 0.0)
    shrink = min(1.0, mu * normal / t) if t > 0.0 else 1.0
    f[0], f[1], f[2] = x * shrink, y * shrink, normal


def local_convex(k: int, mu: float, W: Doubles, f: Doubles, u: Doubles) -> None:
    """Take projected steps towards the solution of one contact under the convex law."""
    length = 1.0 / max(W[0] + W[k + 1] + W[2 * k + 2], TINY)
    ux, uy, uz = u[0], u[1], u[2]
    for _step in range(CONVEX_STEPS):
        x, y, z = f[0] - length * ux, f[1] - length * uy, f[2] - length * uz
        along, normal = cone_factors(mu, x, y, z), cone_normal(mu, x, y, z)
        dx, dy, dz = along * x - f[0], along * y - f[1], normal - f[2]
        ux += W[0] * dx + W[k] * dy + W[2 * k] * dz
        uy += W[1] * dx + W[k + 1] * dy + W[2 * k + 1] * dz
        uz += W[2] * dx + W[k + 2] * dy + W[2 * k + 2] * dz
        f[0] += dx
        f[1] += dy
        f[2] += dz
