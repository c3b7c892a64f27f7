"""Stage 4: proximal points, in the subset of Python that is compiled.

Where contacts are redundant, the forces under Coulomb's law can lie far along directions that
move nothing, and Newton's matrix is singular there. A compliance that acts on the change of the
forces alone makes it regular: with the forces c so far, f solves u = (H + w) f + a - w c. Its
solution for f = c is that of the problem itself.
"""

from __future__ import annotations

from delassus.compiler.codegen.loops import Doubles, Ints
from delassus.contact_forces.cones import (
    INTERIOR,
    NEWTON,
    SWEEPS,
    acceleration,
    residual,
)
from delassus.contact_forces.newton import newton
from delassus.contact_forces.sweeps import sweep

ROUNDS, ROUND_STEPS = 24, 10
"""Largest numbers of problems with compliance, and of Newton steps for one of them."""
WEIGHT_FIRST, WEIGHT_FACTOR, WEIGHT_LEAST = 1e-3, 0.3, 1e-4
"""Compliance as a share of the mean diagonal of H: the first, by round, the smallest."""
NEAR_TOLERANCE, NEAR_LEAST = 0.1, 1e-3
"""Residual at which a round ends: shares of the tolerance and of the residual so far."""


def proximal(
    k: int, contacts: int, law: int, budget: int, tolerance: float, kinds: Ints, mu: Doubles,
    H: Doubles, a: Doubles, weights: Doubles, f: Doubles, u: Doubles, best: Doubles, least: float,
    trial: Doubles, info: Doubles, rest: Doubles,
) -> float:  # fmt: skip
    """Go on from the best forces so far; return the residual of the best forces."""
    shifted, diagonal, near = rest[0:], rest[k:], rest[2 * k :]
    newtons = rest[3 * k :]
    weight = WEIGHT_FIRST
    for i in range(k):
        f[i] = best[i]
        diagonal[i] = H[i * k + i]
    for _round in range(ROUNDS):
        left = budget - int(info[SWEEPS] + info[NEWTON] + info[INTERIOR])
        if left < 2 or least <= tolerance:
            break
        for i in range(k):
            shifted[i] = a[i] - weight * f[i]
            H[i * k + i] = diagonal[i] + weight
        acceleration(k, H, shifted, f, u)
        sweep(k, contacts, law, kinds, mu, H, f, u)
        info[SWEEPS] += 1.0
        acceleration(k, H, shifted, f, u)
        for i in range(k):
            near[i] = f[i]
        goal = max(NEAR_TOLERANCE * tolerance, NEAR_LEAST * least)
        r = residual(contacts, law, kinds, mu, f, u)
        if r > goal:
            newton(
                k, contacts, law, min(ROUND_STEPS, left - 1), goal, kinds, mu, H, shifted, weights,
                f, r, u, near, r, trial, info, newtons,
            )  # fmt: skip
        for i in range(k):
            f[i] = near[i]
            H[i * k + i] = diagonal[i]
        acceleration(k, H, a, f, u)
        r = residual(contacts, law, kinds, mu, f, u)
        if r < least:
            least = r
            for i in range(k):
                best[i] = f[i]
        weight = max(WEIGHT_FACTOR * weight, WEIGHT_LEAST)
    return least
