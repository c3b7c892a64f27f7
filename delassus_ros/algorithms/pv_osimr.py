"""PV-OSIMr: the Delassus matrix in O(n + m²) operations.

A. S. Sathya, W. Decré, J. Swevers, "PV-OSIMr: A Lowest Order Complexity Algorithm for
Computing the Delassus Matrix", IEEE Robotics and Automation Letters, 2024: Algorithm 3.
Everything is in local link frames: what moves to the parent is also transformed to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from delassus_ros.algorithms.base import Inputs, Outputs, TracedAlgorithm
from delassus_ros.algorithms.registry import register
from delassus_ros.algorithms.scalars import (
    Matrix,
    Vector,
    dot,
    forward_substitute,
    identity,
    ldl,
    matmul,
    positive,
    transpose,
    zeros,
)
from delassus_ros.algorithms.spatial import JointTransform, SpatialInertia, contact_rows
from delassus_ros.algorithms.tree import Tree
from delassus_ros.model.robot import WORLD
from delassus_ros.problem import Problem


@dataclass
class Propagated:
    """What travels from a link d towards the root: P and Ω of the paper.

    Attributes
    ----------
    P : (r, 6) the rows of ⁱP_dᵀ: the rows K of contacts, propagated, or, past a node, the
        node's extended motion propagator (r = 6).
    Omega : (r, r) ⁱΩ_d, the apparent inverse inertia due to the joints passed so far.
    index : the rows of G that belong to P; those of the whole node past a node.
    node : the node that P comes from, if any.
    K : (len(index), 6) the contacts' rows where P ends: P itself, or the node's K times P.
    """

    P: Matrix
    Omega: Matrix
    index: list[int]
    node: Node | None = None
    K: Matrix = field(default_factory=list)


@dataclass
class Node:
    """A link of the list 𝒩: one where more than six rows meet, or a root.

    Attributes
    ----------
    branches : what arrives from its children and its own contacts.
    Omega : (6, 6) ⁰Ω_i; known once the nodes above are done; zero at a fixed base.
    root : for a free body the factors L and D⁻¹ of its articulated inertia H = L D Lᵀ, in
        place of ⁰Ω_i = H⁻¹.
    """

    branches: list[Propagated]
    Omega: Matrix = field(default_factory=lambda: zeros(6, 6))
    root: tuple[Matrix, Vector] | None = None

    def halves(self, K: Matrix) -> tuple[Matrix, Matrix]:
        """Return Z, Y with Z_i Y_jᵀ = K_i ⁰Ω K_jᵀ, equation (17)."""
        if self.root is None:
            return matmul(K, self.Omega), K
        L, D_inverse = self.root
        Y = [forward_substitute(L, row) for row in K]
        return [[y * d for y, d in zip(row, D_inverse, strict=True)] for row in Y], Y


@register("pv_osimr")
class PvOsimr(TracedAlgorithm):
    """PV-OSIMr, Algorithm 3 of Sathya, Decré and Swevers (2024)."""

    def evaluate(self, problem: Problem, x: Inputs) -> Outputs:
        """Compute G; see the base class."""
        tree = Tree.of(problem)
        nodes = backward_sweep(tree, contact_rows(problem, x), x)
        limited_backward_sweep(nodes)
        return {"G": assemble(tree.rows, nodes)}


def backward_sweep(tree: Tree, K: dict[int, Matrix], x: Inputs, opens: Opens) -> list[Node]:
    """Lines 1–11: propagate inertias, P and Ω to the roots; return 𝒩, roots first."""
    arriving = [
        [own_contact(K[contact.index], contact.first_row) for contact in link.contacts]
        for link in tree.links
    ]
    ground = Node([])
    nodes: list[Node] = []
    for joint in articulated_bodies(tree, x):
        branches = arriving[joint.i]
        if not branches:
            continue
        if isinstance(joint, FreeBody):
            nodes.append(Node(branches, root=joint.factors()))
            continue
        carried = join(branches, nodes, opens(joint.i, branches))
        P, PS, PSD = joint.to_parent(carried.P)  # line 9
        add_outer(carried.Omega, PSD, PS)  # line 10
        if joint.parent == WORLD:
            ground.branches.append(carried)
        else:
            carried.P = P
            arriving[joint.parent].append(carried)
    if ground.branches:
        nodes.append(ground)
    return nodes[::-1]


def own_contact(K: Matrix, first_row: int) -> Propagated:
    """Line 4: P = K and Ω = 0 at the contact's own link."""
    return Propagated(K, zeros(len(K), len(K)), list(range(first_row, first_row + len(K))))


def join(arriving: list[Propagated], nodes: list[Node], opens: bool) -> Propagated:
    """Return what a link passes on: all rows together or, where it opens, a new node's (line 7)."""
    index = [row for branch in arriving for row in branch.index]
    if opens:
        nodes.append(Node(arriving))
        return Propagated(identity(6), zeros(6, 6), index, nodes[-1])
    if len(arriving) == 1:
        return arriving[0]
    Omega = block_diagonal([branch.Omega for branch in arriving])
    return Propagated([row for branch in arriving for row in branch.P], Omega, index)


def limited_backward_sweep(nodes: Sequence[Node]) -> None:
    """Lines 14–16: the contacts' rows K at each node, through the nodes between."""
    for node in reversed(nodes):
        for branch in node.branches:
            branch.K = branch.P
            if branch.node is not None:
                below = [row for inner in branch.node.branches for row in inner.K]
                branch.K = matmul(below, branch.P)


def assemble(m: int, nodes: Sequence[Node]) -> Matrix:
    """Lines 12, 13 and 17–20: ⁰Ω of every node and the blocks of G; `nodes` roots first."""
    G = zeros(m, m)
    for node in nodes:
        done: list[tuple[list[int], Matrix]] = []
        for branch in node.branches:
            # Line 13, ⁰Ω_j = ⁱΩ_j + ⁱP_jᵀ ⁰Ω_i ⁱP_j; for contacts the same is their block.
            Z, Y = node.halves(branch.P)
            for r in range(len(branch.P)):
                for s in range(r, len(branch.P)):
                    omega = branch.Omega[r][s] + dot(Z[r], Y[s])
                    branch.Omega[r][s] = branch.Omega[s][r] = omega
            if branch.node is None:
                fill(G, branch.index, branch.index, branch.Omega)
            else:
                branch.node.Omega = branch.Omega
                Z, Y = node.halves(branch.K)
            for index, other in done:
                # Line 18 for contacts whose closest common ancestor is this node.
                fill(G, branch.index, index, matmul(Z, transpose(other)))
            done.append((branch.index, Y))
    return G
