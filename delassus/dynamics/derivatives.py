"""Derivatives of inverse and forward dynamics with respect to configuration, rates and torques.

With τ = ID(q, ẏ, ÿ) forward dynamics has ∂ÿ = −M⁻¹ ∂ID at the accelerations that the torques
cause, and ∂ÿ/∂τ = M⁻¹: J. Carpentier, N. Mansard, "Analytical Derivatives of Rigid Body Dynamics
Algorithms", RSS 2018; inverse dynamics is differentiated in
:mod:`delassus.rbda.inverse_derivatives`, clusters included, and passive torques, such as those
of springs, in :mod:`delassus.rbda.passive`. Of a floating base, gravity that
turns and a velocity that is added accelerate the robot as one body; these parts of ∂ID are columns
of M and need no solution. Derivatives in q are along the
independent velocities: of a floating base along its root link's twist in body axes, which turns
gravity, given in the same axes.
"""

from __future__ import annotations

from delassus.rbda.cluster_motion import ClusterMotion
from delassus.rbda.dynamics import c_aba
from delassus.rbda.inverse_derivatives import inverse_derivatives
from delassus.rbda.passive import passive_slopes
from delassus.rbda.robot_tree import RobotTree
from delassus.scalars.functions import (
    Matrix,
    Scalar,
    Vector,
    dot,
    ldl,
    ldl_solve,
    minus,
    transpose,
    zeros,
)
from delassus.scalars.ports import Inputs


def derivatives_of_inverse(tree: RobotTree, x: Inputs) -> Vector:
    """Return ∂τ/∂q, ∂τ/∂ẏ and ∂τ/∂ÿ = M, each (n, n), flat."""
    motion = tree.motion(x)
    found = inverse_derivatives(motion, motion.accelerations(list(x["accelerations"])))
    _subtract_passive(motion, found.by_q, found.by_rates)
    return _flat(found.by_q, found.by_rates, found.inertia)


def derivatives_of_forward(tree: RobotTree, x: Inputs) -> Vector:
    """Return ∂ÿ/∂q, ∂ÿ/∂ẏ and ∂ÿ/∂τ = M⁻¹, each (n, n), flat."""
    motion = tree.motion(x)
    by_q, by_rates, M, base = inverse_derivatives(motion, c_aba(motion, list(x["torques"])))
    # Velocities from the leaves to the root keep the zeros between branches.
    L, inverse_pivots = ldl([row[::-1] for row in reversed(M)], "the mass matrix")

    def solved(matrix: Matrix) -> Matrix:
        """Return −M⁻¹ times a matrix, as columns."""
        columns = ([-value for value in column] for column in zip(*matrix, strict=True))
        return [ldl_solve(L, inverse_pivots, column[::-1])[::-1] for column in columns]

    for column, torques in base.torques.items():
        for r, (q_row, rates_row) in enumerate(zip(by_q, by_rates, strict=True)):
            q_row[column], rates_row[column] = 0.0, torques[r]
    _subtract_passive(motion, by_q, by_rates)
    found_by_q, found_by_rates = solved(by_q), solved(by_rates)
    for found, accelerations in (
        (found_by_q, base.by_q), (found_by_rates, base.by_rates),
    ):  # fmt: skip
        for column, change in accelerations.items():
            for r, value in enumerate(change, start=base.first):
                found[column][r] = found[column][r] - value
    response = [row[::-1] for row in reversed(_inverse(L, inverse_pivots))]
    return _flat(transpose(found_by_q), transpose(found_by_rates), response)


def _subtract_passive(motion: ClusterMotion, by_q: Matrix, by_rates: Matrix) -> None:
    """Subtract the derivatives of the passive torques from those of torques."""
    if motion.problem.robot.is_passive:
        for matrix, slopes in zip((by_q, by_rates), passive_slopes(motion), strict=True):
            matrix[:] = [minus(*rows) for rows in zip(matrix, slopes, strict=True)]


def _inverse(L: Matrix, inverse_pivots: Vector) -> Matrix:
    """Return (L D Lᵀ)⁻¹ = Z from its last row to its first, symmetric.

    Lᵀ Z = D⁻¹ L⁻¹ is lower triangular, with the diagonal D⁻¹: K. Takahashi, J. Fagan, M. Chin,
    "Formation of a Sparse Bus Impedance Matrix and Its Application to Short Circuit Study", 1973.
    """
    n = len(L)
    Z = zeros(n, n)
    for i in reversed(range(n)):
        below = range(i + 1, n)
        for k in reversed(range(i, n)):
            known = inverse_pivots[i] if k == i else 0.0
            terms = dot([L[j][i] for j in below], [Z[j][k] for j in below])
            Z[i][k] = Z[k][i] = known - terms
    return Z


def _flat(*matrices: Matrix) -> list[Scalar]:
    return [value for matrix in matrices for row in matrix for value in row]
