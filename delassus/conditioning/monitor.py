"""Conditioning of the matrix, and damping near singularities.

Rows in 1/kg and in 1/(kg·m²) cannot be compared. All numbers here refer to the *scaled* matrix
S G S, in 1/kg, where S multiplies angular rows by a characteristic length; for a matrix with only
linear rows S = 1.

Eigenvalues that are zero by structure, where contacts are redundant, do not count. A matrix with a
rank above the structural rank raises the structural rank permanently.

Time per matrix of 12, 24 and 42 rows, one core, median [µs]: 13, 24, 47; with selective damping
of weak directions 36, 79, 110. LAPACK must be limited to one thread: with several threads, single
calls took up to 24 ms on a busy machine.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from delassus.arguments import instance, number, numbers
from delassus.contacts import row_scales
from delassus.errors import InputError
from delassus.model.spatial import CHARACTERISTIC_LENGTH_M, Array
from delassus.problem import Problem
from delassus.solver.contact_space import RANK_TOLERANCE
from delassus.solver.structural_rank import (
    StructuralRank,
    numerical_rank,
    unit_scales,
)

__all__ = ["ConditionMonitor", "ConditionSettings", "Conditioning", "Damping", "Examination",
           "condition_of", "scaled_eigenvalues"]  # fmt: skip

_FLOAT = np.dtype(np.float64)


class Conditioning(IntEnum):
    """Whether a matrix can be inverted; the values of ``DelassusMatrix.conditioning``."""

    UNKNOWN = 0
    """Not examined: no contact is active, or the matrix is not finite."""
    OK = 1
    WEAK = 2
    SINGULAR = 3


@dataclass(slots=True, eq=False)
class Examination:
    """The examination of one matrix; eigenvalues are those of the scaled matrix [1/kg].

    Attributes
    ----------
    conditioning : judgement by the thresholds, with hysteresis.
    rank : numerical rank; -1 if unknown.
    structural_rank : largest rank that the active contacts can have, at least the largest rank of
        their examined matrices; -1 if unknown.
    largest : largest eigenvalue; NaN if unknown.
    smallest : the smallest eigenvalue that is not zero by structure, i.e. the eigenvalue at the
        structural rank; NaN if unknown.
    condition : largest / smallest; infinite if rank < structural_rank, -1 if unknown.
    matrix : (k, k) G with damping; the examined array itself without damping.
    damping_mode : the mode in force.
    damping : largest increase of an eigenvalue by damping [1/kg]; 0 without damping.
    """

    conditioning: Conditioning
    rank: int
    structural_rank: int
    largest: float
    smallest: float
    condition: float
    matrix: Array
    damping_mode: Damping
    damping: float


def scaled_eigenvalues(matrices: Array, scales: Array) -> Array:
    """Return the ascending eigenvalues (…, m) of S G S, for matrices (…, m, m) and scales (m,)."""
    return np.asarray(np.linalg.eigvalsh(matrices * np.outer(scales, scales)), dtype=np.float64)


def condition_of(eigenvalues: Array) -> Array:
    """Return condition numbers (…) of scaled matrices from their ascending eigenvalues (…, m).

    Condition numbers are infinite for singular matrices, whose rank by the node is below m.
    """
    smallest, largest = eigenvalues[..., 0], eigenvalues[..., -1]
    found = np.full(largest.shape, np.inf)
    np.divide(largest, smallest, out=found, where=~(smallest <= RANK_TOLERANCE * largest))
    return found


class ConditionMonitor:
    """Examines consecutive matrices of a problem; for control loops, one monitor per thread.

    Parameters
    ----------
    problem : problem of the examined matrices; all contacts are active at first.
    structural : matrices (N, m, m) of all contacts at generic configurations, by
        :func:`~delassus.solver.structural_rank.generic_matrices`.
    settings : thresholds and damping; may be changed at any time by assignment.

    Raises
    ------
    InputError
        If the matrices do not fit the problem.
    """

    def __init__(
        self, problem: Problem, structural: Array, settings: ConditionSettings | None = None
    ) -> None:
        self._contacts = problem.contacts
        self._structural = StructuralRank(structural, unit_scales(self._contacts))
        m = self._contacts.rows
        self._stores = [np.zeros(m * m) for _ in range(2)]
        self._active = self._contacts.names
        self._result = Examination(
            Conditioning.UNKNOWN, -1, -1, np.nan, np.nan, -1.0, self._stores[0],
            Damping.NONE, 0.0,
        )  # fmt: skip
        self.settings = ConditionSettings() if settings is None else settings

    @property
    def settings(self) -> ConditionSettings:
        """Thresholds and damping in force."""
        return self._settings

    @settings.setter
    def settings(self, settings: ConditionSettings) -> None:
        self._settings = settings
        self._scales = row_scales(self._contacts, settings.characteristic_length)
        self.activate(self._active)

    def activate(self, contacts: Iterable[str]) -> None:
        """Set the active contacts of the next matrices; hysteresis starts anew.

        Raises
        ------
        InputError
            For an unknown contact or a contact named twice.
        """
        indices = self._contacts.indices(contacts)
        offsets = self._contacts.row_offsets
        rows = [row for i in indices for row in range(offsets[i], offsets[i + 1])]
        self._active = tuple(self._contacts[i].name for i in indices)
        k = len(rows)
        self._size = k
        scales = self._scales[rows]
        self._row_scales = scales[:, np.newaxis]
        self._damped, self._scaled = (store[: k * k].reshape(k, k) for store in self._stores)
        self._products = np.outer(scales, scales)
        self._state = Conditioning.UNKNOWN
        self._rows = tuple(rows)
        self._zeros = k - self._structural.of(rows)
        """Number of eigenvalues that are zero by structure; these come first."""

    def examine(self, matrix: Array) -> Examination:
        """Examine and damp the next matrix; never raises for values of the matrix.

        Parameters
        ----------
        matrix : (k, k) G of the active contacts, symmetric; not written to.

        Returns
        -------
        The examination, overwritten by the next call.

        Raises
        ------
        InputError
            If the matrix holds no numbers, or does not have the size of the active contacts.
        """
        if type(matrix) is not np.ndarray or matrix.dtype != _FLOAT:
            matrix = numbers("matrix", matrix)
        if matrix.shape != self._products.shape:
            raise InputError(
                f"matrix has shape {matrix.shape}, expected {self._products.shape} for the "
                f"active contacts {', '.join(self._active) or '(none)'}"
            )
        result = self._result
        result.structural_rank = self._size - self._zeros
        result.matrix, result.damping, result.damping_mode = matrix, 0.0, self._settings.damping
        if not result.structural_rank:
            return self._unknown(rank=0)
        damping = self._settings.damping
        try:
            if damping is Damping.SELECTIVE and self._zeros:
                # Uniform damping always raises eigenvalues.
                self._raise_weak(matrix)
            else:
                np.multiply(matrix, self._products, self._scaled)
                self._take(np.asarray(np.linalg.eigvalsh(self._scaled), dtype=np.float64))
                if damping is Damping.UNIFORM:
                    self._raise_all(matrix)
                elif damping is Damping.SELECTIVE and result.smallest < (
                    self._settings.damping_ratio * result.largest
                ):
                    self._raise_weak(matrix)
        except np.linalg.LinAlgError:
            return self._unknown(rank=-1)
        return self._judge()

    def _raise_rank(self, eigenvalues: Array) -> None:
        """Raise the structural rank if the rank of this matrix is larger."""
        zeros = self._zeros
        if zeros and eigenvalues[zeros - 1] > RANK_TOLERANCE * eigenvalues[-1]:
            rank = numerical_rank(eigenvalues)
            self._structural.witness(self._rows, rank)
            self._zeros = self._size - rank

    def _unknown(self, rank: int) -> Examination:
        result = self._result
        result.conditioning = self._state = Conditioning.UNKNOWN
        result.rank, result.condition = rank, -1.0
        result.largest = result.smallest = np.nan
        return result

    def _take(self, eigenvalues: Array) -> None:
        result = self._result
        if not (np.isfinite(eigenvalues[-1]) and np.isfinite(eigenvalues[self._zeros])):
            raise np.linalg.LinAlgError("the matrix is not finite")
        self._raise_rank(eigenvalues)
        result.structural_rank = self._size - self._zeros
        result.largest = float(eigenvalues[-1])
        result.smallest = float(eigenvalues[self._zeros])
        result.rank = numerical_rank(eigenvalues)

    def _judge(self) -> Examination:
        result, settings = self._result, self._settings
        if result.rank < result.structural_rank or not result.smallest > 0.0:
            result.condition = np.inf
        else:
            result.condition = max(1.0, result.largest / result.smallest)
        before, factor = self._state, 1.0 / settings.hysteresis
        weak = settings.weak * (factor if before >= Conditioning.WEAK else 1.0)
        singular = settings.singular * (factor if before is Conditioning.SINGULAR else 1.0)
        if result.condition >= singular:
            self._state = Conditioning.SINGULAR
        else:
            self._state = Conditioning.WEAK if result.condition >= weak else Conditioning.OK
        result.conditioning = self._state
        return result

    def _raise_all(self, matrix: Array) -> None:
        result = self._result
        amount = self._settings.damping_ratio * result.largest
        np.copyto(self._damped, matrix)
        self._damped.reshape(-1)[:: self._size + 1] += amount
        result.matrix, result.damping = self._damped, amount

    def _raise_weak(self, matrix: Array) -> None:
        result = self._result
        np.multiply(matrix, self._products, self._scaled)
        eigenvalues, vectors = np.linalg.eigh(self._scaled)
        self._take(eigenvalues)
        floor = self._settings.damping_ratio * result.largest
        weak = int(np.searchsorted(eigenvalues, floor))
        if weak:
            # V diag(raises) Vᵀ is added to the scaled matrix; the term for G is divided by the
            # scales.
            raises = floor - eigenvalues[:weak]
            directions = vectors[:, :weak] / self._row_scales * np.sqrt(raises)
            np.matmul(directions, directions.T, self._damped)
            self._damped += matrix
            result.matrix, result.damping = self._damped, float(raises[0])


class Damping(IntEnum):
    """Mode of damping; the values of ``DelassusMatrix.damping_mode``."""

    NONE = 0
    UNIFORM = 1
    """The same amount on the whole diagonal."""
    SELECTIVE = 2
    """Weak eigendirections of the scaled matrix are raised, strong directions are unchanged."""


@dataclass(frozen=True)
class ConditionSettings:
    """Thresholds and damping of :class:`ConditionMonitor`.

    Attributes
    ----------
    characteristic_length : weight of angular against linear rows [m]; half a foot's length, say.
    weak, singular : condition numbers from which on a matrix is WEAK and SINGULAR.
    hysteresis : factor; the conditioning improves only below a threshold divided by this factor.
    damping : mode of damping.
    damping_ratio : amount of uniform damping, and the smallest eigenvalue that selective
        damping leaves, both as a fraction of the largest eigenvalue.

    Raises
    ------
    InputError
        For values that are no numbers or out of range, thresholds out of order, or a damping that
        is no :class:`Damping`.
    """

    characteristic_length: float = CHARACTERISTIC_LENGTH_M
    weak: float = 1e4
    singular: float = 1e6
    hysteresis: float = 2.0
    damping: Damping = Damping.NONE
    damping_ratio: float = 1e-4

    def __post_init__(self) -> None:
        ranges = {
            "characteristic_length": (0.0, np.inf),
            "weak": (1.0, np.inf),
            "singular": (1.0, 1.0 / RANK_TOLERANCE),
            "damping_ratio": (0.0, 1.0),
        }
        for name in (*ranges, "hysteresis"):
            object.__setattr__(self, name, number(name, getattr(self, name)))
        for name, (low, high) in ranges.items():
            value = getattr(self, name)
            if not low < value < high:
                expected = f"expected more than {low:g} and less than {high:g}"
                raise InputError(f"{name} is {value}; {expected}")
        if not 1.0 <= self.hysteresis < np.inf:
            raise InputError(f"hysteresis is {self.hysteresis}; expected a factor of at least 1")
        choices = " or ".join(f"Damping.{mode.name}" for mode in Damping)
        instance("damping", self.damping, Damping, choices, InputError)
        if not self.weak < self.singular / self.hysteresis:
            raise InputError(
                f"thresholds out of order: weak is {self.weak:g}, singular {self.singular:g}; "
                f"expected weak < singular / hysteresis = {self.singular / self.hysteresis:g}"
            )
