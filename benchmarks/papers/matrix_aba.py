"""The matrix form of the articulated-body algorithm, Property 2 of Nori's paper.

F. Nori, "Inverse, forward and other dynamic computations computationally optimized with sparse
matrix factorizations", appendix B: with the articulated inertias I^A known, W^L D W^R is lower
triangular in the order (34), (35). W^R, (29), replaces f by the bias force p^A = f − I^A a; W^L is
the product of (33), (32), (31) and (30). The system here has a force-free tip, the torques are
known, and its rows have the opposite sign of the paper's.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from delassus.measured.observability import dense
from delassus.measured.system import System
from delassus.model.spatial import Array

SUBSTITUTION = "matrix ABA, substitution alone"
PRODUCTS = "matrix ABA, with W^L D W^R and W^L b"
_NOTHING = 1e-9
"""Entries below this share of the largest entry are rounding."""


class Triangular(NamedTuple):
    """The triangular system of a serial chain at a posture.

    Attributes
    ----------
    W_L, D, W_R : D maps a, f, τ, q̈ by link to the equations of motion.
    order : rows and columns in the order in which W_L D W_R is lower triangular, τ first.
    b : constants of the equations.
    """

    W_L: Array
    D: Array
    W_R: Array
    rows: list[int]
    columns: list[int]
    b: Array

    @property
    def T(self) -> Array:
        """W_L D W_R, rows and columns in their order."""
        return (self.W_L @ self.D @ self.W_R)[np.ix_(self.rows, self.columns)]


def posture(system: System) -> dict[str, list[float]]:
    """Return a random posture, the same each time."""
    random = np.random.default_rng(0)
    n = system.spanning.size
    return {
        "q": random.uniform(-3.0, 3.0, n).tolist(),
        "rates": random.normal(size=n).tolist(),
        "gravity": [0.0, 0.0, -9.81],
    }


def triangular(system: System) -> Triangular:
    """Return the triangular system of a serial chain."""
    at, n = system.columns, system.spanning.size
    equations = system.at(posture(system)).equations()
    D = dense(equations, at.size)
    b = np.array([equation.constant for equation in equations])
    a = [np.arange(k, k + 6) for k in at.a]
    f = [np.arange(k, k + 6) for k in at.f]
    torques = [6 * 2 * n + k for k in range(n)]  # rows of the torques
    X = [-D[np.ix_(a[i], a[i - 1])] for i in range(n)]  # X[0] is not used
    S = [-D[a[i], at.accelerations[i]] for i in range(n)]
    inertia = [-D[np.ix_(f[i], a[i])] for i in range(n)]
    for i in reversed(range(1, n)):  # (13 I^a) and (13 I^A)
        IS = inertia[i] @ S[i]
        passed = inertia[i] - np.outer(IS, IS) / (S[i] @ IS)
        inertia[i - 1] = inertia[i - 1] + X[i].T @ passed @ X[i]
    W_R, size = np.eye(at.size), len(D)
    steps = [np.eye(size) for _ in range(4)]
    for i in range(n):
        IS = inertia[i] @ S[i]
        W_R[np.ix_(f[i], a[i])] = inertia[i]  # (29)
        steps[0][torques[i], a[i]] = IS  # (30)
        steps[1][torques[i], torques[i]] = -1.0 / (S[i] @ IS)  # (31)
        steps[2][a[i], torques[i]] = S[i]  # (32)
        if i:
            steps[3][np.ix_(f[i - 1], a[i])] = X[i].T @ inertia[i]  # (33)
    W_L = steps[3] @ steps[2] @ steps[1] @ steps[0]
    inwards = [int(k) for i in reversed(range(n)) for k in f[i]]
    outwards = [int(k) for i in range(n) for k in a[i]]
    return Triangular(
        W_L, D, W_R, [*inwards, *outwards, *torques],
        [*at.torques, *inwards, *outwards, *at.accelerations], b,
    )  # fmt: skip


def operations(system: System) -> dict[str, int]:
    """Return the operations of the substitution, alone and with the products of matrices.

    The articulated inertias and the entries of D are not counted.
    """
    found = triangular(system)
    n = system.spanning.size
    T = _cleaned(found.T)
    above = np.triu(T[:, n:], 1)
    if above.any() or not np.allclose(np.diag(T[:, n:]), 1.0):
        raise ArithmeticError("W^L D W^R is not lower triangular with ones on its diagonal")
    substitution = _products(T - np.hstack([np.zeros((len(T), n)), np.eye(len(T))]))
    left = _cleaned(found.W_L)
    middle = _cleaned(found.W_L @ found.D)
    matrices = _matrix_product(left, found.D) + _matrix_product(middle, found.W_R)
    return {
        SUBSTITUTION: substitution,
        PRODUCTS: substitution + matrices + _products(left - np.diag(np.diag(left))),
    }


def _cleaned(A: Array) -> Array:
    return np.where(np.abs(A) > _NOTHING * np.abs(A).max(), A, 0.0)


def _products(A: Array) -> int:
    """Return the operations of A x added to a vector, products with ±1 not counted."""
    return int(np.count_nonzero(A) + np.count_nonzero((A != 0.0) & (np.abs(A) != 1.0)))


def _matrix_product(A: Array, B: Array) -> int:
    """Return the operations of the sparse product A B, products with ±1 not counted."""
    products = terms = 0
    for k in range(A.shape[1]):
        left, right = A[:, k], B[k]
        many, wide = np.count_nonzero(left), np.count_nonzero(right)
        units = np.count_nonzero(np.abs(left) == 1.0), np.count_nonzero(np.abs(right) == 1.0)
        products += (many - units[0]) * (wide - units[1])
        terms += many * wide
    return int(products + terms - np.count_nonzero(_cleaned(A @ B)))
