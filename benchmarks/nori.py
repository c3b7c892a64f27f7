"""Figures of Nori's paper: operations of sparse LU libraries and of this package against N.

F. Nori, "Inverse, forward and other dynamic computations computationally optimized with sparse
matrix factorizations": figure 1, forward dynamics of a serial chain; inverse dynamics, triangular;
figure 2, torques of a chain with load cells at both ends. ``python -m benchmarks.nori`` writes
``docs/papers/nori.md`` and ``nori.svg``. UMFPACK, the paper's, is asked where its library is
installed (Debian: ``libumfpack5``).
"""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, ScalarFormatter
from scipy.sparse import csc_matrix
from scipy.sparse.linalg import splu

from benchmarks.arguments import output_of
from benchmarks.mechanisms import rotation
from delassus_ros import Robot, Transform
from delassus_ros.drawing.figures import SERIES, save
from delassus_ros.dynamics import Dynamics
from delassus_ros.measured import (
    ExternalWrench,
    ForceTorqueSensor,
    JointAcceleration,
    JointTorque,
    Measurement,
    SparseDynamics,
)
from delassus_ros.measured.observability import dense
from delassus_ros.measured.quantities import Quantity
from delassus_ros.measured.system import System
from delassus_ros.model import WORLD, Body, Frame, Inertia, Joint, JointKind
from delassus_ros.model.spatial import Array

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "papers"
SIZES = (2, 4, 6, 8, 12, 16, 20, 24, 30)
CELLS = (8, 10, 12, 16, 20, 24, 30)
"""Fewer links leave no joint whose acceleration is known."""
KERNEL = "our kernel, all of it"
_UMFPACK_FLOPS, _UMFPACK_ENTRIES, _UMFPACK_INFO = 42, 43, 90  # entries: of L, then of U
_ALL_BUT_ONE = (0, 1, 2, 3, 4)


def chain(links: int, taper: float = 0.9, skew: float = 1.5) -> Robot:
    """Return the serial chain ``autoTree(links, 1, skew, taper)`` of Featherstone's spatial_v2."""
    joints, bodies = [], []
    for k in range(links):
        length, mass = taper**k, taper ** (3 * k)
        before = taper ** (k - 1) if k else 0.0
        # xlt first, then rotx: the offset is along x, which the turn keeps.
        turn = rotation((1.0, 0.0, 0.0), skew) if k else np.eye(3)
        place = Transform(turn, np.array([before, 0.0, 0.0]))
        joints.append(Joint(f"joint{k}", JointKind.REVOLUTE, k - 1 if k else WORLD, place))
        about = mass * length**2 * np.diag([0.0025, 1.015 / 12.0, 1.015 / 12.0])
        inertia = Inertia.from_com(mass, np.array([0.5 * length, 0.0, 0.0]), about)
        bodies.append(Body(f"body{k}", inertia))
    tip = Transform(np.eye(3), np.array([taper ** (links - 1), 0.0, 0.0]))
    frames = [Frame("first", 0, Transform()), Frame("tip", links - 1, tip)]
    return Robot(f"chain {links}", joints, bodies, frames)


@dataclass(frozen=True)
class Case:
    """A question of the paper.

    Attributes
    ----------
    title : of its plot.
    sizes : numbers of links.
    known, wanted : quantities of a chain with some links.
    ours : operations of our hand-written algorithm, and its name; None where there is none.
    published : the same of the paper's rival by formula.
    taper : of the chain.
    """

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
    """Return what is known: but for two accelerations at each end and both yaw moments."""
    ends: list[Quantity] = [
        ForceTorqueSensor("first", _ALL_BUT_ONE), ExternalWrench("tip", _ALL_BUT_ONE)
    ]  # fmt: skip
    return [*_accelerations(range(2, n - 2)), *ends]


CASES = (
    Case("forward dynamics", SIZES, _torques, lambda n: _accelerations(range(n)),
         ("C-ABA, all of it", "forward"), ("articulated-body algorithm, 429N - 507",
                                           lambda n: 429 * n - 507)),
    Case("inverse dynamics", (*SIZES, 60, 100), lambda n: _accelerations(range(n)), _torques,
         ("C-RNEA, all of it", "inverse"), ("Newton-Euler, 231N - 124",
                                            lambda n: 231 * n - 124)),
    Case("torques from load cells at both ends", CELLS, _cells, _torques, None, None, 1.0),
)  # fmt: skip


def operations(case: Case, links: int) -> dict[str, int]:
    """Return the operations of all contenders."""
    robot = chain(links, case.taper)
    known, wanted = case.known(links), case.wanted(links)
    system = System(robot, [*known, *wanted])
    matrix = _matrix(system, known)
    found = {f"LU, {order}": count for order, count in _lu(matrix).items()}
    kernel = SparseDynamics(
        robot, [Measurement(each) for each in known], wanted, covariances=False, cache=False
    )
    assert kernel.kind == "square"
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
    random = np.random.default_rng(0)
    n = system.spanning.size
    x = {
        "q": random.uniform(-3.0, 3.0, n).tolist(),
        "rates": random.normal(size=n).tolist(),
        "gravity": [0.0, 0.0, -9.81],
    }
    instant = system.at(x)
    rows = [*instant.equations(), *(row for each in known for row in instant.reading(each))]
    return dense(rows, system.columns.size)


def _lu(matrix: Array) -> dict[str, int]:
    """Return operations of a factorisation and solution by several orders of the columns."""
    A = csc_matrix(matrix)
    found = {
        label: _of_factors(splu(A, permc_spec=order))
        for label, order in (
            ("columns as they are", "NATURAL"),
            ("SuperLU's COLAMD", "COLAMD"),
            ("SuperLU's MMD", "MMD_AT_PLUS_A"),
        )
    }
    return {**found, **_umfpack(A)}


def _of_factors(lu: splu) -> int:
    """Return operations, not counting products with ±1, of factors and solution."""
    L, U = lu.L.tocsc(), lu.U.tocsr()
    total = 0
    for k in range(L.shape[0]):
        column = L.data[L.indptr[k] : L.indptr[k + 1]][
            L.indices[L.indptr[k] : L.indptr[k + 1]] > k
        ]
        row = U.data[U.indptr[k] : U.indptr[k + 1]][U.indices[U.indptr[k] : U.indptr[k + 1]] > k]
        pivot = U[k, k]
        many, wide = _not_unit(column), _not_unit(row)
        total += 0 if abs(pivot) == 1.0 else len(column) + 1
        total += len(column) * len(row) + many * wide
        total += len(column) + len(row) + many + wide
    return total


def _beyond(factor: csc_matrix, k: int) -> Array:
    """Return the entries of column (of L) or row (of U) k beyond the diagonal."""
    own = slice(factor.indptr[k], factor.indptr[k + 1])
    return np.asarray(factor.data[own][factor.indices[own] > k])


def _not_unit(values: Array) -> int:
    return int(np.count_nonzero(np.abs(values) != 1.0))


def _umfpack(A: csc_matrix) -> dict[str, int]:
    """Return what UMFPACK says of its factors, with a solution as well; {} where it is absent."""
    path = ctypes.util.find_library("umfpack")
    if path is None:
        return {}
    library = ctypes.CDLL(path)
    n = ctypes.c_int(A.shape[0])
    starts, rows = (np.ascontiguousarray(a, dtype=np.int32) for a in (A.indptr, A.indices))
    arrays = [ctypes.c_void_p(a.ctypes.data) for a in (starts, rows, A.data)]
    symbolic, numeric = ctypes.c_void_p(), ctypes.c_void_p()
    info = np.zeros(_UMFPACK_INFO)
    about = ctypes.c_void_p(info.ctypes.data)
    status = library.umfpack_di_symbolic(n, n, *arrays, ctypes.byref(symbolic), None, about)
    if status == 0:
        status = library.umfpack_di_numeric(*arrays, symbolic, ctypes.byref(numeric), None, about)
    library.umfpack_di_free_symbolic(ctypes.byref(symbolic))
    library.umfpack_di_free_numeric(ctypes.byref(numeric))
    if status != 0:
        raise RuntimeError(f"UMFPACK returned {status}")
    factors = int(info[_UMFPACK_FLOPS])
    entries = int(info[_UMFPACK_ENTRIES : _UMFPACK_ENTRIES + 2].sum()) - 2 * A.shape[0]
    return {"UMFPACK's, factors alone": factors, "UMFPACK's": factors + 2 * entries}


def _page(results: dict[str, dict[int, dict[str, int]]]) -> str:
    lines = [
        "# Operations of Nori's paper",
        "",
        "Written by `python -m benchmarks.nori`. Nori writes all dynamics as one sparse linear",
        "system D d = b, with measured quantities in the rows Y, and solves it by a general LU",
        "factorisation. This page counts the operations of that factorisation and of compiled",
        "kernels on the paper's chains, Featherstone's `autoTree(N, 1, 1.5, 0.9)` with N links;",
        "links of the last table are not tapered.",
        "",
        "| column | counted operations |",
        "|---|---|",
        "| LU | factorisation and solution of D and Y at a random posture, without products by 1 "
        "and -1; without kinematics, velocity terms and the entries of D |",
        "| LU, UMFPACK's | the operations that UMFPACK reports for its factors, and twice their "
        "entries for the solution |",
        "| our kernel | `SparseDynamics`, compiled: everything from joint positions to the "
        "result, without sines and cosines |",
        "| C-ABA, C-RNEA | `Dynamics`, compiled, likewise everything |",
        "",
    ]
    for title, rows in results.items():
        names = list(next(iter(rows.values())))
        lines += [f"## {title.capitalize()}", "", f"| N | {' | '.join(names)} |"]
        lines += ["|" + "---|" * (len(names) + 1)]
        lines += [f"| {n} | {' | '.join(map(str, row.values()))} |" for n, row in rows.items()]
        lines += [""]
    return "\n".join([*lines, "![operations against N](nori.svg)", "", _WORDS])


_WORDS = """\
## What holds of the paper's claims

- **Inverse dynamics is triangular.** UMFPACK finds the triangular order: its factors need no
  operation. `SparseDynamics` uses the same order, and with velocity terms it needs as many
  operations as C-RNEA. SuperLU's COLAMD needs 1.2 times as many at N = 30.
- **Torques from load cells at both ends** (figure 2) are solvable with four unknown
  accelerations, as in the experiment published with the paper. `SparseDynamics` grows linearly
  with N; from N = 10 on all its operations are fewer than those of UMFPACK's LU, and at N = 30
  half as many. No classical algorithm solves this problem.

## What does not hold

- **Fewer operations than the articulated-body algorithm** by sparse LU holds for chains of two
  and four links alone, with UMFPACK, and only without the operations for the entries of D, which
  the formula 429N - 507 contains. From six links on it holds with none of the tried orders; at
  N = 30 UMFPACK needs 1.9 times the formula. `SparseDynamics`, with all operations, needs less
  than UMFPACK for factors and solution from N = 8 on (0.73 times at N = 30), but 1.4 times the
  formula and 1.6 times C-ABA: articulated inertias are symmetric, and the rows of D do not have
  this symmetry.
- **Equation (24) as written** has four equations more than unknowns. With all accelerations
  known, feet with parallel soles leave two moments undetermined:
  [torques and wrenches from sensors](../measured.md).

## Errors in the paper

| place | error |
|---|---|
| (19b), (23), (24b) | wrenches are ordered force first, in section II moment first |
| Property 3 | is too weak: [H, X*H] is singular for *every* three components of parallel feet |
| Property 2 | must read W^L D W^R d̃ + W^L b = 0 with d = W^R d̃ |
| (35) | the first block must be rows of measurements |
| D | has no rotor inertia |
"""


def _draw(results: dict[str, dict[int, dict[str, int]]]) -> Figure:
    figure = Figure(figsize=(15, 5.5), layout="constrained")
    for ax, (title, rows) in zip(figure.subplots(1, len(results)), results.items(), strict=True):
        ax.set_prop_cycle(SERIES)
        for name in next(iter(rows.values())):
            ax.loglog(list(rows), [row[name] for row in rows.values()], label=name, ms=4, lw=1.2)
        ax.set_title(title)
        ax.set_xlabel("links N")
        ax.set_xticks([n for n in (2, 4, 8, 16, 30, 100) if n in rows])
        ax.xaxis.set_major_formatter(ScalarFormatter())
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.set_ylabel("operations")
        ax.legend(fontsize=8)
        ax.grid(alpha=0.3)
    return figure


def main() -> None:
    """Count everything, write the page and the plot."""
    output = output_of("nori", __doc__, FOLDER / "nori.md")
    results = {case.title: {n: operations(case, n) for n in case.sizes} for case in CASES}
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(_page(results), encoding="utf-8")
    save(_draw(results), output.with_suffix(".svg"))
    print(output)


if __name__ == "__main__":
    main()
