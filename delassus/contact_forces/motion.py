"""Contacts that move, in the subset of Python that is compiled.

The velocity v = J y of a contact decides which law holds:

- it leaves the surface faster than a threshold: no force;
- it slides along the surface faster than a threshold: f = f_N (e_N - mu v_T / |v_T|), and f_N >= 0
  is complementary to the normal acceleration;
- it approaches the surface faster than a threshold: no finite force;
- else it is at rest, and the law of friction holds for accelerations.

A contact that slides has one unknown, f_N. In its place among the rows of cones it is a point
without friction whose column of H is that of e_N - mu v_T / |v_T|, so that H is not symmetric. A
contact that leaves is coupled with nothing.

f_N acts on itself by e_N'G (e_N - mu v_T / |v_T|), which need not be positive: forces need not
exist or need not be the only ones (Painleve, 1895). They exist and are the only ones for any a0 if
the matrix of the normal rows is a P-matrix: all its principal minors are positive. The matrix is
tested twice: with bilateral rows eliminated, and at the forces with all rows eliminated that push
at rest.
"""

from __future__ import annotations

from math import sqrt

from delassus.compiler.codegen.loops import Doubles, Ints
from delassus.contact_forces.cones import BILATERAL, POINT
from delassus.contact_forces.elimination import cholesky
from delassus.contact_forces.newton import NORMAL, OPEN, SLIDES, held_rows, reduced

AT_REST, SLIDING, LEAVING = 0, 1, 2
MOTION = 3
"""Numbers per contact: one of AT_REST to LEAVING, then the direction v_T / |v_T|."""
DECIDED = 1e-6
"""Added to the diagonal of the matrix whose minors are tested, as a share of the mean diagonal of
H: rows of redundant contacts have minors of 0."""
MOST_ROWS = 14
"""Largest number of sliding contacts whose minors are tested: there are 2**n."""


def find_motion(
    contacts: int, kinds: Ints, starts: Ints, columns: Ints, weights: Doubles, v: Doubles,
    slip: float, leave: float, strike: float, motion: Doubles, marks: Doubles,
) -> int:  # fmt: skip
    """Write how each contact moves; return the number of those that strike, whose rows are marked.

    Parameters
    ----------
    v : (n,) velocities at the rows of G. slip, leave, strike : thresholds.
    motion : (contacts, MOTION).
    marks : (k,), 1 at the rows of contacts that strike, else 0.
    """
    striking = 0
    at = 0
    for c in range(contacts):
        size = max(kinds[c], 1)
        own = motion[MOTION * c :]
        own[0], own[1], own[2] = float(AT_REST), 0.0, 0.0
        normal = 0.0
        if kinds[c] != BILATERAL:
            normal = along_row(starts, columns, weights, v, at + size - 1)
        strikes = normal < -strike
        if strikes:
            striking += 1
        elif normal > leave:
            own[0] = float(LEAVING)
        elif kinds[c] == POINT:
            x = along_row(starts, columns, weights, v, at)
            y = along_row(starts, columns, weights, v, at + 1)
            speed = sqrt(x * x + y * y)
            if speed > slip:
                own[0], own[1], own[2] = float(SLIDING), x / speed, y / speed
        for i in range(at, at + size):
            marks[i] = 1.0 if strikes else 0.0
        at += size
    return striking


def along_row(starts: Ints, columns: Ints, weights: Doubles, v: Doubles, i: int) -> float:
    """Return the velocity along row i of the cones."""
    value = 0.0
    for e in range(starts[i], starts[i + 1]):
        value += weights[e] * v[columns[e]]
    return value


def uncouple(
    k: int, contacts: int, kinds: Ints, mu: Doubles, motion: Doubles, H: Doubles, a: Doubles,
    friction: Doubles,
) -> int:  # fmt: skip
    """Give contacts that leave a diagonal alone, so that 0 is their force; return how many slide.

    The diagonal is the largest of H: rows of zeros or nearly so would leave the force open.

    Parameters
    ----------
    friction : (contacts,) result: mu of contacts at rest, else 0.
    """
    largest = 0.0
    for i in range(k):
        largest = max(largest, H[i * k + i])
    largest = largest if largest > 0.0 else 1.0
    sliding = 0
    at = 0
    for c in range(contacts):
        size = max(kinds[c], 1)
        friction[c] = mu[c]
        if motion[MOTION * c] == LEAVING:
            friction[c] = 0.0
            for i in range(at, at + size):
                for j in range(k):
                    H[i * k + j], H[j * k + i] = 0.0, 0.0
                H[i * k + i], a[i] = largest, 0.0
        elif motion[MOTION * c] == SLIDING:
            friction[c] = 0.0
            sliding += 1
        at += size
    return sliding


def slant(
    k: int, contacts: int, kinds: Ints, mu: Doubles, motion: Doubles, H: Doubles, f: Doubles
) -> None:
    """Replace the normal columns of contacts that slide by those of e_N - mu v_T / |v_T|."""
    at = 0
    for c in range(contacts):
        if motion[MOTION * c] == SLIDING:
            x, y = mu[c] * motion[MOTION * c + 1], mu[c] * motion[MOTION * c + 2]
            along, aside, normal = H[at * k :], H[(at + 1) * k :], H[(at + 2) * k :]
            for i in range(k):
                normal[i] -= x * along[i] + y * aside[i]
        if motion[MOTION * c] != AT_REST and kinds[c] == POINT:
            f[at], f[at + 1] = 0.0, 0.0
        at += max(kinds[c], 1)


def add_friction(contacts: int, kinds: Ints, mu: Doubles, motion: Doubles, f: Doubles) -> None:
    """Write the friction of contacts that slide, which follows from their normal forces."""
    at = 0
    for c in range(contacts):
        if motion[MOTION * c] == SLIDING:
            f[at] = -mu[c] * motion[MOTION * c + 1] * f[at + 2]
            f[at + 1] = -mu[c] * motion[MOTION * c + 2] * f[at + 2]
        at += max(kinds[c], 1)


def is_decided(
    k: int, contacts: int, law: int, kinds: Ints, mu: Doubles, motion: Doubles, H: Doubles,
    a: Doubles, f: Doubles, weights: Doubles, regimes: Doubles, slide: Doubles, rest: Doubles,
) -> bool:  # fmt: skip
    """Return whether the matrix of the sliding contacts' normal rows is a P-matrix.

    Parameters
    ----------
    regimes, slide : those of :func:`~delassus.contact_forces.newton.find_regimes`: rows of
        contacts at rest that push are eliminated. Those of contacts that slide are overwritten.
    weights : (k,) work.
    """
    E, A, b, work = rest[0:], rest[k * k :], rest[2 * k * k :], rest[2 * k * k + k :]
    for c in range(contacts):
        if motion[MOTION * c] == SLIDING:
            regimes[c] = float(NORMAL)
        elif motion[MOTION * c] == LEAVING:
            regimes[c] = float(OPEN)
    for i in range(k):
        weights[i] = DECIDED
    rows = reduced(k, contacts, law, kinds, mu, H, a, weights, f, regimes, slide, E, A, b)
    # Rows that push at rest come first in A, so that elimination leaves the other ones.
    resting = sorted_rows(contacts, kinds, motion, regimes, rows, A, E, b)
    for p in range(resting):
        pivot = p
        for i in range(p + 1, resting):
            if abs(E[i * rows + p]) > abs(E[pivot * rows + p]):
                pivot = i
        if not abs(E[pivot * rows + p]) > 0.0:
            return False
        if pivot != p:
            for j in range(p, rows):
                E[p * rows + j], E[pivot * rows + j] = E[pivot * rows + j], E[p * rows + j]
        inverse = 1.0 / E[p * rows + p]
        for i in range(p + 1, rows):
            factor = E[i * rows + p] * inverse
            for j in range(p + 1, rows):
                E[i * rows + j] -= factor * E[p * rows + j]
    many = rows - resting
    for i in range(many):
        for j in range(many):
            A[i * many + j] = E[(resting + i) * rows + resting + j]
    if is_dissipative(many, A, work):
        return True
    return many <= MOST_ROWS and has_positive_minors(many, A, work)


def sorted_rows(
    contacts: int, kinds: Ints, motion: Doubles, regimes: Doubles, rows: int, A: Doubles,
    B: Doubles, place: Doubles,
) -> int:  # fmt: skip
    """Write A to B with the rows and columns of contacts at rest first; return how many these are.

    Parameters
    ----------
    place : (rows,) work.
    """
    resting = 0
    for turn in range(2):
        row = 0
        at = resting
        for c in range(contacts):
            count = 2 if regimes[c] == SLIDES else held_rows(kinds[c], regimes[c])
            own_turn = 1 if motion[MOTION * c] == SLIDING else 0
            for i in range(row, row + count):
                if own_turn == turn:
                    place[i] = float(at)
                    at += 1
            row += count
        if turn == 0:
            resting = at
    for i in range(rows):
        for j in range(rows):
            B[int(place[i]) * rows + int(place[j])] = A[i * rows + j]
    return resting


def is_dissipative(n: int, A: Doubles, K: Doubles) -> bool:
    """Return whether the symmetric part of A is positive definite, which makes A a P-matrix."""
    for i in range(n):
        for j in range(n):
            K[i * n + j] = 0.5 * (A[i * n + j] + A[j * n + i])
    return cholesky(n, K)


def has_positive_minors(n: int, A: Doubles, work: Doubles) -> bool:
    """Return whether all principal minors are positive (Tsatsomeros and Li, 2000).

    They are where the first entry is positive, and the rest of A and its Schur complement both
    have positive minors.

    Parameters
    ----------
    work : (n, n) for A's rest and as many for each smaller size.
    """
    if n == 0:
        return True
    if not A[0] > 0.0:
        return False
    m = n - 1
    for i in range(m):
        for j in range(m):
            work[i * m + j] = A[(i + 1) * n + j + 1]
    if not has_positive_minors(m, work, work[m * m :]):
        return False
    inverse = 1.0 / A[0]
    for i in range(m):
        factor = A[(i + 1) * n] * inverse
        for j in range(m):
            work[i * m + j] = A[(i + 1) * n + j + 1] - factor * A[j + 1]
    return has_positive_minors(m, work, work[m * m :])
