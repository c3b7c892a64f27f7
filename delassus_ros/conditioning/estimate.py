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

from array import array

import numpy as np

from delassus_ros.compiler.estimate_code import ROWS_OF_WORK, estimate_code, padded
from delassus_ros.compiler.kernel import aligned_zeros
from delassus_ros.compiler.python_call import python_calls
from delassus_ros.conditioning.structural_rank import RANK_TOLERANCE
from delassus_ros.errors import InputError
from delassus_ros.model.spatial import Array

__all__ = ["WITHIN", "EigenvalueEstimate"]

_FLOAT = np.dtype(np.float64)
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

_ROWS_BY_CODE = 48
"""Rows above which BLAS turns the matrix: it is faster there, and works without Python's lock."""

_MATRIX, _BASIS, _WORK, _RESULTS, _SIZE, _PADDED, _ZEROS, _TURNED = range(8)
"""Words that the machine code is called with, see :func:`~.estimate_code.estimate_code`."""
_LARGEST, _SMALLEST, _STALE = range(3)
"""Its results."""


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
        rows = padded(m)
        self._most = m
        self._basis_store = aligned_zeros(m * rows)
        self._work = aligned_zeros((2 * m + ROWS_OF_WORK) * rows)
        self._copy = aligned_zeros(m * m)
        self._results = array("d", 3 * [0.0])
        self._words = array("q", 8 * [0])
        code = estimate_code(
            _TRUSTED, WITHIN, _NOT_ZERO, _SMALLEST_NUMBER, _LARGEST_NUMBER, _FRESH, _FRESH_ROOM
        )
        owner = self._words, self._basis_store, self._work, self._copy, self._results
        self._run = python_calls(code, self._words.buffer_info()[0], 0, 0, owner).run
        self._words[_BASIS] = self._basis_store.ctypes.data
        self._words[_WORK] = self._work.ctypes.data
        self._words[_RESULTS] = self._results.buffer_info()[0]
        self.largest = self.smallest = np.nan
        self.resize(m, 0)

    def resize(self, k: int, zeros: int) -> None:
        """Expect matrices of k rows, so many of whose eigenvalues are zero by structure.

        Raises
        ------
        InputError
            If there are more rows than those of the largest matrix, or more zeros than rows.
        """
        if not 0 <= k <= self._most:
            raise InputError(f"{k} rows; expected 0 to {self._most}")
        rows = padded(k)
        self._size = k
        self._basis_store.fill(0.0)
        # The padding has to be zeros in what is turned, too: BLAS gets it with the rest.
        self._vectors, self._product, self._turned = (
            store[: k * rows].reshape(k, rows)
            for store in (self._basis_store, self._work, self._work[k * rows :])
        )
        self.basis = self._vectors[:, :k]
        self._words[_SIZE], self._words[_PADDED] = k, rows
        self._words[_TURNED] = k > _ROWS_BY_CODE
        self._matrix: Array | None = None
        self.expect(zeros)
        self.forget()

    def expect(self, zeros: int) -> None:
        """Take so many eigenvalues, the first ones, for zeros by structure.

        Raises
        ------
        InputError
            If there are not so many.
        """
        if not 0 <= zeros <= self._size:
            raise InputError(f"{zeros} zeros by structure among {self._size} eigenvalues")
        self._words[_ZEROS] = zeros

    def forget(self) -> None:
        """Have no eigenvectors."""
        self.age, self.stale = 0, True

    def take(self, eigenvectors: Array, scales: Array) -> None:
        """Keep these eigenvectors (k, k), in columns, of a matrix scaled by `scales` (k, 1)."""
        np.multiply(eigenvectors, scales, self.basis)
        self.age, self.stale = 1, False

    def of(self, matrix: Array) -> bool:
        """Estimate the eigenvalues of a matrix (k, k); return whether the estimate is proven.

        Let T be the turned matrix, R its part without the rows that are zero by structure, λ the
        smallest eigenvalue that is not, and s be its estimate / 1.03.

        λ ≥ s if R - s is positive definite, for λ is no less than the smallest eigenvalue of R
        (Cauchy). Leave out row a, the weakest, and scale the rest of R - s to a diagonal of ones:
        all that is beside it has the norm f at most (Frobenius). If f < 1, the Schur complement of
        the rest is at least t_aa - s - Σ t_ak² / (t_kk - s) / (1 - f); it has to be positive.

        λ ≤ t_aa without zeros by structure. With them it is no more than the largest eigenvalue of
        their rows N and row a of T: t_aa + |t_aN|² / (t_aa - |T_NN|) (Courant, Fischer).

        Raises
        ------
        InputError
            If it is no array of numbers of double precision, or does not have k rows and columns.
        """
        if matrix is not self._matrix:
            self._look_at(matrix)
        self.age += 1
        if self._words[_TURNED]:
            np.matmul(matrix, self._vectors, self._product)
            np.matmul(self.basis.T, self._product, self._turned)
        elif self._matrix is None:
            np.copyto(self._copy[: matrix.size].reshape(matrix.shape), matrix)
        proven = self._run()
        self.stale = self._results[_STALE] != 0.0
        if not proven:
            return False
        self.largest, self.smallest = self._results[_LARGEST], self._results[_SMALLEST]
        return True

    def _look_at(self, matrix: Array) -> None:
        """Read from this array from now on, or from a copy if it does not lie row by row."""
        expected = self._size, self._size
        # The machine code cannot tell.
        if not isinstance(matrix, np.ndarray) or matrix.dtype != _FLOAT:
            raise InputError(f"matrix is no array of {_FLOAT}")
        if matrix.shape != expected:
            raise InputError(f"matrix has shape {matrix.shape}, expected {expected}")
        readable = matrix.flags.c_contiguous and matrix.flags.aligned
        self._matrix = matrix if readable else None
        self._words[_MATRIX] = (matrix if readable else self._copy).ctypes.data
