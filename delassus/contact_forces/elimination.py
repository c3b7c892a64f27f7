"""Linear equations of the iterations, in the subset of Python that is compiled."""

from __future__ import annotations

from math import sqrt

from delassus.compiler.codegen.loops import Doubles

NULL_ENTRY = 1e-6
"""Entries of a null vector that count as zero, where its free entry is 1."""


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


def rank_revealed(n: int, least: float, A: Doubles, null: Doubles, order: Doubles) -> int:
    """Return the rank of a row-major A, which is overwritten, by elimination with all pivots.

    Parameters
    ----------
    least : size of the smallest pivot that counts.
    null : (n,) result, 1 where an entry of a null vector is not zero, else 0.
    order : (n,) work.
    """
    for i in range(n):
        null[i], order[i] = 0.0, float(i)
    rank = n
    for p in range(n):
        pivot_row, pivot_column, largest = p, p, 0.0
        for i in range(p, n):
            for j in range(p, n):
                if abs(A[i * n + j]) > largest:
                    pivot_row, pivot_column, largest = i, j, abs(A[i * n + j])
        if not largest > least:
            rank = p
            break
        order[p], order[pivot_column] = order[pivot_column], order[p]
        for i in range(n):
            A[i * n + p], A[i * n + pivot_column] = A[i * n + pivot_column], A[i * n + p]
        above = A[p * n :]
        for j in range(p, n):
            above[j], A[pivot_row * n + j] = A[pivot_row * n + j], above[j]
        inverse = 1.0 / above[p]
        for j in range(p, n):
            above[j] *= inverse
        for i in range(n):
            row = A[i * n :]
            factor = row[p]
            if i != p and factor != 0.0:
                for j in range(p, n):
                    row[j] -= factor * above[j]
    for j in range(rank, n):
        null[int(order[j])] = 1.0
        for i in range(rank):
            if abs(A[i * n + j]) > NULL_ENTRY:
                null[int(order[i])] = 1.0
    return rank


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
