"""Duals differentiate over every kind of scalar; the varying scalar tells what is constant."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

import delassus.testing.mpmath_numbers  # noqa: F401 (mpmath numbers as scalars)
from delassus.errors import NumericalError
from delassus.scalars.duals import VARYING, Dual, Varying, differentiated
from delassus.scalars.functions import is_zero, positive, regular, select, sincos, sqrt
from delassus.scalars.graph import Graph, Symbol
from delassus.testing.tello import hip_differential


def everything(x):
    """Use each operation with duals and constants on both sides."""
    a, b = x[0], x[1]
    s, c = sincos(a * b + 2.0)
    r = sqrt(a * a + 3.0)
    t = (1.0 - s) / (r + b) - 2.0 / (c + 3.0) + (a - 1.0) / 2.0 + 3.0 * (-b) - +a + (2.0 + b) * 1.5
    return [t, select(a, s * b, 2.0), select(-a, 1.0, c), s - t + 2.0 * r]


def central_difference(function, at, step):
    columns = []
    for k in range(len(at)):
        ends = []
        for sign in (1, -1):
            moved = list(at)
            moved[k] = at[k] + sign * step
            ends.append(function(moved))
        columns.append([(u - v) / (2 * step) for u, v in zip(*ends, strict=True)])
    return [list(row) for row in zip(*columns, strict=True)]


@pytest.mark.parametrize("at", [[0.7, 0.4], [-0.3, 1.9]])
def test_derivatives_of_floats_equal_differences_of_fifty_digits(at):
    values, slopes = differentiated(everything, at)
    assert values == pytest.approx(everything(at), rel=1e-15)
    with mpmath.workdps(50):
        exact = central_difference(everything, [mpmath.mpf(v) for v in at], mpmath.mpf("1e-20"))
    assert np.allclose(slopes, np.array(exact, dtype=float), rtol=1e-13, atol=1e-14)


def test_derivatives_of_mpmath_numbers_have_their_digits():
    with mpmath.workdps(50):
        at = [mpmath.mpf(v) / 7 for v in (3, -2, 1, 4)]
        values, slopes = differentiated(hip_differential, at)
        exact = central_difference(hip_differential, at, mpmath.mpf("1e-18"))
        assert values == hip_differential(at)
        for row, other in zip(slopes, exact, strict=True):
            assert max(abs(u - v) for u, v in zip(row, other, strict=True)) < mpmath.mpf("1e-32")


def test_derivatives_of_symbols_keep_structural_zeros():
    graph = Graph()
    q = [graph.input(k) for k in range(3)]
    values, slopes = differentiated(lambda x: [sincos(x[0])[0], 2.0 * x[1], 5.0], q)
    assert isinstance(values[0], Symbol) and values[2] == 5.0
    assert isinstance(slopes[0][0], Symbol)
    assert slopes[0][1:] == [0.0, 0.0] and slopes[1] == [0.0, 2.0, 0.0] and slopes[2] == [0.0] * 3


def test_derivatives_of_derivatives():
    def slope(x):
        return differentiated(lambda y: [sincos(y[0] * y[0])[0]], x)[1][0]

    x = 0.6
    _, second = differentiated(slope, [x])
    expected = 2 * math.cos(x * x) - 4 * x * x * math.sin(x * x)
    assert second[0][0] == pytest.approx(expected, rel=1e-14)


def test_guards_look_at_the_value():
    assert positive(Dual(2.0, [1.0]), "x").slopes == [1.0]
    assert regular(Dual(-2.0, [1.0]), 1.0, "x").value == -2.0
    with pytest.raises(NumericalError, match="loop 'knee' is singular"):
        regular(Dual(-1.0, [1.0]), 1.0, "loop 'knee'")
    with pytest.raises(NumericalError, match="pivot is -1.0"):
        positive(Dual(-1.0, [1.0]), "pivot")


def test_branches_are_refused_with_a_way_out():
    x = Dual(1.0, [1.0])
    for attempt in (lambda: bool(x), lambda: x == x, lambda: x < 2.0, lambda: max(x, 0.0)):
        with pytest.raises(TypeError, match=r"use select\(x, positive, otherwise\)"):
            attempt()


def test_the_varying_scalar_is_constant_only_times_zero():
    for result in (
        VARYING + 1.0, 1.0 - VARYING, 2.0 * VARYING, VARYING / 3.0, 1.0 / VARYING, -VARYING,
        sqrt(VARYING), select(VARYING, 1.0, 1.0), *sincos(VARYING), positive(VARYING, ""),
        regular(VARYING, 1.0, ""), VARYING - VARYING,
    ):  # fmt: skip
        assert isinstance(result, Varying)
    assert is_zero(0.0 * VARYING) and is_zero(VARYING * 0.0) and is_zero(0.0 / VARYING)


def test_what_is_constant_in_a_trace_is_what_the_varying_scalar_says():
    graph = Graph()
    for function in (everything, hip_differential):
        count = 2 if function is everything else 4
        _, pattern = differentiated(function, [VARYING] * count)
        _, traced = differentiated(function, [graph.input(k) for k in range(count)])
        for row, other in zip(pattern, traced, strict=True):
            assert [type(v) is float for v in row] == [type(v) is float for v in other]
            assert [v for v in row if type(v) is float] == [v for v in other if type(v) is float]
