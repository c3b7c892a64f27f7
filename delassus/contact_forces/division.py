"""How redundant contacts share forces, in the subset of Python that is compiled.

Where H is singular, the law leaves the division of forces among some contacts open. The division
is that of contacts with the same small compliance: the forces of H + COMPLIANCE D, whose solution
is unique in practice, go on by Newton steps with a compliance D on the change of the forces alone,
until they obey the law of H. Where no contact changes between open, held and sliding on this way,
the result is the limit of forces with an equal compliance that goes to 0: of contacts that hold,
the forces of least norm. No step depends on the order of the contacts.

Where these steps find no solution, Newton steps and the interior point go on. Points of a body
that turns are an example: their accelerations contradict each other by the centripetal ones.
"""

from __future__ import annotations

from delassus.compiler.codegen.loops import Doubles, Ints
from delassus.contact_forces.cones import POINT, RANK, ROWS, acceleration, residual
from delassus.contact_forces.elimination import cholesky, rank_revealed
from delassus.contact_forces.newton import (
    SLIDES,
    find_regimes,
    held_rows,
    newton,
    reduced,
)
from delassus.contact_forces.stages import stages, steps_taken

UNIQUE, EQUAL, OTHER = 0, 1, 2
"""Divisions: H is regular; that of equal compliance; that of the interior point."""
REGULAR = 1e-4
"""Smallest eigenvalue of a regular H, whose mean diagonal is 1."""
COMPLIANCE = 1e-3
"""Compliance of the forces that are moved on, as a share of the mean diagonal."""
LEAST_SHARE = 1e-2
"""Smallest compliance of a point relative to the largest one, in scaled rows."""
NEAR, POLISHED, POLISH_STEPS = 1e-9, 1e-14, 3
"""Residuals of the compliant problem before and after the last Newton steps; their number."""
MOVE_STEPS, MOVE_WEIGHT, LAST_WEIGHT = 10, 1e-4, 1e-6
"""Number of Newton steps to the forces without compliance; its weight on their change, in these
steps and in those that follow where they find no solution."""
RESERVE = 24
"""Steps of the budget that the compliant problem leaves."""
NO_PIVOT = 1e-7
"""Pivots that count as zero, as a share of the mean diagonal."""


def is_regular(k: int, H: Doubles, K: Doubles) -> bool:
    """Return whether H, of mean diagonal 1, has no eigenvalue below REGULAR."""
    for i in range(k * k):
        K[i] = H[i]
    for i in range(k):
        K[i * k + i] -= REGULAR
    return cholesky(k, K)


def shares(k: int, contacts: int, kinds: Ints, s: Doubles, D: Doubles) -> None:
    """Write the compliance D of each row: that of points is the same, in unscaled rows.

    Parameters
    ----------
    s : factors of the rows.
    """
    largest = 0.0
    at = 0
    for c in range(contacts):
        if kinds[c] == POINT:
            largest = max(largest, s[at] * s[at])
        at += max(kinds[c], 1)
    at = 0
    for c in range(contacts):
        share = 1.0
        if kinds[c] == POINT:
            share = max(s[at] * s[at] / largest, LEAST_SHARE)
        for i in range(at, at + max(kinds[c], 1)):
            D[i] = share
        at += max(kinds[c], 1)


def divided(
    k: int, contacts: int, law: int, budget: int, tolerance: float, kinds: Ints, mu: Doubles,
    H: Doubles, a: Doubles, weights: Doubles, D: Doubles, f: Doubles, u: Doubles, best: Doubles,
    trial: Doubles, info: Doubles, rest: Doubles,
) -> float:  # fmt: skip
    """Divide the forces by equal compliance; return the residual of the best forces.

    Parameters
    ----------
    D : of :func:`shares`.
    """
    diagonal, work = rest[0:], rest[k:]
    for i in range(k):
        diagonal[i] = H[i * k + i]
        H[i * k + i] += COMPLIANCE * D[i]
    least = stages(
        k, contacts, law, budget - RESERVE, NEAR, kinds, mu, H, a, weights, f, u, best, trial,
        info, work, True,
    )  # fmt: skip
    if least > POLISHED:
        for i in range(k):
            f[i] = best[i]
        acceleration(k, H, a, f, u)
        newton(
            k, contacts, law, min(POLISH_STEPS, budget - steps_taken(info)), POLISHED, kinds, mu,
            H, a, weights, f, least, u, best, least, trial, info, work,
        )  # fmt: skip
    for i in range(k):
        H[i * k + i] = diagonal[i]
        f[i] = best[i]
        weights[i] = MOVE_WEIGHT * D[i]
    acceleration(k, H, a, f, u)
    least = residual(contacts, law, kinds, mu, f, u)
    if not least <= tolerance:
        least = newton(
            k, contacts, law, min(MOVE_STEPS, budget - steps_taken(info)), tolerance, kinds, mu,
            H, a, weights, f, least, u, best, least, trial, info, work,
        )  # fmt: skip
    for i in range(k):
        weights[i] = LAST_WEIGHT
    return least


def redundant_rows(
    k: int, contacts: int, law: int, kinds: Ints, mu: Doubles, H: Doubles, a: Doubles, f: Doubles,
    u: Doubles, weights: Doubles, marks: Doubles, info: Doubles, rest: Doubles,
) -> None:  # fmt: skip
    """Mark the rows whose forces can change without a change of accelerations.

    Rank and number of all rows that push, in Newton's matrix at the forces f, go to `info`.

    Parameters
    ----------
    weights : (k,) work; marks : (k,) result, 1 or 0.
    """
    E, A, b, null = rest[0:], rest[k * k :], rest[2 * k * k :], rest[2 * k * k + 5 * k :]
    regimes, slide = rest[2 * k * k + k :], rest[2 * k * k + 2 * k :]
    for i in range(k):
        weights[i], marks[i] = 0.0, 0.0
    find_regimes(contacts, law, kinds, mu, f, u, regimes, slide)
    rows = reduced(k, contacts, law, kinds, mu, H, a, weights, f, regimes, slide, E, A, b)
    info[RANK] = float(rank_revealed(rows, NO_PIVOT, A, null, b))
    info[ROWS] = float(rows)
    row = 0
    at = 0
    for c in range(contacts):
        size = max(kinds[c], 1)
        count = 2 if regimes[c] == SLIDES else held_rows(kinds[c], regimes[c])
        mark = 0.0
        for i in range(row, row + count):
            mark = max(mark, null[i])
        for i in range(at, at + size):
            marks[i] = mark
        row += count
        at += size
