"""The figures of Nori's paper: operations of sparse LU by other libraries and of our kernels.

F. Nori, "Inverse, forward and other dynamic computations computationally optimized with sparse
matrix factorizations": figure 1, forward dynamics of a serial chain (section V); inverse
dynamics, triangular (Property 1); figure 2, torques of a chain with load cells at both ends
(section VI). The third curve of figure 1, the matrix form of the articulated-body algorithm
(Property 2), is :mod:`benchmarks.papers.matrix_aba`. UMFPACK, the paper's, is asked where its
library is installed (Debian: ``libumfpack5``).
"""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from scipy.sparse import csc_matrix
from scipy.sparse.linalg import splu

from benchmarks import style
from benchmarks.mechanisms import Builder, rotation
from benchmarks.pages import Places, Table, table
from benchmarks.papers import matrix_aba
from benchmarks.papers.kept import Kept
from benchmarks.papers.page import Findings, under_headings
from delassus import Robot, Transform
from delassus.drawing.figures import SERIES
from delassus.dynamics import Dynamics
from delassus.measured import (
    ExternalWrench,
    ForceTorqueSensor,
    JointAcceleration,
    JointTorque,
    Measurement,
    SparseDynamics,
)
from delassus.measured.observability import dense
from delassus.measured.quantities import Quantity
from delassus.measured.system import System
from delassus.model import WORLD, Frame, Inertia
from delassus.model.spatial import Array

SIZES = (2, 4, 6, 8, 12, 16, 20, 24, 30)
CELLS = (8, 10, 12, 16, 20, 24, 30)
"""Fewer links leave no joint whose acceleration is known."""
KERNEL = "our kernel, all of it"
UMFPACK = "LU, UMFPACK's"
FACTORS = "LU, UMFPACK's, factors alone"
ABA = "articulated-body algorithm, 429N - 507"
RNEA = "Newton-Euler, 231N - 124"
COUNTER = "the authors' counter"
UPDATES = "all updates"
_NOT_DRAWN = (FACTORS, "LU, SuperLU's MMD")
_LABELS = {
    KERNEL: "SparseDynamics, all of it", "C-ABA, all of it": "C-ABA or C-RNEA, all of it",
    ABA: "formula 429N − 507 or 231N − 124",
}  # fmt: skip
"""Labels of curves whose names differ."""
_UMFPACK_FLOPS, _UMFPACK_ENTRIES, _UMFPACK_INFO = 42, 43, 90  # entries: of L, then of U
_ALL_BUT_ONE = (0, 1, 2, 3, 4)
_SLIGHTLY = 0.99
"""Ratio of the lengths of neighbouring links of a chain whose matrices have no tiny entries."""


def chain(links: int, taper: float = 0.9, skew: float = 1.5) -> Robot:
    """Return the serial chain ``autoTree(links, 1, skew, taper)`` of Featherstone's spatial_v2."""
    build = Builder()
    for k in range(links):
        length, mass = taper**k, taper ** (3 * k)
        before = taper ** (k - 1) if k else 0.0
        # xlt first, then rotx: the offset is along x, which the turn keeps.
        turn = rotation((1.0, 0.0, 0.0), skew) if k else np.eye(3)
        place = Transform(turn, np.array([before, 0.0, 0.0]))
        about = mass * length**2 * np.diag([0.0025, 1.015 / 12.0, 1.015 / 12.0])
        inertia = Inertia.from_com(mass, np.array([0.5 * length, 0.0, 0.0]), about)
        build.add(k - 1 if k else WORLD, place, inertia)
    tip = Transform(np.eye(3), np.array([taper ** (links - 1), 0.0, 0.0]))
    frames = [Frame("first", 0, Transform()), Frame("tip", links - 1, tip)]
    return build.robot(f"chain {links}", frames)


@dataclass(frozen=True)
class Case:
    """A question of the paper.

    Attributes
    ----------
    figure : its place in the paper.
    title : of its plot.
    sizes : numbers of links.
    known, wanted : quantities of a chain with some links.
    ours : operations of our hand-written algorithm, and its name; None where there is none.
    published : the same of the paper's rival by formula.
    taper : of the chain.
    """

    figure: str
    title: str
    sizes: tuple[int, ...]
    known: Callable[[int], list[Quantity]]
    wanted: Callable[[int], list[Quantity]]
    ours: tuple[str, str] | None
    published: tuple[str, Callable[[int], int]] | None
    taper: float = 0.9


def _accelerations(links: Sequence[int]) -> list[Quantity]:
    return [JointAcceleration(f"joint{k}") for k in links]


def _torques(n: int) -> list[Quantity]:
    return [JointTorque(f"joint{k}") for k in range(n)]


def _cells(n: int) -> list[Quantity]:
    """Return the known quantities: without two accelerations per end and both yaw moments."""
    ends: list[Quantity] = [
        ForceTorqueSensor("first", _ALL_BUT_ONE), ExternalWrench("tip", _ALL_BUT_ONE)
    ]  # fmt: skip
    return [*_accelerations(range(2, n - 2)), *ends]


CASES = (
    Case("Figure 1", "forward dynamics", SIZES, _torques, lambda n: _accelerations(range(n)),
         ("C-ABA, all of it", "forward"), (ABA, lambda n: 429 * n - 507)),
    Case("Property 1", "inverse dynamics", (*SIZES, 60, 100),
         lambda n: _accelerations(range(n)), _torques,
         ("C-RNEA, all of it", "inverse"), (RNEA, lambda n: 231 * n - 124)),
    Case("Figure 2", "torques from load cells at both ends", CELLS, _cells, _torques,
         None, None, 1.0),
)  # fmt: skip


def operations(case: Case, links: int) -> dict[str, int]:
    """Return the operations of all contenders."""
    robot = chain(links, case.taper)
    known, wanted = case.known(links), case.wanted(links)
    system = System(robot, [*known, *wanted])
    matrix = _matrix(system, known)
    solved: dict[str, int] = {}
    if case is CASES[0]:
        # The pattern is that of a chain that tapers less, where no entry is as small as rounding.
        alike = chain(links, _SLIGHTLY)
        solved = matrix_aba.operations(System(alike, [*known, *wanted]))
    found = {f"LU, {order}": count for order, count in _lu(matrix).items()}
    factors = _umfpack(csc_matrix(matrix))
    if factors is not None:
        found |= {FACTORS: factors.operations, UMFPACK: factors.operations + 2 * factors.entries}
    kernel = SparseDynamics(
        robot, [Measurement(each) for each in known], wanted, covariances=False, cache=False
    )
    assert kernel.kind == "square"
    found |= solved
    found[KERNEL] = kernel.operations.total
    if case.ours is not None:
        name, function = case.ours
        found[name] = Dynamics(robot, cache=False)._function(function).operations.total
    if case.published is not None:
        name, formula = case.published
        found[name] = formula(links)
    return found


def _matrix(system: System, known: Sequence[Quantity]) -> Array:
    """Return D and Y, one below the other, at a random posture."""
    instant = system.at(matrix_aba.posture(system))
    rows = [*instant.equations(), *(row for each in known for row in instant.reading(each))]
    return dense(rows, system.columns.size)


def _lu(matrix: Array) -> dict[str, int]:
    """Return operations of a factorisation and solution by several orders of the columns."""
    A = csc_matrix(matrix)
    return {
        label: _of_factors(splu(A, permc_spec=order))
        for label, order in (
            ("columns as they are", "NATURAL"),
            ("SuperLU's COLAMD", "COLAMD"),
            ("SuperLU's MMD", "MMD_AT_PLUS_A"),
        )
    }


def _of_factors(lu: splu) -> int:
    """Return operations, not counting products with ±1, of factors and solution."""
    L, U = lu.L.tocsc(), lu.U.tocsr()
    total = 0
    for k in range(L.shape[0]):
        column = L.data[L.indptr[k] : L.indptr[k + 1]][
            L.indices[L.indptr[k] : L.indptr[k + 1]] > k
        ]
        right = U.data[U.indptr[k] : U.indptr[k + 1]][U.indices[U.indptr[k] : U.indptr[k + 1]] > k]
        pivot = U[k, k]
        many, wide = _not_unit(column), _not_unit(right)
        total += 0 if abs(pivot) == 1.0 else len(column) + 1
        total += len(column) * len(right) + many * wide
        total += len(column) + len(right) + many + wide
    return total


def _not_unit(values: Array) -> int:
    return int(np.count_nonzero(np.abs(values) != 1.0))


def released(case: Case, links: int) -> dict[str, int]:
    """Return the operations of both :func:`counters` by UMFPACK's permutations, if it is there."""
    known = case.known(links)
    matrix = _matrix(System(chain(links, case.taper), [*known, *case.wanted(links)]), known)
    factors = _umfpack(csc_matrix(matrix))
    if factors is None:
        return {}
    permuted = matrix[np.ix_(factors.rows, factors.columns)]
    return counters(permuted, without_units=case is CASES[0])


def counters(A: Array, without_units: bool) -> dict[str, int]:
    """Return operations of LU without pivoting, and of a solution, as two counters have them.

    The authors' released counter takes the elementwise product of column and row for the update
    of each pivot, which is the outer product; :data:`UPDATES` are those of the outer product.

    Parameters
    ----------
    without_units : whether their counter means to leave out products by ±1, as for figure 1; it
        subtracts the entries that are not 1 and those that are not −1.
    """
    R, theirs, every = A.copy(), 0, 0
    for k in range(len(R) - 1):
        column, row = R[k + 1 :, k], R[k, k + 1 :]
        column /= R[k, k]
        many, both = np.count_nonzero(column), (column != 0.0) & (row != 0.0)
        theirs += many + 2 * np.count_nonzero(both)
        if without_units:
            entries = np.concatenate([column[both], row[both]])
            theirs -= np.count_nonzero(entries != 1.0) + np.count_nonzero(entries != -1.0)
        every += many + 2 * many * np.count_nonzero(row)
        R[k + 1 :, k + 1 :] -= np.outer(column, row)
    # Both substitutions as in their counter, with a right side without zeros.
    solution = 2 * np.count_nonzero(R) + 2 * len(R)
    return {COUNTER: int(theirs + solution), UPDATES: int(every + solution)}


class Umfpack(NamedTuple):
    """What UMFPACK finds for a matrix.

    Attributes
    ----------
    operations, entries : of its factors, without their diagonals.
    rows, columns : permutations.
    """

    operations: int
    entries: int
    rows: Array
    columns: Array


def _umfpack(A: csc_matrix) -> Umfpack | None:
    """Return what UMFPACK finds; None where it is absent."""
    path = ctypes.util.find_library("umfpack")
    if path is None:
        return None
    library = ctypes.CDLL(path)
    n = ctypes.c_int(A.shape[0])
    starts, rows = (np.ascontiguousarray(a, dtype=np.int32) for a in (A.indptr, A.indices))
    arrays = [ctypes.c_void_p(a.ctypes.data) for a in (starts, rows, A.data)]
    symbolic, numeric = ctypes.c_void_p(), ctypes.c_void_p()
    info, permutations = np.zeros(_UMFPACK_INFO), np.zeros((2, A.shape[0]), dtype=np.int32)
    about = ctypes.c_void_p(info.ctypes.data)
    status = library.umfpack_di_symbolic(n, n, *arrays, ctypes.byref(symbolic), None, about)
    if status == 0:
        status = library.umfpack_di_numeric(*arrays, symbolic, ctypes.byref(numeric), None, about)
    if status == 0:
        wanted = [ctypes.c_void_p(each.ctypes.data) for each in permutations]
        status = library.umfpack_di_get_numeric(*[None] * 6, *wanted, *[None] * 3, numeric)
    library.umfpack_di_free_symbolic(ctypes.byref(symbolic))
    library.umfpack_di_free_numeric(ctypes.byref(numeric))
    if status != 0:
        raise RuntimeError(f"UMFPACK returned {status}")
    entries = int(info[_UMFPACK_ENTRIES : _UMFPACK_ENTRIES + 2].sum()) - 2 * A.shape[0]
    return Umfpack(int(info[_UMFPACK_FLOPS]), entries, *permutations)


def results(kept: Kept, case: Case, links: int) -> dict[str, int]:
    """Return the operations of all contenders, kept while a run lasts."""
    found: dict[str, int] = kept.of(f"{case.title}, N = {links}", partial(operations, case, links))
    return found


def _table(kept: Kept, case: Case, sizes: Sequence[int]) -> Table:
    found = {links: results(kept, case, links) for links in sizes}
    rows = ((links, *counts.values()) for links, counts in found.items())
    return table(("N", *found[sizes[0]]), rows, 0)


def _counters(kept: Kept, few: int | None) -> Table | str:
    """Return the table of both counters."""
    rows = []
    for case in (CASES[0], CASES[2]):
        for links in case.sizes[:few]:
            found = _released(kept, case, links)
            if not found:
                return "UMFPACK, whose permutations the counters take, was absent in this run."
            formula = results(kept, case, links).get(ABA, "")
            rows.append((case.figure, links, *found.values(), formula))
    return table(("figure", "N", COUNTER, UPDATES, ABA), rows)


def _released(kept: Kept, case: Case, links: int) -> dict[str, int]:
    key = f"{case.title}, N = {links}, counters"
    found: dict[str, int] = kept.of(key, partial(released, case, links))
    return found


def places(kept: Kept, quick: bool) -> Places:
    """Return the results of the page; a quick run has the two smallest chains of each table."""
    few = 2 if quick else None
    sections = {f"{c.figure}: {c.title}": _table(kept, c, c.sizes[:few]) for c in CASES}
    return {"tables": under_headings(sections), "counters": _counters(kept, few)}


def findings(kept: Kept) -> Findings:
    """Yield what a whole run finds of the paper's claims."""
    forward, inverse, cells = CASES
    of_forward, of_inverse, of_cells = (
        {n: results(kept, case, n) for n in case.sizes} for case in CASES
    )
    least = {
        n: min(v for name, v in found.items() if name[:2] == "LU" and name != FACTORS)
        for n, found in of_forward.items()
    }
    fewer = [n for n, found in of_forward.items() if least[n] < found[ABA]]
    n = forward.sizes[-1]
    last = of_forward[n]
    kernel, aba, formula = (last[name] for name in (KERNEL, "C-ABA, all of it", ABA))
    both = _released(kept, forward, n)
    by_both = f"{both[COUNTER]} by {COUNTER}, {both[UPDATES]} with {UPDATES}; " if both else ""
    yield (
        "sparse LU", False,
        f"N = {n}: {by_both}{least[n]} by the best LU without products by ±1, {formula} by the "
        f"formula 429N - 507 ({least[n] / formula:.2f} times); fewer for N = "
        f"{', '.join(map(str, fewer)) or 'none'}. `SparseDynamics`, with the entries of D: "
        f"{kernel}, C-ABA {aba} ({kernel / aba:.2f} times)",
    )  # fmt: skip
    if FACTORS in of_inverse[inverse.sizes[-1]]:
        count = max(found[FACTORS] for found in of_inverse.values())
        yield "order", count == 0, f"operations of UMFPACK's factors: at most {count}"
    yield (
        "lower triangular", True,
        f"largest entry above the diagonal below 1e-9 of the largest; N = {n}: "
        f"{last[matrix_aba.SUBSTITUTION]} operations of the substitution, "
        f"{last[matrix_aba.PRODUCTS]} with the matrix products",
    )  # fmt: skip
    n = cells.sizes[-1]
    ours, rival = of_cells[n][KERNEL], of_cells[n].get(UMFPACK)
    beside = f", {rival} of UMFPACK ({ours / rival:.2f} times)" if rival else ""
    yield (
        "load cells", "the known accelerations",
        f"N = {n}: {ours} operations of `SparseDynamics`{beside}",
    )  # fmt: skip


def figures(kept: Kept) -> Mapping[str, Figure]:
    """Return figures 1 and 2 with the inverse dynamics between them."""
    drawn, places = style.figure(1, len(CASES), (13.0, 5.6))
    styles: dict[str, Mapping[str, Any]] = {}
    cycle = iter(SERIES)
    for ax, case in zip(places, CASES, strict=True):
        rows = {n: results(kept, case, n) for n in case.sizes}
        for name in rows[case.sizes[0]]:
            if name in _NOT_DRAWN:
                continue
            # C-RNEA and its formula stand beside our kernel as C-ABA and its formula do.
            alike = {"C-RNEA, all of it": "C-ABA, all of it", RNEA: ABA}.get(name, name)
            if alike not in styles:
                styles[alike] = next(cycle)
            points = {n: found[name] for n, found in rows.items()}
            style.curve(ax, points, _LABELS.get(alike, alike), styles[alike])
        ax.set_title(f"{case.figure}: {case.title}", fontsize=10)
        style.sizes(ax, [n for n in (2, 4, 8, 16, 30, 60, 100) if n in rows], "links N")
    handles, labels = places[0].get_legend_handles_labels()
    drawn.legend(handles, labels, loc="outside lower center", ncols=4, fontsize="small")
    return {"nori": drawn}
