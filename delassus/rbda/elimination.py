"""Small linear systems over scalars, solved by pivoted elimination without a branch.

Rows are chosen by the size of their pivot at run time: a compare-and-swap of rows is a few
:func:`~delassus.scalars.functions.select`, so a swap is traced, vectorised and compiled like
any other operation. The *pattern* of the system says which entries are constant: a constant pivot
of sufficient size needs no comparison, and structural zeros stay.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from delassus.scalars.duals import VARYING
from delassus.scalars.functions import (
    Matrix,
    Scalar,
    Vector,
    absolute,
    is_zero,
    regular,
    select,
)

SINGULAR = 1e-6
"""Smallest pivot of a regular system. Rows are angles [rad] or shares of the loop's size;
positions are known only to about the square root of the remaining gap, which is as coarse."""
_GOOD = 0.1
"""A constant is a pivot without comparison if it is at least this share of its row."""
_CANCELLED = 1e-12
"""Relative size below which a difference of constants is the rounding error of a zero."""


@dataclass(frozen=True, eq=False)
class Solved:
    """The result of :func:`solve`.

    Attributes
    ----------
    x : (u, b), A x = B for the rows that were chosen.
    determinant : of the chosen rows of A up to a constant factor: for as many rows as
        unknowns, a function of the configuration that vanishes where A is singular.
    """

    x: Matrix
    determinant: Scalar


def solve(
    a: Matrix,
    b: Matrix,
    a_pattern: Matrix,
    b_pattern: Matrix,
    what: str,
    guarded: bool = True,
) -> Solved:
    """Solve A x = B with at least as many rows as unknowns, by those with the best pivots.

    Parameters
    ----------
    a, b : (r, u) and (r, k).
    a_pattern, b_pattern : A and B with varying scalars; entries that are floats are constant.
    what : name of the system in error messages.
    guarded : report a singular A; False for callers that need only the determinant.

    Raises
    ------
    NumericalError
        On numbers, if A is singular; in a trace only if A is singular in every configuration.
    """
    unknowns = len(a[0])
    rows = [list(left) + list(right) for left, right in zip(a, b, strict=True)]
    pattern = [list(left) + list(right) for left, right in zip(a_pattern, b_pattern, strict=True)]
    system = _System(rows, pattern, unknowns, what, guarded)
    while system.columns:
        row, column = system.constant_pivot() or system.chosen_pivot()
        system.eliminate(row, column)
    return Solved(system.substituted(), system.determinant)


class _System:
    """Rows of [A | B] during elimination, with their pattern."""

    def __init__(
        self, rows: Matrix, pattern: Matrix, unknowns: int, what: str, guarded: bool
    ) -> None:
        self.columns = list(range(unknowns))
        self.determinant: Scalar = 1.0
        self._rows, self._pattern = rows, pattern
        self._unknowns, self._what, self._guarded = unknowns, what, guarded
        self._left = list(range(len(rows)))
        self._pivots: list[tuple[int, int, Scalar]] = []

    def constant_pivot(self) -> tuple[int, int] | None:
        """Return row and column of the constant pivot with the least fill-in, or None."""
        best: tuple[tuple[int, float], int, int] | None = None
        for row in self._left:
            entries = {c: self._pattern[row][c] for c in self.columns}
            sizes = {c: abs(e) for c, e in entries.items() if type(e) is float and e != 0.0}
            if not sizes:
                continue
            # Entries that vary are of the order of 1.
            largest = max(*sizes.values(), 0.0 if self._all_constant(entries.values()) else 1.0)
            filled = sum(not is_zero(entry) for entry in self._pattern[row])
            for column, size in sizes.items():
                if size < _GOOD * largest:
                    continue
                others = sum(not is_zero(self._pattern[r][column]) for r in self._left)
                merit = ((filled - 1) * (others - 1), -size)
                if best is None or merit < best[0]:
                    best = merit, row, column
        return None if best is None else best[1:]

    @staticmethod
    def _all_constant(entries: Iterable[Scalar]) -> bool:
        return all(type(entry) is float for entry in entries)

    def chosen_pivot(self) -> tuple[int, int]:
        """Move the row with the largest pivot up; return the indices of row and column."""
        candidates = {
            column: [row for row in self._left if not is_zero(self._pattern[row][column])]
            for column in self.columns
        }
        column = min(candidates, key=lambda row: len(candidates[row]))
        found = candidates[column]
        if not found:
            regular(0.0, SINGULAR, self._what)
        for upper, lower in zip(found[-2::-1], found[:0:-1], strict=True):
            self._order(upper, lower, column)
        if self._guarded:
            regular(self._rows[found[0]][column], SINGULAR, self._what)
        return found[0], column

    def _order(self, upper: int, lower: int, column: int) -> None:
        """Swap two rows where the lower one has the larger entry."""
        first, second = self._rows[upper], self._rows[lower]
        larger = absolute(second[column]) - absolute(first[column])
        for c in [*self.columns, *range(self._unknowns, len(first))]:
            patterns = self._pattern[upper][c], self._pattern[lower][c]
            if is_zero(patterns[0]) and is_zero(patterns[1]):
                continue
            first[c], second[c] = (
                select(larger, second[c], first[c]),
                select(larger, first[c], second[c]),
            )
            # The order of two constants is known only at a configuration.
            self._pattern[upper][c] = self._pattern[lower][c] = VARYING
        self.determinant = self.determinant * select(larger, -1.0, 1.0)

    def eliminate(self, row: int, column: int) -> None:
        """Make the column zero in all remaining rows."""
        self._left.remove(row)
        self.columns.remove(column)
        pivot, pivot_pattern = self._rows[row][column], self._pattern[row][column]
        inverse = 1.0 / pivot
        self._pivots.append((row, column, inverse))
        self.determinant = self.determinant * pivot
        for other in self._left:
            if is_zero(self._pattern[other][column]):
                continue
            factor = self._rows[other][column] * inverse
            factor_pattern = self._pattern[other][column] / pivot_pattern
            for c in [*self.columns, *range(self._unknowns, len(self._rows[row]))]:
                taken = factor_pattern * self._pattern[row][c]
                if is_zero(taken):
                    continue
                kept = _difference(self._pattern[other][c], taken)
                self._pattern[other][c] = kept
                self._rows[other][c] = (
                    0.0 if is_zero(kept) else self._rows[other][c] - factor * self._rows[row][c]
                )

    def substituted(self) -> Matrix:
        """Return x, by back-substitution."""
        count = len(self._rows[0]) - self._unknowns
        x: Matrix = [[] for _ in range(self._unknowns)]
        for row, column, inverse in reversed(self._pivots):
            later = [c for c in range(self._unknowns) if x[c]]
            values = []
            for k in range(count):
                value = self._rows[row][self._unknowns + k]
                for c in later:
                    if not is_zero(self._pattern[row][c]):
                        value = value - self._rows[row][c] * x[c][k]
                values.append(value * inverse)
            x[column] = values
        return x


def _difference(a: Scalar, b: Scalar) -> Scalar:
    """Return a − b; differences of constants within rounding of zero are 0.0."""
    value = a - b
    if type(value) is float and abs(value) <= _CANCELLED * (abs(a) + abs(b)):
        return 0.0
    return value


def solve_exactly(a: Matrix, b: Matrix, what: str) -> Matrix:
    """Return x with A x = B for constant A and B, in rational arithmetic, rounded once.

    Rows that depend linearly on earlier rows are ignored.

    Raises
    ------
    NumericalError
        If A does not have full column rank.
    """
    unknowns = len(a[0])
    rows: list[list[Fraction]] = []
    for left, right in zip(a, b, strict=True):
        largest = max(map(abs, [*left, *right]))
        rows.append([Fraction(value) / Fraction(largest) for value in [*left, *right]])
    pivots: Vector = []
    for column in range(unknowns):
        row = max(rows, key=lambda entries: abs(entries[column]), default=None)
        if row is None or abs(row[column]) <= _CANCELLED:
            regular(0.0, SINGULAR, what)
        else:
            rows.remove(row)
            pivot = [value / row[column] for value in row]
            rows = [_without(entries, pivot, column) for entries in rows]
            pivots = [_without(entries, pivot, column) for entries in pivots]
            pivots.append(pivot)
    return [[float(value) for value in row[unknowns:]] for row in pivots]


def _without(row: list[Fraction], pivot: list[Fraction], column: int) -> list[Fraction]:
    factor = row[column]
    return [a - factor * b for a, b in zip(row, pivot, strict=True)] if factor else row
