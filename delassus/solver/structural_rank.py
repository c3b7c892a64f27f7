"""The structural rank: the largest rank of a robot's contacts over all postures.

Four points on one flat foot have twelve rows of which at most six are independent in any posture.
The structural rank is the rank at generic configurations, including generic placements of moving
contacts: almost every configuration has this rank, no configuration has a larger rank. The
structural rank is a property of the model: joints are moved beyond their limits, as the mass
matrix allows their motion and encoders may report it.

Λ leaves out only directions beyond the structural rank: near a singular posture further directions
are as weak, in which Λ has to grow.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from delassus.arguments import count as whole
from delassus.arguments import numbers
from delassus.contacts import ContactSet, row_scales
from delassus.errors import InputError, NumericalError
from delassus.model.clusters import clusters_of
from delassus.model.couplings import follow
from delassus.model.loops import LoopClosure, closed_jacobians
from delassus.model.spatial import CHARACTERISTIC_LENGTH_M, Array
from delassus.problem import Problem
from delassus.samples import random_inputs
from delassus.scalars.ports import Status
from delassus.solver.contact_space import RANK_TOLERANCE


class Bound(Protocol):
    """Interface of :class:`~delassus.solver.bound.BoundSolver`: a solver with inputs."""

    @property
    def inputs(self) -> Mapping[str, Array]:
        """Arrays by name of the input."""

    def solve(self) -> Any:
        """Return a solution with status and the matrix of all contacts."""


class Binds(Protocol):
    """Interface of :class:`~delassus.solver.solver.DelassusSolver`: makes bound solvers."""

    @property
    def problem(self) -> Problem:
        """The problem of the solver."""

    @property
    def algorithm(self) -> str:
        """Name of the algorithm."""

    def bind(self) -> Bound:
        """Return a bound solver."""


_RANK_ROUNDING = 1e-13
"""Fraction of the largest diagonal entry below which entries are rounding, for scaled rows."""
_GENERIC = 3
"""Number of matrices for a structural rank; one matrix is enough almost surely."""
_DRAWN = 10
"""Number of configurations that are drawn for each matrix."""
_CACHED = 4096
"""Number of active sets whose rank is cached; 12 contacts have 4096 sets."""


def unit_scales(contacts: ContactSet) -> Array:
    """Return the factors (m,) that scale all rows to norm 1, angular rows times 0.1 m.

    The factors do not depend on the scale of selections, nor on the characteristic length of
    conditioning.
    """
    rows = np.vstack([contact.selection for contact in contacts])
    scales: Array = row_scales(contacts, CHARACTERISTIC_LENGTH_M) / np.linalg.norm(rows, axis=1)
    return scales


def numerical_rank(eigenvalues: Array, tolerance: float = RANK_TOLERANCE) -> int:
    """Return the number of ascending eigenvalues above a fraction of the largest."""
    if not eigenvalues.size or not eigenvalues[-1] > 0:
        return 0
    return int(np.count_nonzero(eigenvalues > tolerance * eigenvalues[-1]))


def generic_matrices(solver: Binds, count: int = 3, seed: int = 0) -> Array:
    """Return G of all contacts (count, m, m) at generic configurations.

    Inputs are random within ±π [rad, m], beyond the limits of joints; joints of loops follow
    closed configurations near the neutral one.

    Parameters
    ----------
    solver : solver of the problem.
    count : number of matrices; one is enough almost surely.
    seed : seed of the random configurations.

    Raises
    ------
    InputError
        If `count` is no positive whole number.
    NumericalError
        If no matrix could be computed at any configuration.
    """
    problem, count = solver.problem, whole("count", count)
    found = _matrices(problem, solver.bind(), count, seed)
    if not found:
        raise NumericalError(
            f"{solver.algorithm}: no matrix at any of {_DRAWN * count} generic configurations of "
            f"robot {problem.robot.name!r}; its mass matrix may be singular everywhere"
        )
    return np.stack(found)


def _matrices(problem: Problem, bound: Bound, count: int, seed: int) -> list[Array]:
    """Return up to `count` matrices of all contacts, skipping configurations that fail."""
    found: list[Array] = []
    # More than needed, as some may fail: a massless joint has no matrix in some postures.
    for inputs in _generic_inputs(problem, _DRAWN * count, seed):
        for name, values in inputs.items():
            bound.inputs[name][...] = values
        solution = bound.solve()
        if solution.status is Status.OK:
            found.append(solution.matrix.copy())
        if len(found) == count:
            break
    return found


class Structure:
    """The structural rank of a problem's contacts, computed at the first call.

    Parameters
    ----------
    problem : the problem.
    bind : makes a bound solver of the problem for exclusive use.
    """

    def __init__(self, problem: Problem, bind: Callable[[], Bound]) -> None:
        self._problem, self._bind = problem, bind
        self._ranks: StructuralRank | None = None
        self._lock = threading.Lock()

    def rank(self, contacts: Iterable[str]) -> int:
        """Return the structural rank of these active contacts.

        The number of their rows if no matrix, or no closed loop, was found.
        """
        contact_set = self._problem.contacts
        offsets = contact_set.row_offsets
        rows = [
            row for i in contact_set.indices(contacts) for row in range(offsets[i], offsets[i + 1])
        ]
        with self._lock:
            if self._ranks is None:
                self._ranks = self._found()
            return self._ranks.of(rows)

    def _found(self) -> StructuralRank:
        problem = self._problem
        found = _matrices(problem, self._bind(), _GENERIC, seed=0)
        m = problem.contacts.rows
        matrices = np.stack(found) if found else np.eye(m)[np.newaxis]
        return StructuralRank(matrices, unit_scales(problem.contacts))


class StructuralRank:
    """The structural rank of any set of active contacts, computed once per set.

    Parameters
    ----------
    matrices : (N, m, m) G of all contacts at generic configurations; see
        :func:`generic_matrices`.
    scales : (m,) factors that make rows comparable, so that zero rows differ from small rows; see
        :func:`unit_scales`. The rank depends on them in no other way.

    Raises
    ------
    InputError
        If the matrices are not finite numbers, or the shapes do not fit.
    """

    def __init__(self, matrices: ArrayLike, scales: Array) -> None:
        array = numbers("generic matrices", matrices)
        m = scales.size
        if array.ndim != 3 or array.shape[0] < 1 or array.shape[1:] != (m, m):
            raise InputError(
                f"generic matrices have shape {array.shape}, expected (N, {m}, {m}) with N >= 1"
            )
        if not np.isfinite(array).all():
            raise InputError("generic matrices have entries that are not finite")
        self._matrices = array * np.outer(scales, scales)
        self._ranks: dict[tuple[int, ...], int] = {}

    def of(self, rows: Sequence[int]) -> int:
        """Return the rank of the matrix of these rows, numbered as rows of all contacts."""
        key = tuple(rows)
        rank = self._ranks.get(key)
        if rank is None:
            rank = self._rank(key)
            self._keep(key, rank)
        return rank

    def witness(self, rows: Sequence[int], rank: int) -> None:
        """Raise the rank of these rows to the rank of one of their matrices."""
        key = tuple(rows)
        self._keep(key, max(rank, self._ranks.get(key, 0)))

    def _keep(self, key: tuple[int, ...], rank: int) -> None:
        if len(self._ranks) >= _CACHED and key not in self._ranks:
            self._ranks.clear()
        self._ranks[key] = rank

    def _rank(self, rows: tuple[int, ...]) -> int:
        rank = 0
        for matrix in self._matrices:
            if rank == len(rows):
                break
            noise = _RANK_ROUNDING * float(matrix.diagonal().max())
            rank = max(rank, _rank_of(matrix[np.array(rows)[:, np.newaxis], rows], noise))
        return rank


def _rank_of(rest: Array, noise: float) -> int:
    """Return the rank of a positive semidefinite matrix (k, k), for rows of any size.

    Pivoted Cholesky factorisation: the next row is the row with the largest remainder. A row
    counts if the remainder exceeds a fraction of the row, and exceeds the noise.

    Parameters
    ----------
    rest : the matrix; overwritten by the remainder.
    noise : size of diagonal entries that are rounding.
    """
    left = rest.diagonal()
    norms = left.copy()
    for rank in range(len(rest)):
        share = np.divide(left, norms, out=np.zeros(len(rest)), where=left > noise)
        j = int(share.argmax())
        if not share[j] > RANK_TOLERANCE:
            return rank
        column = rest[j] / np.sqrt(left[j])
        rest -= np.outer(column, column)
    return len(rest)


def _generic_inputs(problem: Problem, count: int, seed: int) -> Iterator[dict[str, Array]]:
    """Yield random inputs; loops are closed near the neutral configuration."""
    robot = problem.robot.clustered
    # Not of open robots, which the cache of clusters would keep.
    clusters = clusters_of(robot) if robot.is_closed else ()
    loops = [cluster for cluster in clusters if not cluster.is_constant]
    curved = {joint for cluster in loops for joint in cluster.joints}
    known = [joint.name for i, joint in enumerate(robot.joints) if i in curved]
    closed: list[tuple[list[int], list[Array]]] = []
    for cluster in loops:
        closure = LoopClosure(cluster)
        positions = [q * closure.units for q, _ in closed_jacobians(closure)]
        closed.append((cluster.entries, positions))
    for k in range(count):
        inputs = random_inputs(problem, seed * count + k)
        for entries, positions in closed:
            if positions:
                inputs["q"][entries] = positions[k % len(positions)]
        follow(robot, inputs["q"], known)
        yield inputs
