"""The factors M = Lᵀ D L of a mass matrix with the sparsity that branches induce.

R. Featherstone, "Efficient Factorization of the Joint-Space Inertia Matrix for Branched Kinematic
Trees", IJRR 24(6), 2005, table 2; "Exploiting Sparsity in Operational-Space Dynamics", IJRR
29(10), 2010, section 4. Velocities are numbered parents first, so that L is as sparse as M; the
pattern of M is used, not the tree.

With Y = J L⁻¹, G = Y D⁻¹ Yᵀ and M⁻¹ Jᵀ = L⁻¹ D⁻¹ Yᵀ: the advantage of sparse factors that
P. M. Wensing, R. Featherstone, D. E. Orin, "A Reduced-Order Recursive Algorithm for the
Computation of the Operational-Space Inertia Matrix", IEEE ICRA, 2012, section VI, names.
"""

from __future__ import annotations

from collections.abc import Sequence

from delassus.scalars.functions import Matrix, Scalar, Vector, is_zero, positive, zeros


class FactoredInertia:
    """The factors of M, and Y = J L⁻¹.

    Parameters
    ----------
    M : (n, n) mass matrix; its lower triangle is read.
    J : (m, n) Jacobian.
    names : per velocity, the joint; for messages.
    """

    def __init__(self, M: Matrix, J: Matrix, names: Sequence[str]) -> None:
        self._L, self._D_inverse = factorise(M, names)
        self._Y = [solve_rows(self._L, row) for row in J]

    @property
    def matrix(self) -> Matrix:
        """G = J M⁻¹ Jᵀ (m, m)."""
        return products(self._Y, self._D_inverse)

    @property
    def response(self) -> list[Vector]:
        """Columns of M⁻¹ Jᵀ (n, m)."""
        return [self._substituted(y) for y in self._Y]

    def accelerations(self, forces: Vector) -> Vector:
        """Return M⁻¹ f (n,)."""
        return self._substituted(solve_rows(self._L, forces))

    def _substituted(self, y: Vector) -> Vector:
        z = [value * d for value, d in zip(y, self._D_inverse, strict=True)]
        return substituted(self._L, z)


def factorise(M: Matrix, names: Sequence[str]) -> tuple[Matrix, Vector]:
    """Return L (unit lower triangular, as sparse as M) and D⁻¹ with M = Lᵀ D L.

    Featherstone (2005), table 2: from the last velocity to the first, only along branches.

    Parameters
    ----------
    names : per velocity, the joint; for messages.

    Raises
    ------
    NumericalError
        On numbers, if a pivot is not positive; names the joint.
    """
    L = [list(row) for row in M]
    n = len(M)
    D_inverse: Vector = [0.0] * n
    for k in reversed(range(n)):
        D_inverse[k] = 1.0 / positive(L[k][k], f"the inertia seen by joint {names[k]!r}")
        branch = [i for i in reversed(range(k)) if not is_zero(L[k][i])]
        for depth, i in enumerate(branch):
            a = L[k][i] * D_inverse[k]
            for j in branch[depth:]:
                L[i][j] = L[i][j] - a * L[k][j]
            L[k][i] = a
    return L, D_inverse


def solve_rows(L: Matrix, row: Vector) -> Vector:
    """Return y = row · L⁻¹, which has the row's branch-induced sparsity (2010, section 4)."""
    y = list(row)
    for k in reversed(range(len(y))):
        if is_zero(y[k]):
            continue
        for i in reversed(range(k)):
            y[i] = y[i] - L[k][i] * y[k]
    return y


def substituted(L: Matrix, z: Vector) -> Vector:
    """Return L⁻¹ z."""
    found: Vector = []
    for k, value in enumerate(z):
        for i in reversed(range(k)):
            value = value - L[k][i] * found[i]
        found.append(value)
    return found


def products(Y: Matrix, D_inverse: Vector) -> Matrix:
    """Return Y D⁻¹ Yᵀ, over the entries that are not structurally zero."""
    present = [[k for k, value in enumerate(y) if not is_zero(value)] for y in Y]
    Z = [[value * d for value, d in zip(y, D_inverse, strict=True)] for y in Y]
    G = zeros(len(Y), len(Y))
    for r, z in enumerate(Z):
        for s in range(r, len(Y)):
            total: Scalar = 0.0
            for k in present[s]:
                total = total + z[k] * Y[s][k]
            G[r][s] = G[s][r] = total
    return G
