"""Observability: whether the known quantities determine a robot's dynamics, with messages.

F. Nori, "Inverse, forward and other dynamic computations computationally optimized with sparse
matrix factorizations", section VI, decides by the rank of (23) whether load cells on two feet
determine the torques (Property 3). Here the null space of D under Y is computed for any set of
measurements, at random and at named postures.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from delassus.dynamics import GRAVITY
from delassus.errors import ProblemError
from delassus.measured.quantities import ALL, WRENCH_ROWS, Measurement
from delassus.measured.system import Equation, Instant, System
from delassus.model.spatial import Array

_TOLERANCE = 1e-9
"""Ratio to the largest singular value below which a singular value counts as zero."""
_NAMED_SHARE = 0.3
"""Parts of an unobservable direction above this share of the largest part are named."""


class UnobservableError(ProblemError):
    """Known quantities leave a direction open; names it, and measurements that close it."""


class Observability:
    """Observability of a system from its measurements, by dense algebra at single postures.

    Parameters
    ----------
    system : system of the robot.
    known : the measurements.
    zero : unknowns of d that are zero.
    """

    def __init__(self, system: System, known: Sequence[Measurement], zero: Sequence[int]) -> None:
        self._system, self._known, self._zero = system, known, list(zero)
        self._joints = system.spanning.columns_by_joint

    def check(self, random: Sequence[Array], named: Sequence[Array]) -> None:
        """Refuse insufficient measurements, at random postures or at named postures.

        Raises
        ------
        UnobservableError
            If a direction is left open.
        ProblemError
            If exact measurements are redundant.
        """
        # A random posture may happen to be singular.
        directions, N = min(map(self._open, random), key=lambda found: len(found[0]))
        if len(directions):
            raise UnobservableError(self._words(directions, N, ""))
        for q in named:
            directions, N = self._open(q)
            if len(directions):
                raise UnobservableError(self._words(directions, N, " at a named posture"))
        surplus = min(map(self._surplus, random), key=len)
        if len(surplus):
            raise ProblemError(
                f"the exact measurements are redundant by {len(surplus)} numbers: exact values of "
                f"{self._measured(surplus)} depend on one another; set a sigma for measured "
                "values"
            )

    def _at(self, q: Array) -> tuple[Array, Array]:
        """Return N, with d = N u + d₀ for ÿ and wrenches u, and rows Y of the measurements."""
        at, free = self._system.columns, self._system.columns.free
        still = [0.0] * self._system.spanning.size
        x = {"q": q.tolist(), "rates": still, "gravity": list(GRAVITY)}
        instant = self._system.at(x)
        D, Y = dense(instant.equations(), at.size), self._rows(instant)
        others = np.setdiff1d(np.arange(at.size), free)
        N = np.zeros((at.size, len(free)))
        N[free] = np.eye(len(free))
        N[others] = np.linalg.solve(D[:, others], -D[:, free])
        return N, Y

    def _rows(self, instant: Instant) -> Array:
        rows = [row for known in self._known for row in instant.reading(known.quantity)]
        return dense(rows, self._system.columns.size)

    def _open(self, q: Array) -> tuple[Array, Array]:
        """Return unobservable directions (k, free) of ÿ and wrenches, and N."""
        N, Y = self._at(q)
        seen = np.vstack([N[self._zero], Y @ N])
        # Normalised, as rows have different units.
        size = np.linalg.norm(seen, axis=1, keepdims=True)
        _, s, Vt = np.linalg.svd(seen / np.where(size > 0.0, size, 1.0), full_matrices=True)
        rank = int((s > _TOLERANCE * s.max(initial=0.0)).sum())
        return Vt[rank:], N

    def _surplus(self, q: Array) -> Array:
        """Return dependences (k, exact rows) between exact measurements."""
        N, Y = self._at(q)
        exact = [known.sigma == 0.0 for known, _ in self._by_row()]
        rows = np.vstack([N[self._zero], Y[exact] @ N])
        size = np.linalg.norm(rows, axis=1, keepdims=True)
        U, s, _ = np.linalg.svd(rows / np.where(size > 0.0, size, 1.0), full_matrices=True)
        rank = int((s > _TOLERANCE * s.max(initial=0.0)).sum())
        return np.asarray(U[:, rank:].T)[:, len(self._zero) :]

    def _by_row(self) -> list[tuple[Measurement, int]]:
        return [
            (known, k)
            for known in self._known
            for k in range(self._system.size_of(known.quantity))
        ]

    def _measured(self, dependences: Array) -> str:
        """Return the quantities in these dependences."""
        exact = [known for known, _ in self._by_row() if known.sigma == 0.0]
        parts = np.abs(dependences).max(axis=0)
        names = [*dict.fromkeys(
            str(exact[k].quantity) for k in np.flatnonzero(parts > _NAMED_SHARE * parts.max())
        )]  # fmt: skip
        return ", ".join(names[:4]) + (" ..." if len(names) > 4 else "")

    def _words(self, directions: Array, N: Array, where: str) -> str:
        """Return the message for an open direction, with single measurements that close it."""
        labels = self._labels()
        first = directions[0] / np.abs(directions[0]).max()
        # The largest part first; parts that are equal up to rounding in the order of the robot.
        order = np.argsort(-np.round(np.abs(first), 6), kind="stable")
        parts = [labels[k] for k in order if abs(first[k]) > _NAMED_SHARE]
        at = self._system.columns
        moved = N @ directions.T
        cures = []
        for joint, indices in self._joints.items():
            for kind, columns in (("torque", at.torques), ("acceleration", at.accelerations)):
                rows = [columns[k] for k in indices if columns[k] not in self._zero]
                if rows and np.abs(moved[rows]).max() > _TOLERANCE * np.abs(moved).max():
                    cures.append(f"{kind} of {joint}")
        for frame, start in zip(self._system.frames, at.wrenches, strict=True):
            cures += [
                f"{WRENCH_ROWS[row]} on {frame}"
                for row in ALL
                if np.abs(moved[start + row]).max() > _TOLERANCE * np.abs(moved).max()
            ]
        more = f" (and {len(directions) - 1} directions more)" if len(directions) > 1 else ""
        shown = ", ".join(cures[:8]) + (" ..." if len(cures) > 8 else "")
        return (
            f"the measurements are not sufficient{where}: they do not determine "
            f"{' against '.join(parts[:6])}{more}; measure one of: {shown}"
        )

    def _labels(self) -> list[str]:
        """Return names of ÿ and wrenches, in their order."""
        names: dict[int, str] = {}
        for joint, indices in self._joints.items():
            for k in indices:
                names[k] = f"acceleration of {joint}"
        found = [names[k] for k in sorted(names)]
        for frame in self._system.frames:
            found += [f"{words} on {frame}" for words in WRENCH_ROWS]
        return found


def dense(equations: Sequence[Equation], columns: int) -> Array:
    """Return the rows of equations as an array (rows, columns)."""
    found = np.zeros((len(equations), columns))
    for row, equation in zip(found, equations, strict=True):
        for k, value in equation.row.items():
            row[k] = value
    return found
