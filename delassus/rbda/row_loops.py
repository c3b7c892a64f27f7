"""Loops that are closed by rows: outputs with the loops held, from those of the open tree.

With the rows c of contacts and ℓ of loops, forces of the loops keep their accelerations at zero:

    G = G_cc − B G_ℓc,  J = J_c − B J_ℓ,  a⁰ = a⁰_c − B a⁰_ℓ,  J̇ẏ = (J̇ẏ)_c − B (J̇ẏ)_ℓ,
    v = v_c − B v_ℓ,
    M⁻¹Jᵀ = (M⁻¹J_cᵀ) − (M⁻¹J_ℓᵀ) Bᵀ,  ÿ⁰ = ÿ⁰ − M⁻¹J_ℓᵀ G_ℓℓ⁻¹ a⁰_ℓ,  B = G_cℓ G_ℓℓ⁻¹

Rows of loops are as many as the structural rank, so G_ℓℓ is regular but at singular postures.
Velocities are those of all joints of the tree; M and h are of the tree without forces of loops.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from delassus.problem import Problem
from delassus.scalars.functions import (
    Matrix,
    Vector,
    back_substitute,
    dot,
    forward_substitute,
    identity,
    ldl,
    matmul,
    transpose,
    zeros,
)
from delassus.scalars.ports import Outputs


class RowLoops:
    """The rows of a problem's loops, eliminated.

    Parameters
    ----------
    G : matrix of the contacts and of the loops.
    """

    def __init__(self, problem: Problem, G: Matrix) -> None:
        self._G, self._m = G, problem.contacts.rows
        names = ", ".join(repr(loop.name) for loop in problem.robot.row_loops)
        self._what = f"the inverse inertia of loops {names}"

    @cached_property
    def _factors(self) -> tuple[Matrix, Vector, Matrix, Matrix]:
        """L and D⁻¹ of G_ℓℓ, and G_cℓ L⁻ᵀ without and with D⁻¹."""
        m = self._m
        L, D_inverse = ldl([row[m:] for row in self._G[m:]], self._what)
        Y = [forward_substitute(L, row[m:]) for row in self._G[:m]]
        Z = [[y * d for y, d in zip(row, D_inverse, strict=True)] for row in Y]
        return L, D_inverse, Y, Z

    @property
    def matrix(self) -> Matrix:
        """G of the contacts."""
        m = self._m
        if len(self._G) == m:
            return self._G
        _, _, Y, Z = self._factors
        found = zeros(m, m)
        for r in range(m):
            for c in range(r, m):
                found[r][c] = found[c][r] = self._G[r][c] - dot(Z[r], Y[c])
        return found

    def rows(self, values: Matrix) -> Matrix:
        """Return a matrix (m, …) of the contacts from that of contacts and loops."""
        L, _, _, Z = self._factors
        m = self._m
        below = [forward_substitute(L, list(column)) for column in transpose(values[m:])]
        return [
            [value - dot(Z[r], column) for value, column in zip(values[r], below, strict=True)]
            for r in range(m)
        ]

    def vector(self, values: Vector) -> Vector:
        """Return a vector (m,) of the contacts from that of contacts and loops."""
        return [row[0] for row in self.rows([[value] for value in values])]

    def free(self, qdd0: Vector, response: Matrix, a0: Vector) -> Vector:
        """Return ÿ⁰ (n,) with loops held from that of the tree, M⁻¹Jᵀ and a⁰ of all rows."""
        L, D_inverse, *_ = self._factors
        y = forward_substitute(L, a0[self._m :])
        scaled = [value * d for value, d in zip(y, D_inverse, strict=True)]
        forces = back_substitute(L, scaled)
        return [
            value - dot(row[self._m :], forces) for value, row in zip(qdd0, response, strict=True)
        ]

    def derivatives(self, dG: list[Matrix]) -> list[Matrix]:
        """Return ∂G/∂y (n, m, m) from that of contacts and loops: T ∂G Tᵀ with T = (1, −B)."""
        L, _, _, Z = self._factors
        T = [
            [*one, *(-b for b in back_substitute(L, row))]
            for one, row in zip(identity(self._m), Z, strict=True)
        ]
        found = []
        for matrix in dG:
            product = matmul(matmul(T, matrix), transpose(T))
            size = range(self._m)
            found.append([[product[min(r, c)][max(r, c)] for c in size] for r in size])
        return found


def closed(problem: Problem, opened: Outputs) -> Outputs:
    """Return the outputs of a problem from those of :attr:`Problem.opened`."""
    loops = RowLoops(problem, opened["G"])
    formulas: dict[str, Callable[[], Any]] = {
        "G": lambda: loops.matrix,
        "J": lambda: loops.rows(opened["J"]),
        "JdotV": lambda: loops.vector(opened["JdotV"]),
        "v": lambda: loops.vector(opened["v"]),
        "turning": lambda: opened["turning"][: problem.contacts.rows],
        "a0": lambda: loops.vector(opened["a0"]),
        "MinvJT": lambda: transpose(loops.rows(transpose(opened["MinvJT"]))),
        "qdd0": lambda: loops.free(opened["qdd0"], opened["MinvJT"], opened["a0"]),
        "dG": lambda: loops.derivatives(opened["dG"]),
    }
    return {
        port.name: formulas[port.name]() if port.name in formulas else opened[port.name]
        for port in problem.outputs
    }
