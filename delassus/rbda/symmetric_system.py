"""A sparse symmetric system over scalars, eliminated in the caller's order.

Least squares under constraints, and the motion of constrained bodies by Gauss's principle, are
both the solution of one symmetric system Z x = r that is sparse and not definite. This module
computes the remainder of the system after some unknowns are eliminated, the solution, and single
entries of the inverse; entries are computed only on request, in the caller's order of pivots. A
pivot is one unknown, or two coupled unknowns: an unknown and the multiplier of the equation that
determines the unknown.
J. R. Bunch, L. Kaufman, "Some stable methods for calculating inertia and solving symmetric
linear systems", 1977; K. Takahashi, J. Fagan, M.-S. Chin, "Formation of a sparse bus impedance
matrix", 1973, for entries of the inverse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from delassus.scalars.functions import Matrix, Scalar, is_zero

Row: TypeAlias = "dict[int, Scalar]"
Pivot: TypeAlias = tuple[int, ...]
"""One unknown, or two that are eliminated together."""

Guard: TypeAlias = "Callable[[Scalar, int], Scalar]"
"""(pivot, number of the pivot) → pivot, guarded by a check."""


def unguarded(pivot: Scalar, number: int) -> Scalar:
    """Return the pivot without a check."""
    return pivot


class SymmetricSystem:
    """The system Z x = r during elimination.

    Parameters
    ----------
    guard : called with every divisor and the number of its pivot.

    Attributes
    ----------
    rows : rows of Z of the remaining unknowns, both halves; structural zeros are absent.
    right : r of the remaining unknowns.
    eliminated : the pivots, in their order.
    """

    def __init__(self, guard: Guard = unguarded) -> None:
        self.rows: dict[int, Row] = {}
        self.right: dict[int, Scalar] = {}
        self.eliminated: list[Pivot] = []
        self._guard = guard
        # Of eliminated unknowns: rows without their pivots; per pivot, the inverse of its block.
        self._own: dict[int, Row] = {}
        self._inverses: list[list[list[Scalar]]] = []
        self._order: dict[int, int] = {}
        self._own_right: dict[int, Scalar] = {}
        self._solution: dict[int, Scalar] = {}
        self._inverse: dict[tuple[int, int], Scalar] = {}

    def add(self, i: int, j: int, value: Scalar) -> None:
        """Add to Z_ij and, where i ≠ j, to Z_ji."""
        for a, b in {(i, j), (j, i)}:
            row = self.rows.setdefault(a, {})
            self.rows.setdefault(b, {})
            total = row.get(b, 0.0) + value
            if is_zero(total):
                row.pop(b, None)
            else:
                row[b] = total

    def add_right(self, i: int, value: Scalar) -> None:
        """Add to r_i."""
        self.rows.setdefault(i, {})
        self.right[i] = self.right.get(i, 0.0) + value

    def eliminate(self, pivot: Pivot) -> None:
        """Eliminate one unknown, or two together.

        Raises
        ------
        ZeroDivisionError
            If the pivot is structurally zero.
        """
        rows = [self.rows.pop(k) for k in pivot]
        block = [[row.get(k, 0.0) for k in pivot] for row in rows]
        inverse = self._inverted(block)
        for row in rows:
            for k in pivot:
                row.pop(k, None)
        for k, row in zip(pivot, rows, strict=True):
            for j in row:
                self.rows[j].pop(k)
        rights = [self.right.pop(k, 0.0) for k in pivot]
        if len(pivot) == 1:
            self._minus_one(rows[0], rights[0], inverse[0][0])
        else:
            self._minus_two(rows, rights, inverse)
        for k, row, right in zip(pivot, rows, rights, strict=True):
            self._own[k], self._own_right[k] = row, right
            self._order[k] = len(self.eliminated)
        self._inverses.append(inverse)
        self.eliminated.append(pivot)

    def _inverted(self, block: Matrix) -> Matrix:
        if len(block) == 1:
            return [[self._reciprocal(block[0][0])]]
        (h, e), (_, g) = block
        if is_zero(g) or is_zero(h):
            by_e = self._reciprocal(e)
            # Products of arrays with structural zeros are arrays, not the float 0.0.
            first, second = (0.0 if is_zero(k) else -k * by_e * by_e for k in (g, h))
            return [[first, by_e], [by_e, second]]
        by = self._reciprocal(h * g - e * e)
        return [[g * by, -e * by], [-e * by, h * by]]

    def _reciprocal(self, pivot: Scalar) -> Scalar:
        # A constant needs no check, and ±1 no division.
        return 1.0 / (pivot if type(pivot) is float else self._guard(pivot, len(self.eliminated)))

    def _minus_one(self, u: Row, right: Scalar, d: Scalar) -> None:
        """Z −= u d uᵀ, r −= u d right."""
        scaled = {i: value * d for i, value in u.items()}
        for i in u:
            for j in u:
                if i <= j:
                    self.add(i, j, -(scaled[i] * u[j]))
            if not is_zero(right):
                self.add_right(i, -(scaled[i] * right))

    def _minus_two(self, rows: list[Row], rights: list[Scalar], inverse: Matrix) -> None:
        """Z −= [u w] B⁻¹ [u w]ᵀ, as v wᵀ + w vᵀ where one of the two has no diagonal entry."""
        (p, e), (_, s) = inverse
        first, second = (0, 1) if is_zero(p) else (1, 0)
        if not is_zero(p) and not is_zero(s):
            for row, other, diagonal in ((0, 1, p), (1, 0, s)):
                left = {
                    i: rows[row].get(i, 0.0) * diagonal + rows[other].get(i, 0.0) * e
                    for i in {**rows[row], **rows[other]}
                }
                self._minus_products(left, rows[row], rights[row], symmetric=False)
            return
        # B⁻¹ = [[0, e], [e, s]]: v = e u + (s / 2) w.
        u, w, s = rows[first], rows[second], s if first == 0 else p
        v = {
            i: u.get(i, 0.0) * e + w.get(i, 0.0) * (0.5 * s)
            for i in ({**u, **w} if not is_zero(s) else u)
        }
        r, t = rights[first], rights[second]
        self._minus_products(v, w, t, symmetric=True)
        value = r * e + t * (0.5 * s)
        if not is_zero(value):
            for i, other in w.items():
                self.add_right(i, -(other * value))

    def _minus_products(self, v: Row, w: Row, right: Scalar, symmetric: bool) -> None:
        """Z −= v wᵀ, if `symmetric` also w vᵀ, r −= v right; the sum over calls is symmetric."""
        for i, value in v.items():
            for j, other in w.items():
                if symmetric:
                    product = value * other
                    self.add(i, j, -(product + product) if i == j else -product)
                elif i <= j:
                    self.add(i, j, -(value * other))
            if not is_zero(right):
                self.add_right(i, -(value * right))

    def solution(self, k: int) -> Scalar:
        """Return x_k of an eliminated unknown, with the remaining unknowns at zero."""
        for pivot in reversed(self.eliminated):
            if k in self._solution:
                break
            if pivot[0] in self._solution:
                continue
            for unknown, value in zip(pivot, self._of_pivot(pivot, self._term), strict=True):
                self._solution[unknown] = value
        return self._solution[k]

    def _term(self, unknown: int) -> Scalar:
        """Return r of an unknown less the terms of unknowns that were eliminated later."""
        value = self._own_right[unknown]
        for j, entry in self._own[unknown].items():
            if j in self._own:
                value = value - entry * self._solution[j]
        return value

    def _of_pivot(self, pivot: Pivot, term: Callable[[int], Scalar]) -> list[Scalar]:
        rest = [term(unknown) for unknown in pivot]
        return [
            sum_of(a * b for a, b in zip(row, rest, strict=True))
            for row in self._inverses[self._order[pivot[0]]]
        ]

    def inverse(self, i: int, j: int) -> Scalar:
        """Return entry (i, j) of Z⁻¹ for eliminated unknowns."""
        asked = self._sorted(i, j)
        waiting = [asked]
        while waiting:
            i, j = waiting[-1]
            pivot = self.eliminated[self._order[i]]
            above = {
                self._sorted(k, j)
                for unknown in pivot
                for k in self._own[unknown]
                if k in self._own
            }
            missing = [entry for entry in above if entry not in self._inverse]
            if missing:
                waiting += missing
                continue
            waiting.pop()
            terms = {unknown: self._inverse_term(unknown, j) for unknown in pivot}
            for unknown, value in zip(
                pivot, self._of_pivot(pivot, terms.__getitem__), strict=True
            ):
                self._inverse[self._sorted(unknown, j)] = value
        return self._inverse[asked]

    def _inverse_term(self, unknown: int, j: int) -> Scalar:
        value: Scalar = float(unknown == j)
        for k, entry in self._own[unknown].items():
            if k in self._own:
                value = value - entry * self._inverse[self._sorted(k, j)]
        return value

    def _sorted(self, i: int, j: int) -> tuple[int, int]:
        """Return two unknowns in the order of their elimination."""
        return (i, j) if (self._order[i], i) <= (self._order[j], j) else (j, i)


def sum_of(terms: Iterable[Scalar]) -> Scalar:
    """Return the sum of terms; unlike :func:`sum`, without adding to a first 0."""
    total: Scalar = 0.0
    for term in terms:
        total = total + term
    return total
