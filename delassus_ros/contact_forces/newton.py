"""Stage 2: Newton's method on the rows that touch, in the subset of Python that is compiled.

Alart and Curnier (1991); the convex law with the projection on the second-order cone.
"""

from __future__ import annotations

from math import isfinite, sqrt

from delassus_ros.compiler.codegen.loops import Doubles, Ints
from delassus_ros.contact_forces.cones import (
    BILATERAL,
    CONVEX,
    COULOMB,
    NEWTON,
    UNILATERAL,
    acceleration,
    residual,
)
from delassus_ros.contact_forces.elimination import eliminated

PATIENCE_STEPS = 3
"""Steps without a gain after which the method ends."""
PROXIMAL = 1e-8
"""Weight of the proximal term in Newton's matrix."""


def newton(
    k: int, contacts: int, law: int, steps: int, tolerance: float, kinds: Ints, mu: Doubles,
    H: Doubles, a: Doubles, f: Doubles, r: float, u: Doubles, best: Doubles, least: float,
    trial: Doubles, info: Doubles, rest: Doubles,
) -> float:  # fmt: skip
    """Take full steps from f; the best forces so far and their residual are kept and returned.

    Steps end after PATIENCE_STEPS that gain nothing. u belongs to f.
    """
    E, A, b = rest[0:], rest[k * k :], rest[2 * k * k :]
    lowest = r
    bad = 0
    for i in range(k):
        trial[i] = f[i]
    for _step in range(steps):
        info[NEWTON] += 1.0
        rows = reduced(k, contacts, law, kinds, mu, H, a, trial, u, E, A, b)
        if not eliminated(rows, A, b):
            break
        expanded(k, contacts, law, kinds, mu, trial, u, b)
        acceleration(k, H, a, trial, u)
        r = residual(contacts, law, kinds, mu, trial, u)
        if not isfinite(r):
            break
        bad = 0 if r < 0.5 * lowest else bad + 1
        lowest = min(lowest, r)
        if r < least:
            least = r
            for i in range(k):
                best[i] = trial[i]
        if least <= tolerance or bad >= PATIENCE_STEPS:
            break
    return least


def state(law: int, kind: int, mu: float, f: Doubles, u: Doubles) -> int:
    """Return what a contact does: 0 it is open, 1 it holds, 2 it slides, 3 its normal holds."""
    if kind == BILATERAL:
        return 1
    if kind == UNILATERAL:
        return 1 if f[0] - u[0] > 0.0 else 0
    z = f[2] - u[2]
    if mu == 0.0:
        return 3 if z > 0.0 else 0
    x, y = f[0] - u[0], f[1] - u[1]
    t = sqrt(x * x + y * y)
    if t <= mu * z:
        return 1
    if law == COULOMB:
        return 2 if z > 0.0 else 0
    return 2 if mu * t > -z else 0


def reduced(
    k: int, contacts: int, law: int, kinds: Ints, mu: Doubles, H: Doubles, a: Doubles, f: Doubles,
    u: Doubles, E: Doubles, A: Doubles, b: Doubles,
) -> int:  # fmt: skip
    """Write Newton's matrix A (row-major) and right side b; return the number of their rows.

    A contact that holds has its rows as columns and rows. One that slides along n has the columns
    (mu n, 1), for its normal force, and t, the turn of n by 90 degrees, for the direction of
    friction; its rows are (0, 1) under Coulomb's law, (mu n, 1) under the convex law, and t.
    """
    rows = 0
    at = 0
    for c in range(contacts):
        kind = kinds[c]
        what = state(law, kind, mu[c], f[at:], u[at:])
        if what == 1:
            for i in range(at, at + max(kind, 1)):
                for other_row in range(k):
                    E[rows * k + other_row] = H[i * k + other_row]
                rows += 1
        elif what == 3:
            for other_row in range(k):
                E[rows * k + other_row] = H[(at + 2) * k + other_row]
            rows += 1
        elif what == 2:
            x, y = f[at] - u[at], f[at + 1] - u[at + 1]
            t = sqrt(x * x + y * y)
            x, y = x / t, y / t
            for other_row in range(k):
                hx, hy = H[at * k + other_row], H[(at + 1) * k + other_row]
                E[rows * k + other_row] = mu[c] * (x * hx + y * hy) + H[(at + 2) * k + other_row]
                E[(rows + 1) * k + other_row] = x * hy - y * hx
            rows += 2
        at += max(kind, 1)
    row = 0
    at = 0
    for c in range(contacts):
        kind = kinds[c]
        what = state(law, kind, mu[c], f[at:], u[at:])
        if what == 1:
            for i in range(at, at + max(kind, 1)):
                for j in range(rows):
                    A[row * rows + j] = E[j * k + i]
                A[row * rows + row] += PROXIMAL
                b[row] = PROXIMAL * f[i] - a[i]
                row += 1
        elif what == 3:
            for j in range(rows):
                A[row * rows + j] = E[j * k + at + 2]
            A[row * rows + row] += PROXIMAL
            b[row] = PROXIMAL * f[at + 2] - a[at + 2]
            row += 1
        elif what == 2:
            x, y, z = f[at] - u[at], f[at + 1] - u[at + 1], f[at + 2] - u[at + 2]
            t = sqrt(x * x + y * y)
            x, y = x / t, y / t
            friction = mu[c] if law == CONVEX else 0.0
            beta = mu[c] * z / t
            if law == CONVEX:
                beta = mu[c] * (mu[c] * t + z) / ((1.0 + mu[c] * mu[c]) * t)
            nx, ny, tx, ty = friction * x, friction * y, -y, x
            for j in range(rows):
                ex, ey, ez = E[j * k + at], E[j * k + at + 1], E[j * k + at + 2]
                A[row * rows + j] = nx * ex + ny * ey + ez
                A[(row + 1) * rows + j] = tx * ex + ty * ey
            A[row * rows + row] += PROXIMAL * (1.0 + friction * mu[c])
            A[(row + 1) * rows + row + 1] += PROXIMAL + (1.0 - beta) / max(beta, 1e-12)
            gx, gy = PROXIMAL * f[at] - a[at], PROXIMAL * f[at + 1] - a[at + 1]
            b[row] = nx * gx + ny * gy + PROXIMAL * f[at + 2] - a[at + 2]
            b[row + 1] = tx * gx + ty * gy
            row += 2
        at += max(kind, 1)
    return rows


def expanded(
    k: int, contacts: int, law: int, kinds: Ints, mu: Doubles, f: Doubles, u: Doubles, z: Doubles
) -> None:
    """Replace f by what the reduced unknowns z stand for; the states are those of f and u."""
    row = 0
    at = 0
    for c in range(contacts):
        size = max(kinds[c], 1)
        what = state(law, kinds[c], mu[c], f[at:], u[at:])
        if what == 1:
            for i in range(size):
                f[at + i] = z[row + i]
            row += size
        elif what == 2:
            x, y = f[at] - u[at], f[at + 1] - u[at + 1]
            t = sqrt(x * x + y * y)
            x, y = x / t, y / t
            f[at] = mu[c] * x * z[row] - y * z[row + 1]
            f[at + 1] = mu[c] * y * z[row] + x * z[row + 1]
            f[at + 2] = z[row]
            row += 2
        else:
            for i in range(size):
                f[at + i] = 0.0
            if what == 3:
                f[at + 2] = z[row]
                row += 1
        at += size
