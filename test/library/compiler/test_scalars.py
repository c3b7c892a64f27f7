"""The scalar functions on floats and on mpmath numbers, and the small dense algebra."""

from __future__ import annotations

import math

import numpy as np
import pytest

from delassus.errors import NumericalError
from delassus.scalars import functions as scalars
from delassus.scalars.functions import (
    dot,
    forward_substitute,
    identity,
    is_zero,
    ldl,
    matmul,
    positive,
    regular,
    select,
    sincos,
    sqrt,
    transpose,
    zeros,
)


def test_functions_on_floats() -> None:
    assert sincos(0.3) == (math.sin(0.3), math.cos(0.3))
    assert sqrt(2.0) == math.sqrt(2.0)
    assert [select(x, 1.0, 2.0) for x in (1e-300, 0.0, -0.0, -1.0, math.nan)] == [1, 2, 2, 2, 2]
    assert positive(0.5, "the pivot") == 0.5
    # NumPy's doubles are floats.
    assert sincos(np.float64(0.3))[0] == math.sin(0.3)


@pytest.mark.needs("delassus.testing.mpmath_numbers")
def test_functions_on_mpmath_keep_all_digits() -> None:
    import mpmath
    with mpmath.workdps(50):
        x = mpmath.mpf(2)
        s, c = sincos(x)
        assert abs(s**2 + c**2 - 1) < mpmath.mpf(10) ** -49
        assert abs(sqrt(x) ** 2 - 2) < mpmath.mpf(10) ** -48
        assert select(x, "positive", "otherwise") == "positive"
        assert select(-x, "positive", "otherwise") == "otherwise"
        assert positive(x, "x") is x and regular(-x, 1.5, "x") == -x
        with pytest.raises(NumericalError, match="the thing is -2.0, expected > 0"):
            positive(-x, "the thing")


@pytest.mark.parametrize("x", [0.0, -0.0, -1e-300, -math.inf, math.nan])
def test_positive_refuses_and_names(x: float) -> None:
    with pytest.raises(NumericalError, match="joint 'knee' is .*, expected > 0: the mass matrix"):
        positive(x, "joint 'knee'")


@pytest.mark.parametrize("pivot", [0.0, 1e-3, -1e-3, math.nan])
def test_regular_refuses_and_names(pivot: float) -> None:
    assert regular(-0.5, 1e-3, "loop 'knee'") == -0.5
    with pytest.raises(NumericalError, match="loop 'knee' is singular: its dependent joints"):
        regular(pivot, 1e-3, "loop 'knee'")


@pytest.mark.parametrize("function", ["sincos", "sqrt", "select", "positive", "regular"])
def test_other_types_are_named(function: str) -> None:
    rest = {"select": (1.0, 2.0), "positive": ("x",), "regular": (0.1, "x")}.get(function, ())
    with pytest.raises(TypeError, match=f"{function} is not defined for str"):
        getattr(scalars, function)("1.0", *rest)


def test_is_zero_means_a_structural_zero() -> None:
    assert is_zero(0.0)
    assert is_zero(-0.0)
    assert not is_zero(1e-300)
    assert not is_zero(0)


def test_products_equal_numpy() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(3, 5)), rng.normal(size=(5, 2))
    assert np.allclose(matmul(a.tolist(), b.tolist()), a @ b, rtol=1e-14)
    assert transpose(a.tolist()) == a.T.tolist()
    assert dot([1.0, 2.0], [3.0, 4.0]) == 11.0
    assert identity(3) == np.eye(3).tolist()
    assert zeros(2, 3) == np.zeros((2, 3)).tolist()
    rows = zeros(2, 2)
    rows[0][0] = 1.0
    assert rows[1][0] == 0.0
    with pytest.raises(ValueError, match="zip"):
        dot([1.0], [1.0, 2.0])


@pytest.mark.parametrize("n", [1, 2, 6, 11])
def test_ldl_factorises_and_reads_only_the_lower_triangle(n: int) -> None:
    rng = np.random.default_rng(n)
    a = rng.normal(size=(n, n))
    a = a @ a.T + n * np.eye(n)
    lower, inverse_pivots = ldl(np.tril(a).tolist(), "a")
    L, D = np.array(lower), np.diag(1 / np.array(inverse_pivots))
    assert np.allclose(L @ D @ L.T, a, rtol=1e-13)
    assert np.array_equal(L, np.tril(L))
    assert np.array_equal(np.diag(L), np.ones(n))
    b = rng.normal(size=n)
    assert np.allclose(L @ np.array(forward_substitute(lower, b.tolist())), b, rtol=1e-12)


def test_ldl_names_the_failing_pivot() -> None:
    with pytest.raises(NumericalError, match="pivot 2 of the base is -3.0, expected > 0"):
        ldl([[1.0, 2.0], [2.0, 1.0]], "the base")


def test_ldl_leaves_its_argument() -> None:
    a = [[2.0, 1.0], [1.0, 2.0]]
    ldl(a, "a")
    assert a == [[2.0, 1.0], [1.0, 2.0]]


def test_a_root_that_is_not_real_is_named() -> None:
    with pytest.raises(NumericalError, match="the square root of -0.5 is not real"):
        sqrt(-0.5)
    assert math.isnan(sqrt(math.nan))
