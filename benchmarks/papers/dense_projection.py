"""The projection method without the zeros of branches: G = J (Eᵀ M E)⁻¹ Jᵀ by dense matrices.

The code that the cluster paper cites inverts Eᵀ M E as a dense matrix. M and J are those of
:mod:`delassus.algorithms.ltl`; in a trace their structural zeros become unknown numbers, so that
they cost what other entries cost.
"""

from __future__ import annotations

from collections.abc import Mapping

from delassus.algorithms import ltl
from delassus.algorithms.registry import TracedAlgorithm, TreeAlgorithm
from delassus.rbda.tree import Tree
from delassus.scalars.functions import Matrix, Vector, dot, identity, is_zero, ldl, ldl_solve
from delassus.scalars.graph import Symbol
from delassus.scalars.ports import Inputs


def by_inverse(tree: Tree, K: dict[int, Matrix], x: Inputs) -> Matrix:
    """Return G by the inverse of Eᵀ M E, from LU factors without pivoting."""
    M, J = _dense(tree, K, x)
    inverse = _inverse(M)
    return _symmetric([[dot(row, column) for column in inverse] for row in J], J)


def by_cholesky(tree: Tree, K: dict[int, Matrix], x: Inputs) -> Matrix:
    """Return G by Cholesky factors of Eᵀ M E: J times the solutions for Jᵀ."""
    M, J = _dense(tree, K, x)
    L, inverse_pivots = ldl(M, "the projected mass matrix")
    return _symmetric([ldl_solve(L, inverse_pivots, row) for row in J], J)


METHODS: Mapping[str, TracedAlgorithm] = {
    "dense_inverse": TreeAlgorithm(by_inverse, clusters=True, version=1),
    "dense_cholesky": TreeAlgorithm(by_cholesky, clusters=True, version=1),
}


def _dense(tree: Tree, K: dict[int, Matrix], x: Inputs) -> tuple[Matrix, Matrix]:
    """Return Eᵀ M E and J E, without structural zeros where x are symbols."""
    lower, J, _ = ltl.projected(tree, K, x)
    lower, J = _filled(lower, x), _filled(J, x)
    n = range(len(lower))
    return [[lower[max(i, j)][min(i, j)] for j in n] for i in n], J


def _filled(A: Matrix, x: Inputs) -> Matrix:
    first = x["q"][0]
    if not isinstance(first, Symbol):
        return A
    return [[first.graph.parameter() if is_zero(value) else value for value in row] for row in A]


def _symmetric(Z: Matrix, J: Matrix) -> Matrix:
    """Return Z Jᵀ from its upper half."""
    half = [[dot(z, row) for row in J[r:]] for r, z in enumerate(Z)]
    rows = range(len(J))
    return [[half[min(r, s)][abs(r - s)] for s in rows] for r in rows]


def _inverse(A: Matrix) -> list[Vector]:
    """Return the columns of A⁻¹."""
    n = len(A)
    U = [list(row) for row in A]
    for k in range(n):
        inverse_pivot = 1.0 / U[k][k]
        for i in range(k + 1, n):
            U[i][k] = U[i][k] * inverse_pivot  # an entry of L
            for j in range(k + 1, n):
                U[i][j] = U[i][j] - U[i][k] * U[k][j]
    columns = identity(n)
    for c, column in enumerate(columns):
        for i in range(c + 1, n):
            for j in range(c, i):
                column[i] = column[i] - U[i][j] * column[j]
        for i in reversed(range(n)):
            for j in range(i + 1, n):
                column[i] = column[i] - U[i][j] * column[j]
            column[i] = column[i] / U[i][i]
    return columns
