"""The scalars that algorithms compute with, and the functions over them.

An algorithm is written once over *scalars*: Python floats (the readable reference), mpmath
numbers (the 50-digit oracle) or symbolic scalars (the trace that is compiled). Constants of
the robot are plain floats everywhere. Symbolic scalars fold ``0.0 * x`` to ``0.0`` and
``x + 0.0`` to ``x``, so structural zeros vanish from the trace without special cases.

Arithmetic uses ``+ - * /``. Further operations are :func:`sincos`, :func:`sqrt`, :func:`select`,
:func:`positive` and :func:`regular`. These functions dispatch on the type of the first argument; a
new kind of number registers an implementation of every function.
"""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any, TypeAlias

from delassus.errors import NumericalError
from delassus.scalars.steps import blocks, step

Scalar: TypeAlias = Any
"""float, mpmath.mpf, or a symbolic scalar of the compiler."""
Vector: TypeAlias = list[Scalar]
Matrix: TypeAlias = list[list[Scalar]]


@singledispatch
def sincos(angle: Any) -> tuple[Scalar, Scalar]:
    """Return (sin, cos) of an angle [rad]."""
    raise TypeError(f"sincos is not defined for {type(angle).__name__}")


@singledispatch
def sqrt(x: Any) -> Scalar:
    """Return the square root."""
    raise TypeError(f"sqrt is not defined for {type(x).__name__}")


@singledispatch
def select(x: Any, positive: Scalar, otherwise: Scalar) -> Scalar:
    """Return `positive` where x > 0, else `otherwise`; both are evaluated."""
    raise TypeError(f"select is not defined for {type(x).__name__}")


@singledispatch
def positive(x: Any, what: str, of: Any = None) -> Scalar:
    """Return `x`, which must be > 0; `what` names the value in error messages.

    On numbers a violation raises :class:`~delassus.errors.NumericalError`; in a trace it
    becomes a check whose failure is the kernel's status. A trace keeps the check if a result
    depends on `of`, by default on x.
    """
    raise TypeError(f"positive is not defined for {type(x).__name__}")


@singledispatch
def regular(pivot: Any, least: float, what: str) -> Scalar:
    """Return `pivot`, which must be larger than `least` in size: else `what` is singular.

    On numbers a violation raises :class:`~delassus.errors.NumericalError`; in a trace it
    becomes a check whose failure is the kernel's status.
    """
    raise TypeError(f"regular is not defined for {type(pivot).__name__}")


@sincos.register
def _(angle: float) -> tuple[float, float]:
    return math.sin(angle), math.cos(angle)


@sqrt.register
def _(x: float) -> float:
    if x < 0.0:
        raise NumericalError(f"the square root of {x} is not real")
    return math.sqrt(x)


@select.register
def _(x: float, positive: Scalar, otherwise: Scalar) -> Scalar:
    return positive if x > 0 else otherwise


@positive.register
def _(x: float, what: str, of: Scalar = None) -> float:
    check_positive(x, what)
    return x


def check_positive(x: Any, what: str) -> None:
    """Raise NumericalError naming `what` unless the number `x` is > 0."""
    if not x > 0:
        raise NumericalError(
            f"{what} is {x}, expected > 0: the mass matrix is not positive definite"
        )


@regular.register
def _(pivot: float, least: float, what: str) -> float:
    check_regular(pivot, least, what)
    return pivot


def check_regular(pivot: Any, least: float, what: str) -> None:
    """Raise NumericalError naming the loop `what` unless the number is > `least` in size."""
    if not abs(pivot) > least:
        raise NumericalError(
            f"{what} is singular: its dependent joints do not follow from the independent ones"
        )


def absolute(x: Scalar) -> Scalar:
    """Return |x|."""
    return select(x, x, -x)


def is_zero(x: Scalar) -> bool:
    """Return True for the float 0.0: among symbols a structural zero, among floats any zero."""
    return type(x) is float and x == 0.0


def dot(u: Vector, v: Vector) -> Scalar:
    """Return uᵀv."""
    total: Scalar = 0.0
    for a, b in zip(u, v, strict=True):
        total = total + a * b
    return total


def plus(u: Vector, v: Vector) -> Vector:
    """Return u + v."""
    return [a + b for a, b in zip(u, v, strict=True)]


def minus(u: Vector, v: Vector) -> Vector:
    """Return u − v."""
    return [a - b for a, b in zip(u, v, strict=True)]


def cross_matrix(v: Vector) -> Matrix:
    """Return [v×]."""
    x, y, z = v
    return [[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]]


def cross(u: Vector, v: Vector) -> Vector:
    """Return u × v."""
    return [
        u[1] * v[2] - u[2] * v[1],
        u[2] * v[0] - u[0] * v[2],
        u[0] * v[1] - u[1] * v[0],
    ]


_FEW = 27
"""Number of scalar products up to which a matrix product is inlined instead of being a step: a
call costs about as much as so few products, and inlining larger products would dominate the time
of compilation."""


def matmul(a: Matrix, b: Matrix) -> Matrix:
    """Return the product of two matrices."""
    columns = [list(column) for column in zip(*b, strict=True)]
    if len(a) * len(b) * len(columns) <= _FEW:
        return [[dot(row, column) for column in columns] for row in a]
    result: Matrix = []
    for rows in blocks(len(a)):
        parts = [_row_products(a[rows], columns[across]) for across in blocks(len(columns))]
        result += [[value for row in band for value in row] for band in zip(*parts, strict=True)]
    return result


@step
def _row_products(a: Matrix, b: Matrix) -> Matrix:
    """Return a bᵀ."""
    return [[dot(row, column) for column in b] for row in a]


def transpose(a: Matrix) -> Matrix:
    """Return the transpose."""
    return [list(column) for column in zip(*a, strict=True)]


def zeros(rows: int, columns: int) -> Matrix:
    """Return a matrix of structural zeros."""
    return [[0.0] * columns for _ in range(rows)]


def identity(n: int) -> Matrix:
    """Return the identity matrix of structural ones and zeros."""
    return [[float(i == j) for j in range(n)] for i in range(n)]


def ldl(a: Matrix, what: str) -> tuple[Matrix, Vector]:
    """Factorise a symmetric positive definite matrix as L D Lᵀ.

    Returns
    -------
    L : unit lower triangular; D⁻¹ : the inverse pivots. Only the lower triangle of `a` is read.

    Raises
    ------
    NumericalError
        On numbers, if a pivot is not positive; `what` names the matrix.
    """
    n = len(a)
    rest = [list(row) for row in a]
    lower = identity(n)
    inverse_pivots: Vector = []
    for j in range(n):
        pivot_inverse = 1.0 / positive(rest[j][j], f"pivot {j + 1} of {what}")
        inverse_pivots.append(pivot_inverse)
        for i in range(j + 1, n):
            lower[i][j] = rest[i][j] * pivot_inverse
        for i in range(j + 1, n):
            for k in range(j + 1, i + 1):
                rest[i][k] = rest[i][k] - lower[i][j] * rest[k][j]
    return lower, inverse_pivots


def forward_substitute(lower: Matrix, b: Vector) -> Vector:
    """Return L⁻¹ b for a unit lower triangular L."""
    y: Vector = []
    for i, value in enumerate(b):
        for k in range(i):
            value = value - lower[i][k] * y[k]
        y.append(value)
    return y


def back_substitute(lower: Matrix, b: Vector) -> Vector:
    """Return L⁻ᵀ b for a unit lower triangular L."""
    x = list(b)
    for i in reversed(range(len(x))):
        for k in range(i + 1, len(x)):
            x[i] = x[i] - lower[k][i] * x[k]
    return x


def ldl_solve(lower: Matrix, inverse_pivots: Vector, b: Vector) -> Vector:
    """Return (L D Lᵀ)⁻¹ b for the factors of :func:`ldl`."""
    y = forward_substitute(lower, b)
    scaled = [value * pivot for value, pivot in zip(y, inverse_pivots, strict=True)]
    return back_substitute(lower, scaled)
