"""Stage 2: Newton's method on the rows that touch, in the subset of Python that is compiled.

Alart and Curnier (1991); the convex law with the projection on the second-order cone.
"""

from __future__ import annotations

from math import isfinite, sqrt

from delassus.compiler.codegen.loops import Doubles, Ints
from delassus.contact_forces.cones import (
    BILATERAL,
    CONVEX,
    COULOMB,
    NEWTON,
    UNILATERAL,
    acceleration,
    residual,
)
from delassus.contact_forces.elimination import eliminated

PATIENCE_STEPS = 3
"""Steps without a gain after which the method ends."""
PROXIMAL = 1e-8
"""Weight of the proximal term in Newton's matrix of a regular problem."""
OPEN, HOLDS, SLIDES, NORMAL = 0, 1, 2, 3
"""Regimes of a contact; NORMAL: without friction, its normal row holds."""
DIRECTION = 3
"""Numbers per contact that slides: the direction x, y and the turning stiffness."""


def newton(
    k: int, contacts: int, law: int, steps: int, tolerance: float, kinds: Ints, mu: Doubles,
    H: Doubles, a: Doubles, weights: Doubles, f: Doubles, r: float, u: Doubles, best: Doubles,
    least: float, trial: Doubles, info: Doubles, rest: Doubles,
) -> float:  # fmt: skip
    """Take full steps from f; the best forces so far and their residual are kept and returned.

    Steps end after PATIENCE_STEPS that gain nothing. u belongs to f.

    Parameters
    ----------
    weights : (k,) of the proximal term, a compliance that acts on the change of the forces alone;
        equal for the rows of a contact.
    """
    E, A, b = rest[0:], rest[k * k :], rest[2 * k * k :]
    regimes, slide = rest[2 * k * k + k :], rest[2 * k * k + 2 * k :]
    lowest = r
    bad = 0
    for i in range(k):
        trial[i] = f[i]
    for _step in range(steps):
        info[NEWTON] += 1.0
        find_regimes(contacts, law, kinds, mu, trial, u, regimes, slide)
        rows = reduced(
            k, contacts, law, kinds, mu, H, a, weights, trial, regimes, slide, E, A, b
        )  # fmt: skip
        if not eliminated(rows, A, b):
            break
        expanded(contacts, kinds, mu, trial, regimes, slide, b)
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


def find_regimes(
    contacts: int, law: int, kinds: Ints, mu: Doubles, f: Doubles, u: Doubles, regimes: Doubles,
    slide: Doubles,
) -> None:  # fmt: skip
    """Write what each contact does at f and u, and where it slides to.

    Parameters
    ----------
    regimes : (contacts,), OPEN to NORMAL.
    slide : (contacts, DIRECTION), written where the contact slides.
    """
    at = 0
    for c in range(contacts):
        regimes[c] = float(regime(law, kinds[c], mu[c], f[at:], u[at:]))
        if regimes[c] == SLIDES:
            x, y, z = f[at] - u[at], f[at + 1] - u[at + 1], f[at + 2] - u[at + 2]
            t = sqrt(x * x + y * y)
            beta = mu[c] * z / t
            if law == CONVEX:
                beta = mu[c] * (mu[c] * t + z) / ((1.0 + mu[c] * mu[c]) * t)
            slide[DIRECTION * c] = x / t
            slide[DIRECTION * c + 1] = y / t
            slide[DIRECTION * c + 2] = (1.0 - beta) / max(beta, 1e-12)
        at += max(kinds[c], 1)


def regime(law: int, kind: int, mu: float, f: Doubles, u: Doubles) -> int:
    """Return what one contact does, OPEN to NORMAL."""
    if kind == BILATERAL:
        return HOLDS
    if kind == UNILATERAL:
        return HOLDS if f[0] - u[0] > 0.0 else OPEN
    z = f[2] - u[2]
    if mu == 0.0:
        return NORMAL if z > 0.0 else OPEN
    x, y = f[0] - u[0], f[1] - u[1]
    t = sqrt(x * x + y * y)
    if t <= mu * z:
        return HOLDS
    if law == COULOMB:
        return SLIDES if z > 0.0 else OPEN
    return SLIDES if mu * t > -z else OPEN


def reduced(
    k: int, contacts: int, law: int, kinds: Ints, mu: Doubles, H: Doubles, a: Doubles,
    weights: Doubles, f: Doubles, regimes: Doubles, slide: Doubles, E: Doubles, A: Doubles,
    b: Doubles,
) -> int:  # fmt: skip
    """Write Newton's matrix A (row-major) and right side b; return the number of their rows.

    A contact that holds has its rows as columns and rows. One that slides along n has the columns
    (mu n, 1), for its normal force, and t, the turn of n by 90 degrees, for the direction of
    friction; its rows are (0, 1) under Coulomb's law, (mu n, 1) under the convex law, and t.
    """
    rows = 0
    at = 0
    for c in range(contacts):
        first, count = first_held(regimes[c]), held_rows(kinds[c], regimes[c])
        for i in range(at + first, at + first + count):
            for other_row in range(k):
                E[rows * k + other_row] = H[i * k + other_row]
            rows += 1
        if regimes[c] == SLIDES:
            x, y = mu[c] * slide[DIRECTION * c], mu[c] * slide[DIRECTION * c + 1]
            tx, ty = -slide[DIRECTION * c + 1], slide[DIRECTION * c]
            for other_row in range(k):
                hx, hy = H[at * k + other_row], H[(at + 1) * k + other_row]
                E[rows * k + other_row] = x * hx + y * hy + H[(at + 2) * k + other_row]
                E[(rows + 1) * k + other_row] = tx * hx + ty * hy
            rows += 2
        at += max(kinds[c], 1)
    row = 0
    at = 0
    for c in range(contacts):
        first, count = first_held(regimes[c]), held_rows(kinds[c], regimes[c])
        for i in range(at + first, at + first + count):
            for j in range(rows):
                A[row * rows + j] = E[j * k + i]
            A[row * rows + row] += weights[i]
            b[row] = weights[i] * f[i] - a[i]
            row += 1
        if regimes[c] == SLIDES:
            friction = mu[c] if law == CONVEX else 0.0
            x, y = slide[DIRECTION * c], slide[DIRECTION * c + 1]
            nx, ny = friction * x, friction * y
            for j in range(rows):
                ex, ey, ez = E[j * k + at], E[j * k + at + 1], E[j * k + at + 2]
                A[row * rows + j] = nx * ex + ny * ey + ez
                A[(row + 1) * rows + j] = x * ey - y * ex
            weight = weights[at]
            A[row * rows + row] += weight * (1.0 + friction * mu[c])
            A[(row + 1) * rows + row + 1] += weight + slide[DIRECTION * c + 2]
            gx, gy = weight * f[at] - a[at], weight * f[at + 1] - a[at + 1]
            b[row] = nx * gx + ny * gy + weight * f[at + 2] - a[at + 2]
            b[row + 1] = x * gy - y * gx
            row += 2
        at += max(kinds[c], 1)
    return rows


def first_held(what: float) -> int:
    """Return the first row of a contact that holds in this regime."""
    return 2 if what == NORMAL else 0


def held_rows(kind: int, what: float) -> int:
    """Return how many rows of a contact hold in this regime."""
    if what == HOLDS:
        return max(kind, 1)
    return 1 if what == NORMAL else 0


def expanded(
    contacts: int, kinds: Ints, mu: Doubles, f: Doubles, regimes: Doubles, slide: Doubles,
    z: Doubles,
) -> None:  # fmt: skip
    """Replace f by what the reduced unknowns z stand for."""
    row = 0
    at = 0
    for c in range(contacts):
        for i in range(at, at + max(kinds[c], 1)):
            f[i] = 0.0
        first, count = first_held(regimes[c]), held_rows(kinds[c], regimes[c])
        for i in range(at + first, at + first + count):
            f[i] = z[row]
            row += 1
        if regimes[c] == SLIDES:
            x, y = slide[DIRECTION * c], slide[DIRECTION * c + 1]
            f[at] = mu[c] * x * z[row] - y * z[row + 1]
            f[at + 1] = mu[c] * y * z[row] + x * z[row + 1]
            f[at + 2] = z[row]
            row += 2
        at += max(kinds[c], 1)
