"""The order of elimination for the unknowns of a robot's dynamics, chosen once, off-line.

From the leaves of the tree to its root, link by link, as a multifrontal solver goes by its
elimination tree (I. S. Duff, J. K. Reid, "The multifrontal solution of indefinite sparse
symmetric linear equations", 1983): of a link's unknowns the cheapest pivot first (H. M. Markowitz,
1957), among pivots that are large enough at all sample postures; unknowns without such a pivot
wait for the parent. The order is accepted if it solves the system at these postures. This is
Problem 2 of F. Nori, "Inverse, forward and other dynamic computations computationally optimized
with sparse matrix factorizations", for the worst-case sparsity pattern of its section IV-D; the
paper leaves the choice to UMFPACK, on scalars.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np

from delassus.errors import NumericalError
from delassus.model.robot import WORLD
from delassus.model.spatial import Array
from delassus.rbda.symmetric_system import Guard, Pivot, Row, SymmetricSystem, unguarded
from delassus.scalars.functions import Scalar, regular

Number: TypeAlias = "float | Array"
"""A constant, or an array of values over the sample postures."""

LARGE = (1e-6, 1e-4, 1e-2)
"""Least ratios of a pivot to the entries that it divides; tried in order until the solution is
exact enough."""
_LEAST_VARIANCE = 1e-9
"""Least ratio of the variance of a measurement to the entries that it divides; smaller than for
other pivots, as variances are exact."""
_LEAST_DIVISOR = 1e-9
"""Least ratio of a divisor at run time to its least size at the sample postures; below, the
configuration is singular."""
_LARGEST_RESIDUAL = 1e-9
"""Largest accepted relative residual of the solution at the sample postures."""
_NEGLIGIBLE = 1e-5
"""Share of an equation's largest coefficient times the largest unknown, below which terms are
rounding errors of zeros, as the moments of a hand without load."""


class PlaceTree(NamedTuple):
    """Per place, the unknowns of the place, and the next place towards the root or WORLD."""

    unknowns: list[list[int]]
    parents: list[int]


@dataclass(frozen=True)
class PivotOrder:
    """Pivots in order of elimination, and the sizes of their divisors at the sample postures.

    Attributes
    ----------
    pivots : tuples of one unknown, or of two that are eliminated together.
    divisors : by number of the pivot, the least size of its divisor.
    """

    pivots: tuple[Pivot, ...]
    divisors: tuple[tuple[int, float], ...]

    def guard(self, divisor: Scalar, number: int) -> Scalar:
        """Return the divisor, checked to be not far smaller than at the sample postures."""
        return regular(divisor, _LEAST_DIVISOR * self._sizes[number], "the measured system")

    @cached_property
    def _sizes(self) -> dict[int, float]:
        return dict(self.divisors)


def order_of(
    samples: Sequence[SymmetricSystem], pattern: SymmetricSystem, tree: PlaceTree
) -> PivotOrder:
    """Return an order of elimination for the unknowns of a system.

    Parameters
    ----------
    samples : the system at some postures, as floats.
    pattern : the system over symbols; entries that are floats are constant.
    tree : places of the unknowns.

    Raises
    ------
    NumericalError
        If no order gives the solution at all of the postures to nine digits.
    """
    for large in LARGE:
        pivots = _pivots_of(_stacked(samples, pattern), tree, large)
        sizes: dict[int, float] = {}

        def noted(divisor: Number, number: int, sizes: dict[int, float] = sizes) -> Number:
            sizes[number] = float(np.abs(divisor).min())
            return divisor

        tried = _stacked(samples, pattern, noted)
        for pivot in pivots:
            tried.eliminate(pivot)
        if not tried.rows and _residual(tried, _stacked(samples, pattern)) < _LARGEST_RESIDUAL:
            return PivotOrder(pivots, tuple(sizes.items()))
    raise NumericalError(
        "no order of elimination is accurate at the sample postures: deviations of measurements "
        "differ too much, or a measurement hardly depends on the unknowns"
    )


def _stacked(
    samples: Sequence[SymmetricSystem], pattern: SymmetricSystem, guard: Guard = unguarded
) -> SymmetricSystem:
    """Return one system whose entries are arrays over all postures."""
    found = SymmetricSystem(guard)
    for i, row in pattern.rows.items():
        for j, value in row.items():
            if i <= j:
                constant = type(value) is float
                numbers = [sample.rows[i].get(j, 0.0) for sample in samples]
                found.add(i, j, value if constant else np.array(numbers))
        found.add_right(i, np.array([sample.right.get(i, 0.0) for sample in samples]))
    return found


def _residual(solved: SymmetricSystem, system: SymmetricSystem) -> float:
    """Return the largest component of Z x − r, over the sum of the sizes of its terms."""
    worst = 0.0
    x = {j: solved.solution(j) for j in system.rows}
    largest = np.max(np.abs(np.stack([*np.broadcast_arrays(*x.values())])), axis=0)
    for i, row in system.rows.items():
        terms = [value * x[j] for j, value in row.items()]
        size = np.abs(system.right[i]) + sum(np.abs(term) for term in terms)
        most = max(float(np.max(np.abs(value))) for value in row.values())
        size = np.maximum(size, _NEGLIGIBLE * most * largest)
        off = np.abs(sum(terms) - system.right[i])
        worst = max(worst, float(np.max(off / np.where(size > 0.0, size, 1.0))))
    return worst


def _pivots_of(system: SymmetricSystem, tree: PlaceTree, large: float) -> tuple[Pivot, ...]:
    """Eliminate all unknowns that have pivots; return the pivots."""
    _substitute(system, large)
    waiting = [list(unknowns) for unknowns in tree.unknowns]
    left: list[int] = []
    for place in _leaves_first(tree.parents):
        unknowns = [k for k in waiting[place] if k in system.rows]
        rest = _eliminated(system, unknowns, large)
        (left if tree.parents[place] == WORLD else waiting[tree.parents[place]]).extend(rest)
    _eliminated(system, left, large)
    return tuple(system.eliminated)


def _leaves_first(parents: Sequence[int]) -> list[int]:
    children: dict[int, list[int]] = {}
    for place, parent in enumerate(parents):
        children.setdefault(parent, []).append(place)
    order: list[int] = []
    waiting = list(children[WORLD])
    while waiting:
        order.append(waiting.pop())
        waiting += children.get(order[-1], [])
    return order[::-1]


def _substitute(system: SymmetricSystem, large: float) -> None:
    """Eliminate unknowns that follow from one equation alone, or are in one alone, repeatedly."""
    waiting = list(system.rows)
    while waiting:
        i = waiting.pop()
        row = system.rows.get(i, {})
        if len(row) != 1 or i in row:
            continue
        (j,) = row
        if _two(system.rows, i, j, large):
            waiting += [k for k in system.rows[j] if k not in (i, j)]
            system.eliminate((i, j))


def _eliminated(system: SymmetricSystem, unknowns: list[int], large: float) -> list[int]:
    """Eliminate unknowns, the cheapest first, while pivots exist; return the remaining ones."""
    left = dict.fromkeys(unknowns)
    while left:
        found = next(_pivots(system, left, large), None)
        if found is None:
            break
        system.eliminate(found)
        for k in found:
            del left[k]
    return list(left)


def _pivots(system: SymmetricSystem, left: Mapping[int, None], large: float) -> Iterator[Pivot]:
    """Yield pivots that are large enough, the cheapest first."""
    rows = system.rows
    candidates: list[tuple[float, Pivot]] = []
    for i in left:
        row = rows[i]
        n = len(row) - (i in row)
        if i in row:
            candidates.append((0.5 * n * (n + 1) + n, (i,)))
        for j in row:
            if j > i and j in left and not (i in row and j in rows[j]):
                candidates.append((_cost_of_two(rows, i, j), (i, j)))
    for _, pivot in sorted(candidates):
        i, j = pivot[0], pivot[-1]
        if _one(rows, i, large) if i == j else _two(rows, i, j, large):
            yield pivot


def _cost_of_two(rows: Mapping[int, Row], i: int, j: int) -> float:
    """Return the number of products of v wᵀ, including the products to compute v."""
    first, second = (i, j) if j not in rows[j] else (j, i)
    n_first = len(rows[first]) - 1 - (first in rows[first])
    n_second = len(rows[second]) - 1
    unit = type(rows[i][j]) is float and abs(rows[i][j]) == 1.0
    diagonal = n_first if first in rows[first] else 0
    return n_first * n_second + diagonal + (0 if unit else min(n_first, n_second))


def _one(rows: Mapping[int, Row], i: int, large: float) -> bool:
    diagonal = rows[i][i]
    others = [value for j, value in rows[i].items() if j != i]
    # Negative constants are variances.
    noise = type(diagonal) is float and diagonal < 0.0
    return _is_large(diagonal, others, _LEAST_VARIANCE if noise else large)


def _two(rows: Mapping[int, Row], i: int, j: int, large: float) -> bool:
    """Return whether the coupling of i and j is large against the row without diagonal entry."""
    first = j if j not in rows[j] else i
    second = i if first == j else j
    others = [value for k, value in rows[first].items() if k != second]
    return _is_large(rows[i][j], others, large)


def _is_large(pivot: Number, others: Sequence[Number], large: float) -> bool:
    size = np.abs(pivot)
    most: Number = 0.0
    for value in others:
        most = np.maximum(most, np.abs(value))
    return bool(np.all(size > large * most) and np.all(size > 0.0))
