"""The Coriolis matrix C with Ṁ − 2C skew-symmetric, and the torques of gravity alone.

With body Jacobians J_i in the links' axes and inertias H_i,

    C = Σ J_iᵀ (H_i J̇_i + B_i J_i),   B v = v ×* H v,   B = −Bᵀ,

S. Echeandia, P. Wensing, "Numerical Methods to Compute the Coriolis Matrix and Christoffel
Symbols for Rigid-Body Systems", 2021, eq. 8 and 13, there in fixed axes. Joint velocities are
q̇ = E ẏ, so that J̇ contains Ė and clusters need no further terms but those of armatures, Eᵀ A Ė.
"""

from __future__ import annotations

from typing import TypeAlias

from delassus.model.robot import WORLD
from delassus.rbda.cluster_motion import ClusterMotion
from delassus.rbda.dynamics import c_rnea
from delassus.rbda.robot_tree import RobotTree
from delassus.rbda.spatial import RigidInertia, motion_cross
from delassus.rbda.velocities import motion_of_link
from delassus.scalars.duals import Dual
from delassus.scalars.functions import (
    Matrix,
    Scalar,
    Vector,
    cross_matrix,
    dot,
    identity,
    matmul,
    plus,
    transpose,
    zeros,
)
from delassus.scalars.ports import Inputs

Columns: TypeAlias = dict[int, Vector]
"""Columns (6,) of a link's Jacobian, angular first, by index of the independent velocity."""


def gravity_torques(tree: RobotTree, x: Inputs) -> Vector:
    """Return the torques (n,) that hold a robot at rest against gravity."""
    motion = tree.motion({**x, "rates": [0.0] * tree.size, "wrenches": [0.0] * _entries(tree)})
    return c_rnea(motion)


def _entries(tree: RobotTree) -> int:
    return 6 * len(tree.problem.wrenches)


def coriolis(tree: RobotTree, x: Inputs) -> Vector:
    """Return C (n, n), flat: C ẏ are the Coriolis and centrifugal torques."""
    motion = tree.motion({**x, "gravity": [0.0] * 3, "wrenches": [0.0] * _entries(tree)})
    n, links = tree.size, tree.tree.links
    E_dot = _row_rates(motion)
    C = zeros(n, n)
    jacobians = link_jacobians(motion, E_dot)
    for i, (link, (J, J_dot)) in enumerate(zip(links, jacobians, strict=True)):
        H = RigidInertia.of(link).spatial().matrix()
        B = _coriolis_of_body(H, motion.v[i])
        forces = {k: plus(_times(H, J_dot[k]), _times(B, column)) for k, column in J.items()}
        for r, row in J.items():
            for k, force in forces.items():
                C[r][k] = C[r][k] + dot(row, force)
        if link.motion != "free":
            _add_armature(C, motion.rows[i], E_dot[i], link.armature)
    return [value for row in C for value in row]


def link_jacobians(
    motion: ClusterMotion, E_dot: list[dict[int, Scalar]] | None = None
) -> list[tuple[Columns, Columns]]:
    """Return J and J̇ of each link by column, in the link's axes.

    Parameters
    ----------
    E_dot : Ė of each link's joint by column; None for 0.
    """
    found: list[tuple[Columns, Columns]] = []
    rest = [0.0] * 6
    for i, link in enumerate(motion.tree.links):
        if link.motion == "free":
            first = motion.velocities.first[i]
            columns = {first + c: motion_of_link(link, e) for c, e in enumerate(identity(6))}
            found.append((columns, {k: list(rest) for k in columns}))
            continue
        transform, S = motion.transforms[i], link.freedom
        joint_rate = list(rest)
        joint_rate[S] = motion.rate[i]
        J: Columns = {}
        J_dot: Columns = {}
        if link.parent != WORLD:
            J_parent, J_dot_parent = found[link.parent]
            for k, column in J_parent.items():
                J[k] = transform.motion_to_child(column)
                turned = motion_cross(J[k], joint_rate)
                J_dot[k] = plus(transform.motion_to_child(J_dot_parent[k]), turned)
        for k, factor in motion.rows[i].items():
            column, rate = J.setdefault(k, list(rest)), J_dot.setdefault(k, list(rest))
            column[S] = column[S] + factor
            if E_dot is not None:
                rate[S] = rate[S] + E_dot[i].get(k, 0.0)
        found.append((J, J_dot))
    return found


def _row_rates(motion: ClusterMotion) -> list[dict[int, Scalar]]:
    """Return Ė per link, by column, from derivatives of E along the motion."""
    q = list(motion.x["q"])
    for i, link in enumerate(motion.tree.links):
        if link.motion != "free" and i not in motion.velocities.single:
            q[link.q_index] = Dual(q[link.q_index], [link.sign * motion.rate[i]])
    return [
        {k: e.slopes[0] for k, e in row.items() if isinstance(e, Dual)}
        for row in motion.velocities.rows({**motion.x, "q": q})
    ]


def _coriolis_of_body(H: Matrix, v: Vector) -> Matrix:
    """Return B = ½ (v×* H + H v× + h̄), with h̄ u = u ×* (H v)."""
    h = _times(H, v)
    N, P = cross_matrix(h[:3]), cross_matrix(h[3:])
    crossing = transpose([motion_cross(v, unit) for unit in identity(6)])
    from_right = matmul(H, crossing)
    B = zeros(6, 6)
    for r in range(6):
        for c in range(6):
            # v×* = −(v×)ᵀ, so v×* H = −(H v×)ᵀ.
            total = from_right[r][c] - from_right[c][r]
            if r < 3 or c < 3:
                total = total - ((N if r < 3 and c < 3 else P)[r % 3][c % 3])
            B[r][c] = 0.5 * total
    return B


def _times(matrix: Matrix, u: Vector) -> Vector:
    return [dot(row, u) for row in matrix]


def _add_armature(
    C: Matrix, rows: dict[int, Scalar], E_dot: dict[int, Scalar], armature: Scalar
) -> None:
    """Add Eᵀ A Ė of a joint's armature."""
    for r, left in rows.items():
        for k, right in E_dot.items():
            C[r][k] = C[r][k] + left * armature * right
