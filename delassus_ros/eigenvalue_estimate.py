"""Eigenvalues of one matrix by the eigenvectors of another that is not far off, and a proof.

In the eigenvectors of a recent matrix the next one is nearly diagonal. The weakest diagonal entry
is corrected by its neighbours in the row to second order: for two rows that is exact, for more the
error is of third order in how far the robot has moved since.

An estimate e is used only where it follows from the matrix alone that it is no further off than
3 %: λ / 1.03 ≤ e ≤ λ for the largest eigenvalue λ, and λ / 1.03 ≤ e ≤ 1.03 λ for the smallest one
that is not zero by structure; hence κ / 1.061 ≤ e ≤ 1.03 κ for their ratio κ. That is but for
rounding, 1e-15 of the largest one or so, as much as LAPACK's eigenvalues have.

What an estimate does not show is whether those eigenvalues that are zero by structure are.
"""

from __future__ import annotations

import math

import numpy as np

from delassus_ros.compiler.kernel import Array
from delassus_ros.structural_rank import RANK_TOLERANCE

__all__ = ["WITHIN", "EigenvalueEstimate"]

_TRUSTED = 0.03
"""Largest error of an estimate, as a fraction of it, for the estimate to be used."""
WITHIN = 1.0 + _TRUSTED
"""By what factor an estimate may be wrong."""
_NOT_ZERO = 1.1 * RANK_TOLERANCE
"""Like the tolerance for estimates: more than it by what both eigenvalues may be wrong."""
_SMALLEST_NUMBER, _LARGEST_NUMBER = 1e-120, 1e120
"""Largest eigenvalues between which an estimate is tried, as it squares the entries."""
_FRESH = 0.01
"""How large the correction of an estimate may be for its eigenvectors to be kept."""
_FRESH_ROOM = 0.5
"""The same for the part of the room that the proof needs."""


class EigenvalueEstimate:
    """Estimates the largest and the smallest eigenvalue; makes no array while it does.

    Parameters
    ----------
    m : rows of the largest matrix.

    Attributes
    ----------
    basis : (k, k) the eigenvectors in columns, each row times its scale.
    age : matrices since the eigenvectors; 0 without eigenvectors.
    stale : the eigenvectors should be renewed.
    largest, smallest : eigenvalues of the last matrix that could be estimated.
    """

    def __init__(self, m: int) -> None:
        self._stores = [np.zeros(m * m) for _ in range(4)]
        self._vectors = [np.zeros(m) for _ in range(5)]
        self.largest = self.smallest = np.nan
        self.resize(m, 0)

    def resize(self, k: int, zeros: int) -> None:
        """Expect matrices of k rows, so many of whose eigenvalues are zero by structure."""
        squares = [store[: k * k].reshape(k, k) for store in self._stores]
        self.basis, self._left, self._product, self._turned = squares
        self._flat = self._stores[3][: k * k]
        self._turned_diagonal = self._flat[:: k + 1]
        vectors = [vector[:k] for vector in self._vectors]
        self._diagonal, self._gaps, self._roots, self._weights, self._sums = vectors
        self._ones = np.ones(k)
        self.expect(zeros)
        self.forget()

    def expect(self, zeros: int) -> None:
        """Take so many eigenvalues, the first ones, for zeros by structure."""
        self._zeros = zeros
        self._regular, self._null_diagonal = self._diagonal[zeros:], self._diagonal[:zeros]
        self._weights.fill(0.0)
        self._regular_weights = self._weights[zeros:]
        self._null = np.zeros(len(self._ones))
        self._null[:zeros] = 1.0

    def forget(self) -> None:
        """Have no eigenvectors."""
        self.age, self.stale = 0, True

    def take(self, eigenvectors: Array, scales: Array) -> None:
        """Keep these eigenvectors (k, k), in columns, of a matrix scaled by `scales` (k, 1)."""
        np.multiply(eigenvectors, scales, self.basis)
        self._left[...] = self.basis.T
        self.age, self.stale = 1, False

    def of(self, matrix: Array) -> bool:
        """Estimate the eigenvalues of a matrix (k, k); return whether the estimate is proven."""
        self.age += 1
        matrix.dot(self.basis, self._product)
        self._left.dot(self._product, self._turned)
        diagonal, gaps, roots, ones = self._diagonal, self._gaps, self._roots, self._ones
        # From here on the turned matrix is what is beside its diagonal.
        np.copyto(diagonal, self._turned_diagonal)
        self._turned_diagonal.fill(0.0)
        zeros = self._zeros
        at = zeros + int(self._regular.argmin())
        rayleigh = float(diagonal[at])
        largest = float(diagonal[diagonal.argmax()])
        self.stale = True
        # Squares are to be neither infinite nor zero. Written so that NaN fails as well.
        if not _SMALLEST_NUMBER < largest < _LARGEST_NUMBER:
            return False
        np.subtract(diagonal, rayleigh, gaps)
        row = self._turned[at]
        np.add(row, row, roots)
        np.hypot(gaps, roots, roots)
        if zeros:
            np.copysign(roots, gaps, roots)
        # Each entry is twice the shift by one neighbour: exact for two rows.
        np.subtract(gaps, roots, gaps)
        smallest = rayleigh + 0.5 * float(gaps.dot(ones))
        trusted = _TRUSTED * largest
        if not (
            float(self._flat.dot(self._flat)) <= trusted * trusted
            and smallest > _NOT_ZERO * largest
            and rayleigh <= WITHIN * smallest
            and self._is_proven(smallest, at, rayleigh)
        ):
            return False
        self.largest, self.smallest = largest, smallest
        return True

    def _is_proven(self, smallest: float, at: int, rayleigh: float) -> bool:
        """Return whether the smallest eigenvalue λ is between `smallest` / 1.03 and 1.03 times it.

        Let T be the turned matrix, R its part without the rows that are zero by structure, and s
        be smallest / 1.03.

        λ ≥ s if R - s is positive definite, for λ is no less than the smallest eigenvalue of R
        (Cauchy). Leave out row a, the weakest, and scale the rest of R - s to a diagonal of ones:
        all that is beside it has the norm f at most (Frobenius). If f < 1, the Schur complement of
        the rest is at least t_aa - s - Σ t_ak² / (t_kk - s) / (1 - f); it has to be positive.

        λ ≤ t_aa without zeros by structure. With them it is no more than the largest eigenvalue of
        their rows N and row a of T: t_aa + |t_aN|² / (t_aa - |T_NN|) (Courant, Fischer).
        """
        bound = smallest / WITHIN
        if not bound < rayleigh:
            return False
        squares, weights, sums = self._product, self._weights, self._sums
        np.multiply(self._turned, self._turned, squares)
        np.subtract(self._regular, bound, self._regular_weights)
        np.divide(1.0, self._regular_weights, self._regular_weights)
        weights[at] = 0.0
        squares.dot(weights, sums)
        norm = math.sqrt(float(weights.dot(sums)))
        room = (1.0 - norm) * (rayleigh - bound)
        shift = float(sums[at])
        if not shift < room:
            return False
        self.stale = not (rayleigh - smallest <= _FRESH * smallest and shift <= _FRESH_ROOM * room)
        if not self._zeros:
            return True
        squares.dot(self._null, sums)
        null = self._null_diagonal
        remote = math.sqrt(float(self._null.dot(sums)) + float(null.dot(null)))
        above = rayleigh - remote
        return above > 0.0 and rayleigh + float(sums[at]) / above <= WITHIN * smallest
