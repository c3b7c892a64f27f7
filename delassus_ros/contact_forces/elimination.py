"""Linear equations of the iterations, in the subset of Python that is compiled."""

from __future__ import annotations

from math import sqrt

from delassus_ros.compiler.codegen.loops import Doubles


def eliminated(n: int, A: Doubles, b: Doubles) -> bool:
    """Solve A x = b in place by elimination with row pivots; return False for a singular A."""
    for p in range(n):
        pivot = p
        for i in range(p + 1, n):
            if abs(A[i * n + p]) > abs(A[pivot * n + p]):
                pivot = i
        if not abs(A[pivot * n + p]) > 0.0:
            return False
        if pivot != p:
            for j in range(p, n):
                A[p * n + j], A[pivot * n + j] = A[pivot * n + j], A[p * n + j]
            b[p], b[pivot] = b[pivot], b[p]
        above = A[p * n :]
        inverse = 1.0 / above[p]
        for i in range(p + 1, n):
            row = A[i * n :]
            factor = row[p] * inverse
            if factor != 0.0:
                for j in range(p + 1, n):
                    row[j] -= factor * above[j]
                b[i] -= factor * b[p]
    for p in range(n - 1, -1, -1):
        value = b[p]
        row = A[p * n :]
        for j in range(p + 1, n):
            value -= row[j] * b[j]
        b[p] = value / row[p]
    return True


def cholesky(k: int, A: Doubles) -> bool:
    """Factorise the lower triangle of a column-major A in place; False if it is not positive."""
    for j in range(k):
        pivot = A[j * k + j]
        if not pivot > 0.0:
            return False
        root = sqrt(pivot)
        inverse = 1.0 / root
        column = A[j * k :]
        for i in range(j, k):
            column[i] *= inverse
        for other_row in range(j + 1, k):
            factor = column[other_row]
            other = A[other_row * k :]
            for i in range(other_row, k):
                other[i] -= factor * column[i]
    return True


def solved(k: int, L: Doubles, b: Doubles, x: Doubles) -> None:
    """Write x with L L'x = b."""
    for i in range(k):
        x[i] = b[i]
    for j in range(k):
        column = L[j * k :]
        x[j] /= column[j]
        value = x[j]
        for i in range(j + 1, k):
            x[i] -= value * column[i]
    for j in range(k - 1, -1, -1):
        column = L[j * k :]
        value = x[j]
        for i in range(j + 1, k):
            value -= column[i] * x[i]
        x[j] = value / column[j]
