"""Methods of inverse and forward dynamics, and those that the cluster paper compares them with.

M. Chignoli, N. Adrian, S. Kim, P. Wensing, "Recursive Rigid-Body Dynamics Algorithms for Systems
with Kinematic Loops": C-RNEA is section VI, C-ABA section VII; the methods of sections II-C
and II-D work on the spanning tree, where q̇ = E ẏ and q̈ = E ÿ + γ with γ = Ė ẏ, or on the
independent tree, without dependent joints and their bodies. Methods on the independent tree are
approximations: "approximate" adds the constant g²J of each rotor to the mass matrix,
"unconstrained" adds nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from delassus.algorithms.ltl import factorise, products, solve_rows, substituted
from delassus.model.clusters import clusters_of, velocity_offsets
from delassus.model.robot import WORLD, Robot
from delassus.problem import Problem
from delassus.rbda.constraints import loop_bias, loop_jacobian
from delassus.rbda.dynamics import c_aba, c_rnea
from delassus.rbda.joint_space import Freedoms, mass_matrix
from delassus.rbda.robot_tree import RobotTree
from delassus.rbda.rotors import Redistribution, independent_tree, spanning
from delassus.rbda.tree import Tree
from delassus.rbda.trees import rewritten_tree, spanning_tree, tree_of
from delassus.scalars.functions import Matrix, Vector, dot, ldl, ldl_solve
from delassus.scalars.ports import Inputs

FAILURE = "the dynamics cannot be computed at this configuration"
"""Message of a NumericalError, before the status."""


@dataclass(frozen=True)
class Method:
    """A method of inverse or forward dynamics.

    Attributes
    ----------
    formula : (tree, inputs) → torques or accelerations (n,).
    build : makes the tree that the method works on.
    description : noun phrase, with the section of the paper.
    """

    formula: Callable[[RobotTree, Inputs], Vector]
    build: Callable[[Problem], Tree]
    description: str


def recursive_inverse(tree: RobotTree, x: Inputs) -> Vector:
    """Return the torques of a motion by C-RNEA, equations (31) to (35); without clusters RNEA."""
    motion = tree.motion(x)
    return c_rnea(motion, motion.accelerations(list(x["accelerations"])))


def recursive_forward(tree: RobotTree, x: Inputs) -> Vector:
    """Return the accelerations by C-ABA, algorithm 1; on a tree without clusters, by the ABA."""
    return c_aba(tree.motion(x), list(x["torques"])).independent


def projection(tree: RobotTree, x: Inputs) -> Vector:
    """Return ÿ of Eᵀ M E ÿ = τ − Eᵀ (c + M γ), with M and c of the spanning tree."""
    bias = c_rnea(tree.motion(x))
    M = mass_matrix(tree.problem, tree.tree, x)
    L, inverse_pivots = ldl(_reversed(M), "the projected mass matrix")
    known = [t - b for t, b in zip(x["torques"], bias, strict=True)]
    return ldl_solve(L, inverse_pivots, known[::-1])[::-1]


def _reversed(M: Matrix) -> Matrix:
    """Return M with velocities from the leaves to the root, which keeps the branches' zeros."""
    return [row[::-1] for row in reversed(M)]


def lagrange(tree: RobotTree, x: Inputs) -> Vector:
    """Return ÿ of M q̈ − Kᵀ λ = τ − c, K q̈ = k, with the multipliers λ of all constraints.

    The rows of K state q̇_d − E_d ẏ = 0 for each dependent joint d, and k = γ_d. M is factorised
    with the sparsity that branches induce, and λ = (K M⁻¹ Kᵀ)⁻¹ (k − K M⁻¹ (τ − c)).
    """
    robot, columns = tree.problem.robot, velocity_offsets(tree.problem.robot)
    of_open = RobotTree(spanning(robot).robot, tree.problem.wrenches)
    rates, K, k = _spanning_rates(robot, x)
    motion = of_open.motion({**x, "rates": rates})
    torques: Vector = [0.0] * robot.nv
    for joint, column in columns.items():
        first = robot.v_offsets[joint]
        for i in range(robot.joints[joint].kind.nv):
            torques[first + i] = x["torques"][column + i]
    known = [t - c for t, c in zip(torques, c_rnea(motion), strict=True)]
    freedoms = _freedoms(robot)
    L, D_inverse = factorise(mass_matrix(of_open.problem, of_open.tree, motion.x), freedoms)
    # Rows of Y are those of K L⁻¹; z = D⁻¹ L⁻ᵀ (τ − c).
    Y = [solve_rows(L, row, freedoms) for row in K]
    z = [value * d for value, d in zip(solve_rows(L, known, freedoms), D_inverse, strict=True)]
    if K:
        Q, inverse_pivots = ldl(products(Y, D_inverse), "the matrix K M⁻¹ Kᵀ of the constraints")
        free = [dot(row, z) for row in Y]
        wanted = [value - a for value, a in zip(k, free, strict=True)]
        forces = ldl_solve(Q, inverse_pivots, wanted)
        for row, force in zip(Y, forces, strict=True):
            z = [a + y * force * d for a, y, d in zip(z, row, D_inverse, strict=True)]
    accelerations = substituted(L, z, freedoms)
    return [
        accelerations[robot.v_offsets[joint] + i]
        for joint in columns
        for i in range(robot.joints[joint].kind.nv)
    ]


def _spanning_rates(robot: Robot, x: Inputs) -> tuple[Vector, Matrix, Vector]:
    """Return q̇ = E ẏ (nv,), K (dependent joints, nv) and k (dependent joints,)."""
    rates: Vector = [0.0] * robot.nv
    K: Matrix = []
    k: Vector = []
    columns = velocity_offsets(robot)
    for cluster in clusters_of(robot):
        if cluster.is_ordinary:
            (joint,) = cluster.joints
            for i in range(robot.joints[joint].kind.nv):
                rates[robot.v_offsets[joint] + i] = x["rates"][columns[joint] + i]
            continue
        independent_rates = [x["rates"][columns[joint]] for joint in cluster.independent]
        E = loop_jacobian(cluster, x["q"])
        gamma = loop_bias(cluster, x["q"], independent_rates)
        for joint, row, value in zip(cluster.joints, E, gamma, strict=True):
            rates[robot.v_offsets[joint]] = dot(row, independent_rates)
            if joint in cluster.dependent:
                of_joint: Vector = [0.0] * robot.nv
                of_joint[robot.v_offsets[joint]] = 1.0
                for other, factor in zip(cluster.independent, row, strict=True):
                    of_joint[robot.v_offsets[other]] = -factor
                K.append(of_joint)
                k.append(value)
    return rates, K, k


def _freedoms(robot: Robot) -> Freedoms:
    """Return the numbering of all joints' velocities in model order, parents first."""
    above: list[int] = []
    names: list[str] = []
    for joint, first in zip(robot.joints, robot.v_offsets, strict=True):
        carrier = WORLD
        if joint.parent != WORLD:
            carrier = robot.v_offsets[joint.parent] + robot.joints[joint.parent].kind.nv - 1
        above += [carrier, *range(first, first + joint.kind.nv - 1)][: joint.kind.nv]
        names += [joint.name] * joint.kind.nv
    return Freedoms(list(robot.v_offsets), above, names)


def _independent(reflected: bool) -> Callable[[Problem], Tree]:
    """Return the builder of the independent tree, with or without reflected inertias."""

    def rewrite(robot: Robot, held: frozenset[int]) -> Redistribution:
        return independent_tree(robot, held, reflected)

    def build(problem: Problem) -> Tree:
        return rewritten_tree(problem, rewrite)

    return build


INVERSE = {
    "c_rnea": Method(recursive_inverse, tree_of, "C-RNEA, section VI"),
    "projected": Method(recursive_inverse, spanning_tree, "Projected RNEA, section II-C"),
    "approximate": Method(
        recursive_inverse, _independent(True), "Approximate RNEA, section II-C; not exact"
    ),
    "unconstrained": Method(
        recursive_inverse, _independent(False), "Unconstrained RNEA, section II-C; not exact"
    ),
}
"""Methods of inverse dynamics by name."""
FORWARD = {
    "c_aba": Method(recursive_forward, tree_of, "C-ABA, section VII, algorithm 1"),
    "projection": Method(projection, spanning_tree, "projection method, section II-D"),
    "lagrange": Method(lagrange, spanning_tree, "Lagrange multiplier method, section II-D"),
    "approximate": Method(
        recursive_forward, _independent(True), "Approximate ABA, section II-D; not exact"
    ),
    "unconstrained": Method(
        recursive_forward, _independent(False), "unconstrained ABA, section II-D; not exact"
    ),
}
"""Methods of forward dynamics by name."""
