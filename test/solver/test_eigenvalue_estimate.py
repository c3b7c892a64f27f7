"""The estimate against its definition written out, at every size and both ways there."""

from __future__ import annotations

import math

import numpy as np
import pytest

from delassus_ros.compiler.estimate_code import estimate_ir
from delassus_ros.compiler.jit import compile_for
from delassus_ros.conditioning.estimate import WITHIN, EigenvalueEstimate
from delassus_ros.conditioning.structural_rank import RANK_TOLERANCE
from delassus_ros.errors import InputError

TRUSTED = 0.03


def definition(matrix, basis, zeros: int) -> tuple[float, float] | None:
    """Return the two eigenvalues, or None where they are not proven."""
    T = basis.T @ matrix @ basis
    t = np.diag(T).copy()
    R = T - np.diag(t)
    k = len(t)
    a = zeros + int(t[zeros:].argmin())
    largest, gaps = t.max(), t - t[a]
    if not 1e-120 < largest < 1e120:
        return None
    roots = np.hypot(gaps, 2 * R[a])
    smallest = t[a] + 0.5 * (gaps - (np.copysign(roots, gaps) if zeros else roots)).sum()
    s = smallest / WITHIN
    if np.linalg.norm(R) > TRUSTED * largest or not smallest > 1.1 * RANK_TOLERANCE * largest:
        return None
    if t[a] > WITHIN * smallest or not s < t[a]:
        return None
    others = [i for i in range(zeros, k) if i != a]
    weights = 1 / (t[others] - s)
    norm = math.sqrt(weights @ R[np.ix_(others, others)] ** 2 @ weights)
    if not weights @ R[others, a] ** 2 < (1 - norm) * (t[a] - s):
        return None
    if zeros:
        above = t[a] - np.linalg.norm(T[:zeros, :zeros])
        if not above > 0 or t[a] + (R[a, :zeros] ** 2).sum() / above > WITHIN * smallest:
            return None
    return largest, smallest


def near(k: int, zeros: int, rng) -> tuple[np.ndarray, np.ndarray]:
    """Return a matrix with some eigenvalues of zero, and the eigenvectors of another near by."""
    vectors = np.linalg.qr(rng.normal(size=(k, k)))[0]
    values = np.sort(np.concatenate([np.zeros(zeros), rng.uniform(0.1, 10.0, k - zeros)]))
    turn = rng.normal(size=(k, k)) * 10.0 ** rng.uniform(-5, -1.5)
    turned = np.linalg.qr(vectors + (turn - turn.T) @ vectors)[0]
    return turned @ np.diag(values) @ turned.T, vectors


# BLAS turns those of more than 48 rows; 64 need no padding.
@pytest.mark.parametrize("k", [*range(1, 45), 48, 49, 64, 65, 200])
def test_the_estimate_is_its_definition(k: int) -> None:
    rng = np.random.default_rng(k)
    estimate = EigenvalueEstimate(k + 1)
    proven = 0
    for turn in range(60 if k < 100 else 20):
        zeros = 0 if turn % 2 else int(rng.integers(0, k))
        matrix, vectors = near(k, zeros, rng)
        scales = rng.uniform(0.5, 2.0, (k, 1))
        estimate.resize(k, zeros)
        estimate.take(vectors, 1.0 / scales)
        matrix *= scales * scales.T
        expected = definition(matrix, vectors / scales, zeros)
        assert estimate.of(matrix) is (expected is not None)
        if expected is not None:
            proven += 1
            found = estimate.largest, estimate.smallest
            np.testing.assert_allclose(found, expected, rtol=1e-11)
    assert 5 <= proven


@pytest.mark.parametrize("k", [12, 60])
def test_arrays_that_do_not_lie_row_by_row_are_read_as_well(k: int) -> None:
    rng = np.random.default_rng(3)
    matrix, vectors = near(k, 0, rng)
    estimate = EigenvalueEstimate(2 * k)
    estimate.resize(k, 0)
    estimate.take(vectors, np.ones((k, 1)))
    assert estimate.of(matrix)
    expected = estimate.largest, estimate.smallest
    large = np.zeros((2 * k, 2 * k))
    large[::2, ::2] = matrix
    view = large[::2, ::2]
    # Twice, and with another content: what lies elsewhere is copied each time.
    for factor in (1.0, 2.0):
        view *= factor
        assert estimate.of(view)
        found = estimate.largest, estimate.smallest
        np.testing.assert_allclose(found, np.multiply(expected, factor), rtol=1e-14)
    # And back to one that is read where it lies, whatever it holds by then.
    matrix *= 3.0
    assert estimate.of(matrix)
    np.testing.assert_allclose(estimate.largest, 3.0 * expected[0], rtol=1e-14)


def test_sizes_that_follow_each_other_leave_nothing_behind() -> None:
    # Each way to the turned matrix after the other, in the same memory.
    rng = np.random.default_rng(7)
    estimate = EigenvalueEstimate(65)
    for k in (65, 11, 50, 44, 65, 49, 1):
        matrix, vectors = near(k, 0, rng)
        estimate.resize(k, 0)
        estimate.take(vectors, np.ones((k, 1)))
        assert estimate.of(matrix) is (definition(matrix, vectors, 0) is not None)


@pytest.mark.parametrize(
    "matrix",
    [np.eye(3), np.eye(13), np.zeros(144), np.eye(12, dtype=np.float32), np.eye(12).tolist()],
    ids=["small", "large", "flat", "float32", "list"],
)
def test_what_the_machine_code_would_misread_is_refused(matrix: object) -> None:
    estimate = EigenvalueEstimate(12)
    estimate.take(np.eye(12), np.ones((12, 1)))
    with pytest.raises(InputError, match=r"matrix .*(expected \(12, 12\)|float64)"):
        estimate.of(matrix)  # type: ignore[arg-type]
    # Nor is it looked at by what comes next.
    assert estimate.of(np.diag(np.arange(1.0, 13.0)))
    assert estimate.largest == 12.0


def test_sizes_that_would_leave_the_memory_are_refused() -> None:
    estimate = EigenvalueEstimate(12)
    with pytest.raises(InputError, match="13 rows; expected 0 to 12"):
        estimate.resize(13, 0)
    for zeros in (-1, 13):
        with pytest.raises(InputError, match=f"{zeros} zeros by structure among 12"):
            estimate.expect(zeros)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_proves_nothing(bad: float) -> None:
    rng = np.random.default_rng(5)
    for i, j in ((0, 0), (4, 4), (11, 11), (2, 7)):
        matrix, vectors = near(12, 0, rng)
        estimate = EigenvalueEstimate(12)
        estimate.take(vectors, np.ones((12, 1)))
        matrix[i, j] = matrix[j, i] = bad
        assert not estimate.of(matrix)
        assert estimate.stale
        assert np.isnan(estimate.smallest)


@pytest.mark.parametrize("triple", ["aarch64-linux-gnu", "i686-linux-gnu", "x86_64-linux-gnu"])
def test_code_for_other_processors(triple: str) -> None:
    ir = estimate_ir(0.03, 1.03, 1e-9, 1e-120, 1e120, 0.01, 0.5)
    assert compile_for(ir, triple, "", "").startswith(b"\x7fELF")
