"""How well the matrix can be inverted, and damping where it cannot.

Rows in 1/kg and in 1/(kg·m²) cannot be compared. All numbers here are those of the *scaled*
matrix S G S, in 1/kg, where S multiplies angular rows by a characteristic length; a matrix of
linear rows alone is its own scaled matrix.

Two ways lead to the eigenvalues. The exact one is LAPACK's. The estimate turns the matrix into
the eigenvectors of a recent one, in which it is nearly diagonal, and corrects the weakest
diagonal entry by its off-diagonal neighbours to second order: for two rows that is exact, for
more the error is of third order in how far the robot has moved since. An estimate whose
correction exceeds 3 % is not used: then the exact eigenvalues are computed at once. What is
used was never more than 2 % wrong, over random spectra with equal eigenvalues and null spaces
that turn, and 0.5 % over robots whose joints swing by 0.5 rad at 0.5 to 2 Hz, at 1 kHz.

Time per matrix of 12, 24 and 42 rows, one core, median [µs]: estimate 8, 9, 20; exact 14, 26,
54; with selective damping that has something to raise 43, 80, 140; renewed eigenvectors, after
the matrix is published and about every fourth time, 18, 50, 111. They hold with LAPACK kept to
one thread: with several, single calls were seen to take 24 ms on a busy machine.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from delassus_ros.arguments import numbers
from delassus_ros.compiler.kernel import Array
from delassus_ros.condition_settings import ConditionSettings, Damping
from delassus_ros.errors import InputError
from delassus_ros.problem import Problem
from delassus_ros.structural_rank import (
    RANK_TOLERANCE,
    StructuralRank,
    numerical_rank,
    row_scales,
)

__all__ = ["ConditionMonitor", "ConditionSettings", "Conditioning", "Damping", "Examination"]

_TRUSTED = 0.03
"""Largest correction of an estimate, as a fraction of it, for the estimate to be used."""
_AMBIGUOUS = 0.02
"""How much smaller than an estimate another eigenvalue may be, as a fraction of it."""
_FRESH = 0.01
"""The same for its eigenvectors to be kept."""
_JUST_RENEWED = 2
"""Age of eigenvectors that were renewed from the matrix before."""


class Conditioning(IntEnum):
    """Whether a matrix can be inverted; the values of ``DelassusMatrix.conditioning``."""

    UNKNOWN = 0
    """Not examined: there is no contact, or no number to judge."""
    OK = 1
    WEAK = 2
    SINGULAR = 3


@dataclass(slots=True, eq=False)
class Examination:
    """What is known about one matrix; eigenvalues are those of the scaled matrix [1/kg].

    Attributes
    ----------
    conditioning : judgement by the thresholds, with hysteresis.
    rank : numerical rank; -1 if unknown.
    structural_rank : largest rank that the active contacts can have; -1 if unknown.
    largest : largest eigenvalue; NaN if unknown.
    smallest : the smallest eigenvalue that is not zero by structure, i.e. the one at the
        structural rank; NaN if unknown.
    condition : largest / smallest; infinite if rank < structural_rank, -1 if unknown.
    exact : the eigenvalues are LAPACK's, not an estimate.
    matrix : (k, k) G with its damping; the examined array itself if nothing was added.
    damping_mode : the mode in force.
    damping : what was added, the largest amount on an eigenvalue [1/kg]; 0 if nothing was.
    """

    conditioning: Conditioning
    rank: int
    structural_rank: int
    largest: float
    smallest: float
    condition: float
    exact: bool
    matrix: Array
    damping_mode: Damping
    damping: float


class ConditionMonitor:
    """Judges the matrices of a problem one after the other; for control loops, one per thread.

    While the estimate holds, a call makes no array. Call :meth:`refresh` after each, when the
    matrix is on its way.

    Parameters
    ----------
    problem : whose matrices are examined; all contacts are active at first.
    structural : matrices (N, m, m) of all contacts at generic configurations, by
        :func:`~delassus_ros.structural_rank.generic_matrices`.
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
        self._generic = structural
        m = self._contacts.rows
        self._stores = [np.zeros(m * m) for _ in range(6)]
        self._vectors = [np.zeros(m) for _ in range(2)]
        self._active = self._contacts.names
        self._result = Examination(
            Conditioning.UNKNOWN, -1, -1, np.nan, np.nan, -1.0, False, self._stores[0],
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
        self._structural = StructuralRank(self._generic, self._scales)
        self.activate(self._active)

    def activate(self, contacts: Iterable[str]) -> None:
        """Expect matrices of these active contacts from now on; the judgement starts anew.

        Raises
        ------
        InputError
            For an unknown contact or one given twice.
        """
        indices = self._contacts.indices(contacts)
        offsets = self._contacts.row_offsets
        rows = [row for i in indices for row in range(offsets[i], offsets[i + 1])]
        self._active = tuple(self._contacts[i].name for i in indices)
        k = len(rows)
        self._size = k
        scales = self._scales[rows]
        self._row_scales = scales[:, np.newaxis]
        squares = [store[: k * k].reshape(k, k) for store in self._stores]
        self._damped, self._scaled, self._basis, self._left, self._product, self._turned = squares
        self._products = np.outer(scales, scales)
        self._flat = self._stores[5][: k * k]
        self._diagonal = self._flat[:: k + 1]
        self._gaps, self._roots = (vector[:k] for vector in self._vectors)
        self._ones = np.ones(k)
        self._last: Array | None = None
        self._age = 0
        """Matrices since the eigenvectors; 0 without eigenvectors."""
        self._stale = True
        self._state = Conditioning.UNKNOWN
        rank = self._result.structural_rank = self._structural.of(rows)
        self._zeros = k - rank
        """Eigenvalues that are zero by structure; they come first."""
        self._regular = self._diagonal[self._zeros :]
        self._inverse, self._lower = self._roots[self._zeros :], self._gaps[self._zeros :]

    def examine(self, matrix: Array, exact: bool = False) -> Examination:
        """Judge and damp the next matrix; never raises for what the matrix holds.

        Parameters
        ----------
        matrix : (k, k) G of the active contacts, symmetric; not written to.
        exact : do not estimate.

        Returns
        -------
        The judgement, overwritten by the next call.

        Raises
        ------
        InputError
            If the matrix is no numbers, or does not have the size of the active contacts.
        """
        if not isinstance(matrix, np.ndarray):  # quicker than to check every array
            matrix = numbers("matrix", matrix)
        if matrix.shape != self._products.shape:
            raise InputError(
                f"matrix has shape {matrix.shape}, expected {self._products.shape} for the "
                f"active contacts {', '.join(self._active) or '(none)'}"
            )
        result = self._result
        result.matrix, result.damping, result.damping_mode = matrix, 0.0, self._settings.damping
        self._last = matrix
        if not result.structural_rank:
            return self._unknown(rank=0)
        damping = self._settings.damping
        try:
            if damping is Damping.SELECTIVE and self._zeros:
                # There always is something to raise.
                self._raise_weak(matrix)
            else:
                if exact or self._age == 0 or not self._estimate(matrix):
                    # Eigenvectors that are new and did not help are not worth renewing.
                    self._exact(matrix, vectors=self._age != _JUST_RENEWED and not exact)
                if damping is Damping.UNIFORM:
                    self._raise_all(matrix)
                elif damping is Damping.SELECTIVE and self._may_be_weak():
                    self._raise_weak(matrix)
        except np.linalg.LinAlgError:
            return self._unknown(rank=-1)
        return self._judge()

    def refresh(self) -> bool:
        """Renew the eigenvectors from the last matrix if it is time; return whether they were.

        Costs as much as :func:`numpy.linalg.eigh`; the array that was examined last must still
        hold its matrix.
        """
        if self._last is None or not (self._stale or self._age >= self._settings.refresh_every):
            return False
        try:
            self._decompose(self._last)
        except np.linalg.LinAlgError:
            return False
        return True

    def _unknown(self, rank: int) -> Examination:
        result = self._result
        result.conditioning = self._state = Conditioning.UNKNOWN
        result.rank, result.exact, result.condition = rank, False, -1.0
        result.largest = result.smallest = np.nan
        self._age, self._last = 0, None
        return result

    def _estimate(self, matrix: Array) -> bool:
        """Estimate the eigenvalues; return whether the estimate can be trusted."""
        self._age += 1
        matrix.dot(self._basis, self._product)
        self._left.dot(self._product, self._turned)
        diagonal, gaps, roots, ones = self._diagonal, self._gaps, self._roots, self._ones
        zeros = self._zeros
        at = zeros + int(self._regular.argmin())
        rayleigh = float(diagonal[at])
        largest = float(diagonal[diagonal.argmax()])
        trusted = _TRUSTED * largest
        # All that is beside the diagonal: a bound of every eigenvalue's distance from it.
        flat = self._flat
        beside = float(flat.dot(flat)) - float(diagonal.dot(diagonal))
        np.subtract(diagonal, rayleigh, gaps)
        row = self._turned[at]
        row[at] = 0.0
        np.add(row, row, roots)
        np.hypot(gaps, roots, roots)
        if zeros:
            np.copysign(roots, gaps, roots)
        # Each entry is twice the shift by one neighbour: exact for two rows.
        np.subtract(gaps, roots, gaps)
        smallest = rayleigh + 0.5 * float(gaps.dot(ones))
        if zeros:
            # Neighbours below and above shift it in opposite directions.
            np.abs(gaps, gaps)
            size = 0.5 * float(gaps.dot(ones))
        else:
            size = rayleigh - smallest
        self._stale = not size <= _FRESH * smallest
        # Written so that NaN fails as well.
        if not (
            size <= _TRUSTED * smallest
            and beside <= trusted * trusted
            and smallest > RANK_TOLERANCE * largest
            and self._is_least(smallest, at, rayleigh)
        ):
            return False
        result = self._result
        result.largest, result.smallest, result.exact = largest, smallest, False
        result.rank = result.structural_rank
        return True

    def _is_least(self, smallest: float, at: int, rayleigh: float) -> bool:
        """Return whether no other row of the turned matrix may hide a smaller eigenvalue.

        To second order row j is shifted by less than Σ t_jk² / t_kk, which counts most where large
        eigenvalues are beside it.
        """
        self._turned[at, at] = rayleigh
        np.multiply(self._turned, self._turned, self._product)
        self._roots[: self._zeros] = 0.0
        np.divide(1.0, self._regular, self._inverse)
        self._product.dot(self._roots, self._gaps)
        # That sum has t_jj itself in it.
        np.subtract(self._regular, self._lower, self._lower)
        np.add(self._regular, self._lower, self._lower)
        self._gaps[at] = smallest
        lower = self._lower
        # Faster than min(). Written so that NaN fails.
        return bool(lower[lower.argmin()] >= (1.0 - _AMBIGUOUS) * smallest)

    def _exact(self, matrix: Array, vectors: bool) -> None:
        """Compute the eigenvalues, and, if asked to, new eigenvectors for the estimate."""
        if vectors:
            self._take(self._decompose(matrix))
        else:
            np.multiply(matrix, self._products, self._scaled)
            self._take(np.asarray(np.linalg.eigvalsh(self._scaled), dtype=np.float64))

    def _take(self, eigenvalues: Array) -> None:
        result = self._result
        result.largest = float(eigenvalues[-1])
        result.smallest = float(eigenvalues[self._zeros])
        if not (np.isfinite(result.largest) and np.isfinite(result.smallest)):
            raise np.linalg.LinAlgError("the matrix is not finite")
        result.rank, result.exact = numerical_rank(eigenvalues), True

    def _decompose(self, matrix: Array) -> Array:
        """Return the eigenvalues, ascending; keep the eigenvectors."""
        np.multiply(matrix, self._products, self._scaled)
        found = np.linalg.eigh(self._scaled)
        eigenvalues: Array = found[0]
        np.multiply(found[1], self._row_scales, self._basis)
        self._left[...] = self._basis.T
        self._age, self._stale = 1, False
        return eigenvalues

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

    def _may_be_weak(self) -> bool:
        """Return whether an eigenvalue may lie below the floor of selective damping."""
        result = self._result
        # An estimate is good to within its correction.
        margin = 1.0 if result.exact else 1.0 + _TRUSTED
        floor = margin * self._settings.damping_ratio * result.largest
        return result.smallest < floor

    def _raise_weak(self, matrix: Array) -> None:
        result = self._result
        eigenvalues = self._decompose(matrix)
        self._take(eigenvalues)
        floor = self._settings.damping_ratio * result.largest
        weak = int(np.searchsorted(eigenvalues, floor))
        if weak:
            # V diag(raises) Vᵀ is added to the scaled matrix; G gets it with the scales undone.
            raises = floor - eigenvalues[:weak]
            directions = self._basis[:, :weak] / self._row_scales**2 * np.sqrt(raises)
            np.matmul(directions, directions.T, self._damped)
            self._damped += matrix
            result.matrix, result.damping = self._damped, float(raises[0])
