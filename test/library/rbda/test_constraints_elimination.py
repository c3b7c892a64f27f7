"""Pivoted elimination without a branch: right for any order of rows, singular where it is."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest

import delassus.testing.mpmath_numbers  # noqa: F401 (makes mpmath numbers scalars)
from delassus.errors import NumericalError
from delassus.rbda.elimination import SINGULAR, solve, solve_exactly
from delassus.scalars.duals import VARYING
from delassus.scalars.functions import is_zero
from delassus.scalars.graph import Graph


def varying(matrix) -> list[list[object]]:
    """Return the pattern of a matrix of which only the zeros are constant."""
    return [[0.0 if value == 0.0 else VARYING for value in row] for row in np.asarray(matrix)]


def solved(a, b, a_pattern=None):
    a, b = np.asarray(a, float), np.asarray(b, float)
    result = solve(a.tolist(), b.tolist(), a_pattern or varying(a), varying(b), "the system")
    return np.array(result.x), result.determinant


@pytest.mark.parametrize("extra", [0, 1, 4])
@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_solutions_with_and_without_redundant_rows(n, extra):
    rng = np.random.default_rng(10 * n + extra)
    for _ in range(20):
        a = rng.normal(size=(n, n))
        mixed = np.concatenate([a, rng.normal(size=(extra, n)) @ a])[rng.permutation(n + extra)]
        x = rng.normal(size=(n, 3))
        found, _ = solved(mixed, mixed @ x)
        assert np.abs(found - x).max() <= 1e-12 * np.linalg.cond(a)


def test_pivots_are_chosen_by_size_so_that_small_ones_do_no_harm():
    """Without pivoting the first solution is 0 instead of 1."""
    for rows in ([0, 1], [1, 0]):
        a, b = np.array([[1e-20, 1.0], [1.0, 1.0]])[rows], np.array([[1.0], [2.0]])[rows]
        found, _ = solved(a, b)
        assert found.ravel().tolist() == [1.0, 1.0]


def test_the_determinant_is_that_of_the_matrix_up_to_one_factor():
    rng = np.random.default_rng(3)
    ratios = set()
    for _ in range(50):
        a = rng.normal(size=(4, 4))
        a[1, 2] = a[3, 0] = 0.0
        pattern = varying([[1, 1, 1, 1], [1, 1, 0, 1], [1, 1, 1, 1], [0, 1, 1, 1]])
        _, determinant = solved(a, np.eye(4), pattern)
        ratios.add(round(determinant / np.linalg.det(a), 9))
    assert len(ratios) == 1 and abs(ratios.pop()) == 1.0


def test_constants_are_pivots_and_structural_zeros_stay():
    graph = Graph()
    u, v, w = (graph.input(k) for k in range(3))
    a = [[u, 1.0, 0.0], [0.0, 0.0, 2.0], [v, 0.0, 0.0]]
    pattern = [[VARYING, 1.0, 0.0], [0.0, 0.0, 2.0], [VARYING, 0.0, 0.0]]
    b = [[0.0, w], [4.0, 0.0], [0.0, 1.0]]
    x = solve(a, b, pattern, [[0.0, VARYING], [4.0, 0.0], [0.0, 1.0]], "it").x
    assert x[2] == [2.0, 0.0]
    assert is_zero(x[0][0]) and is_zero(x[1][0])
    assert [node[0] for node in graph.nodes].count("div") == 1, "one pivot varies"
    assert len(graph.guards) == 1


@pytest.mark.parametrize("n", [2, 3, 5])
def test_rows_with_constants_that_are_too_small_for_pivots(n):
    """Which of two rows with different constants is eliminated is known only by the values."""
    rng = np.random.default_rng(n)
    for _ in range(200):
        a = rng.normal(size=(n, n))
        constant = rng.random((n, n)) < 0.4
        a[constant] *= rng.choice([0.0, 0.05, -0.05], size=(n, n))[constant]
        if np.linalg.cond(a) > 1e3:
            continue
        pattern = [
            [float(value) if fixed else VARYING for value, fixed in zip(*rows, strict=True)]
            for rows in zip(a, constant, strict=True)
        ]
        x = rng.normal(size=(n, 2))
        found, _ = solved(a, a @ x, pattern)
        assert np.abs(found - x).max() <= 1e-12 * np.linalg.cond(a)


def test_constants_that_cancel_leave_no_rounding_error_as_a_pivot():
    a = [[0.1, 0.2, 1.0], [0.3, 0.6, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    b = np.array(a) @ [[1.0], [2.0], [3.0]]
    x, _ = solved(a, b, [list(row) for row in a])
    assert np.allclose(x.ravel(), [1.0, 2.0, 3.0], rtol=1e-14)


def test_singular_systems_are_named():
    for a in ([[1.0, 2.0], [2.0, 4.0]], [[0.5 * SINGULAR, 0.0], [0.0, 1.0]]):
        with pytest.raises(NumericalError, match="the system is singular: its dependent joints"):
            solved(a, np.eye(2), [[VARYING] * 2] * 2)
    with pytest.raises(NumericalError, match="the system is singular"):
        solved([[1.0, 0.0], [2.0, 0.0]], np.eye(2))


def test_more_digits_than_floats():
    with mpmath.workdps(40):
        a = [[mpmath.mpf(v) for v in row] for row in ([1, 3, 2], [5, 1, 1], [1, 1, 9], [6, 4, 3])]
        b = [[mpmath.mpf(v)] for v in (6, 7, 11, 13)]
        x = solve(a, b, varying(np.ones((4, 3))), varying(np.ones((4, 1))), "it").x
        assert max(abs(row[0] - 1) for row in x) < mpmath.mpf("1e-38")


def test_exact_solutions_are_rounded_once():
    """Three gears in a row: the product of their ratios in floats is rounded twice."""
    gears = [[1.0, 0.0, 0.0], [-0.9, 1.0, 0.0], [0.0, -1.3, 1.0]]
    x = solve_exactly(gears, [[0.1], [0.0], [0.0]], "it")
    assert x == [[0.1], [0.1 * 0.9], [float(Fraction(0.1) * Fraction(0.9) * Fraction(1.3))]]
    assert x[2][0] != 0.1 * 0.9 * 1.3
    assert solve_exactly([[2.0], [4.0]], [[6.0], [12.0]], "redundant") == [[3.0]]
    with pytest.raises(NumericalError, match="the belt is singular"):
        solve_exactly([[1.0, 1.0], [2.0, 2.0]], [[1.0], [2.0]], "the belt")
