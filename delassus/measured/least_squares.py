"""Least squares under D d + b = 0 as one symmetric system, solved over any scalars.

The most likely d, with its multipliers λ and μ = (Y d + y₀ − y) / σ² (G. Hachtel, "The sparse
tableau approach to finite element assembly", 1976; Å. Björck, Numerical Methods for Least Squares
Problems, 1996, section 2.4.3):

    ⎡ 0  Dᵀ  Yᵀ ⎤ ⎡ d ⎤   ⎡ 0      ⎤
    ⎢ D  0   0  ⎥ ⎢ λ ⎥ = ⎢ −b     ⎥
    ⎣ Y  0  −Σ  ⎦ ⎣ μ ⎦   ⎣ y − y₀ ⎦

The block of d in the inverse is the covariance of d. With as many exact equations as unknowns, the
system reduces to D and Y, factorised once: F. Nori's sparse LU.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from delassus.measured.order import PivotOrder, PlaceTree, order_of
from delassus.measured.quantities import Measurement, Quantity
from delassus.measured.system import Equation, Instant, System
from delassus.model.spatial import Array
from delassus.rbda.symmetric_system import Guard, SymmetricSystem, sum_of, unguarded
from delassus.scalars.functions import Scalar, Vector
from delassus.scalars.graph import Graph
from delassus.scalars.ports import Inputs, Port


class LeastSquares:
    """Least squares of a system, for known and wanted quantities.

    Parameters
    ----------
    system : system of the robot.
    known, wanted : as for :class:`~delassus.measured.SparseDynamics`.
    zero : unknowns of d that are zero.
    """

    def __init__(
        self,
        system: System,
        known: Sequence[Measurement],
        wanted: Sequence[Quantity],
        zero: Iterable[int],
    ) -> None:
        self._system, self._known, self._wanted = system, known, wanted
        self._zero = frozenset(zero)

    def assembled(self, instant: Instant, y: Sequence[Scalar], into: SymmetricSystem) -> PlaceTree:
        """Add Z and r to a system; y holds the values of measurements without a constant value.

        Returns the places of the unknowns of Z.
        """
        values = iter(y)
        system = self._system
        # Unknowns of d, multipliers of measurements, unknowns between links, other multipliers.
        owners, k = list(system.owners), system.columns.size
        for known in self._known:
            for row, constant in instant.reading(known.quantity):
                value = next(values) if known.value is None else known.value
                self._add(into, k, row, value - constant)
                if known.sigma:
                    into.add(k, k, -known.sigma * known.sigma)
                owners.append(min(owners[column] for column in row))
                k += 1
        factored = instant.factored(k)
        places = [between.node for between in factored.between]
        owners += [*places, *system.owners_of_rows, *places]
        equations = [*factored.equations, *(between.equation for between in factored.between)]
        for multiplier, (row, constant) in enumerate(equations, start=k + len(places)):
            self._add(into, multiplier, row, -constant)
        unknowns: list[list[int]] = [[] for _ in factored.parents]
        for k in into.rows:
            unknowns[owners[k]].append(k)
        return PlaceTree(unknowns, factored.parents)

    def _add(self, into: SymmetricSystem, k: int, row: dict[int, Scalar], right: Scalar) -> None:
        for column, value in row.items():
            if column not in self._zero:
                into.add(column, k, value)
        into.add_right(k, right)

    def at(
        self, x: Inputs, guard: Guard = unguarded
    ) -> tuple[Instant, SymmetricSystem, PlaceTree]:
        """Return the instant, the system Z x = r and the places of its unknowns.

        Parameters
        ----------
        x : ``q``, ``rates``, ``gravity`` and, unless all values are constant, ``y``.
        guard : as for :class:`~delassus.rbda.symmetric_system.SymmetricSystem`.
        """
        instant, system = self._system.at(x), SymmetricSystem(guard)
        tree = self.assembled(instant, x["y"] if "y" in x else (), system)
        return instant, system, tree

    def order(self, ports: Sequence[Port], postures: Sequence[Array]) -> PivotOrder:
        """Return an order of elimination that is accurate at postures; see :func:`order_of`."""
        random, samples = np.random.default_rng(0), []
        for q in postures:
            x = {port.name: random.normal(size=port.size).tolist() for port in ports}
            samples.append(self.at({**x, "q": q.tolist()})[1])
        _, pattern, tree = self.at(Graph().input_block(ports))
        return order_of(samples, pattern, tree)

    def answer(self, order: PivotOrder, covariances: bool, x: Inputs) -> Vector:
        """Return wanted values, covariances, the sum of squared residuals, and the residuals.

        Residuals are those of measurements with a deviation, divided by the deviation.

        Parameters
        ----------
        order : order of elimination.
        covariances : also return the lower triangle of the covariance of every wanted quantity.
        x : as for :meth:`at`.
        """
        instant, solved, _ = self.at(x, order.guard)
        for pivot in order.pivots:
            solved.eliminate(pivot)
        found: Vector = []
        readings = [instant.reading(quantity) for quantity in self._wanted]
        for rows in readings:
            for row, constant in rows:
                terms = (value * solved.solution(k) for k, value in self._left(row))
                found.append(constant + sum_of(terms))
        if covariances:
            for rows in readings:
                for r, left in enumerate(rows):
                    for right in rows[: r + 1]:
                        found.append(self._covariance(solved, left, right))
        residuals = self._residuals(solved)
        found.append(sum_of(residual * residual for residual in residuals))
        return [*found, *residuals]

    def _left(self, row: dict[int, Scalar]) -> list[tuple[int, Scalar]]:
        return [(k, value) for k, value in row.items() if k not in self._zero]

    def _covariance(self, solved: SymmetricSystem, left: Equation, right: Equation) -> Scalar:
        return sum_of(
            a * b * solved.inverse(i, j)
            for i, a in self._left(left.row)
            for j, b in self._left(right.row)
        )

    def _residuals(self, solved: SymmetricSystem) -> Vector:
        k = self._system.columns.size
        found: Vector = []
        for known in self._known:
            for _ in range(self._system.size_of(known.quantity)):
                if known.sigma:
                    found.append(known.sigma * solved.solution(k))
                k += 1
        return found
