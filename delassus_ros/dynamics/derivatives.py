"""Derivatives of inverse and forward dynamics with respect to configuration, rates and torques.

Inverse dynamics is differentiated by dual numbers through C-RNEA, clusters and their Ė included;
with τ = ID(q, ẏ, ÿ) forward dynamics has ∂ÿ = −M⁻¹ ∂ID at the accelerations that the torques
cause, and ∂ÿ/∂τ = M⁻¹: M. Chignoli, N. Adrian, S. Kim, P. Wensing, "Recursive Rigid-Body Dynamics
Algorithms for Systems with Kinematic Loops", name derivatives as future work; for open chains
J. Carpentier, N. Mansard, "Analytical Derivatives of Rigid Body Dynamics Algorithms", RSS 2018.
Derivatives in q are along the independent velocities: of a floating base along its root link's
twist in body axes, which turns gravity, given in the same axes.
"""

from __future__ import annotations

from delassus_ros.model.robot import JointKind
from delassus_ros.rbda.dynamics import c_aba, c_rnea
from delassus_ros.rbda.joint_space import mass_matrix
from delassus_ros.rbda.robot_tree import RobotTree
from delassus_ros.rbda.spatial import cross
from delassus_ros.rbda.tangents import directions, with_slopes
from delassus_ros.scalars.duals import Dual
from delassus_ros.scalars.functions import (
    Matrix,
    Scalar,
    Vector,
    identity,
    ldl,
    ldl_solve,
    transpose,
)
from delassus_ros.scalars.ports import Inputs


def inverse_derivatives(tree: RobotTree, x: Inputs) -> Vector:
    """Return ∂τ/∂q, ∂τ/∂ẏ and ∂τ/∂ÿ = M, each (n, n), flat."""
    by_q, by_rates = _of_inverse(tree, x, list(x["accelerations"]))
    return _flat(by_q, by_rates, mass_matrix(tree.problem, tree.tree, x))


def forward_derivatives(tree: RobotTree, x: Inputs) -> Vector:
    """Return ∂ÿ/∂q, ∂ÿ/∂ẏ and ∂ÿ/∂τ = M⁻¹, each (n, n), flat."""
    accelerations = c_aba(tree.motion(x), list(x["torques"])).independent
    by_q, by_rates = _of_inverse(tree, x, accelerations)
    M = mass_matrix(tree.problem, tree.tree, x)
    # Velocities from the leaves to the root keep the zeros between branches.
    L, inverse_pivots = ldl([row[::-1] for row in reversed(M)], "the mass matrix")

    def solved(columns: Matrix) -> Matrix:
        """Return M⁻¹ times a matrix that is given by columns, by columns."""
        return [ldl_solve(L, inverse_pivots, column[::-1])[::-1] for column in columns]

    response = solved(identity(tree.size))
    return _flat(*(transpose(solved(_negated(by))) for by in (by_q, by_rates)), response)


def _of_inverse(tree: RobotTree, x: Inputs, accelerations: Vector) -> tuple[Matrix, Matrix]:
    """Return ∂τ/∂q and ∂τ/∂ẏ (n, n) at accelerations that do not change."""
    n = tree.size
    slopes: dict[tuple[str, int], Vector] = {}
    changes = [dict(direction) for direction in directions(tree.problem, x)]
    for first in _bases(tree):
        for k, axis in enumerate(identity(3)):
            turned = cross(list(x["gravity"]), axis)
            changes[first + 3 + k] |= {("gravity", i): value for i, value in enumerate(turned)}
    for column, change in enumerate(changes):
        for entry, value in change.items():
            slopes.setdefault(entry, [0.0] * (2 * n))[column] = value
    for k, unit in enumerate(identity(n)):
        slopes["rates", k] = [0.0] * n + unit
    motion = tree.motion(with_slopes(x, slopes))
    torques = c_rnea(motion, motion.accelerations(accelerations))
    rows = [t.slopes if isinstance(t, Dual) else [0.0] * (2 * n) for t in torques]
    return [row[:n] for row in rows], [row[n:] for row in rows]


def _bases(tree: RobotTree) -> list[int]:
    """Return the first velocity of the floating base, if the robot has one."""
    kinds = [joint.kind for joint in tree.problem.robot.joints]
    return [0] if JointKind.ROOT in kinds else []


def _negated(matrix: Matrix) -> Matrix:
    """Return the columns of −matrix."""
    return [[-value for value in column] for column in zip(*matrix, strict=True)]


def _flat(*matrices: Matrix) -> list[Scalar]:
    return [value for matrix in matrices for row in matrix for value in row]
