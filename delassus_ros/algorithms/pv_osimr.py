"""PV-OSIMr: the Delassus matrix in O(n + m²) operations.

A. S. Sathya, W. Decré, J. Swevers, "PV-OSIMr: A Lowest Order Complexity Algorithm for
Computing the Delassus Matrix", IEEE Robotics and Automation Letters, 2024: Algorithm 3, with the
line numbers of the preprint. Everything is in local link frames: what moves to the parent is also
transformed to it.

As section III-A has it, the rows of contacts that meet at a link pass on as they are while they
are at most six: 𝒩 has only the links where more than six meet, and the free bodies, which are
roots with ⁰Ω = H⁻¹.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from delassus_ros.algorithms.base import Inputs, Outputs
from delassus_ros.algorithms.open_chain import OpenChainAlgorithm
from delassus_ros.algorithms.propagation import (
    FreeBody,
    add_products,
    articulated_bodies,
    block_diagonal,
    fill,
)
from delassus_ros.algorithms.registry import register
from delassus_ros.algorithms.scalars import Matrix, identity, matmul, transpose, zeros
from delassus_ros.algorithms.spatial import contact_rows
from delassus_ros.algorithms.tree import Tree, rows_of
from delassus_ros.model.robot import WORLD
from delassus_ros.problem import Problem


@register("pv_osimr")
class PvOsimr(OpenChainAlgorithm):
    """PV-OSIMr, Algorithm 3 of Sathya, Decré and Swevers (2024)."""

    def evaluate(self, problem: Problem, x: Inputs) -> Outputs:
        """Compute G; see the base class."""
        return {"G": pv_osimr(Tree.of(problem), contact_rows(problem, x), x)}


@dataclass
class Branch:
    """What travels from d, a link of 𝒩 or contacts, to the next link i of 𝒩.

    Attributes
    ----------
    P : (r, 6) the rows of ⁱP_dᵀ: six of a link, or as many as the contacts have.
    Omega : (r, r) ⁱΩ_d.
    rows : the rows of G of the contacts at d and beyond.
    d : the link; None for contacts.
    Z, Y : Z_j Y_kᵀ = ⁱP_jᵀ ⁰Ω_i ⁱP_k between branches j and k of link i.
    """

    P: Matrix
    Omega: Matrix
    rows: list[int]
    d: Node | None = None
    Z: Matrix = field(default_factory=list)
    Y: Matrix = field(default_factory=list)

    def lift(self, rows: Matrix) -> Matrix:
        """Return `rows`, one per row of P, for the contacts: ᵈK · rows."""
        return rows if self.d is None else matmul(self.d.K, rows)

    def settle(self, G: Matrix) -> None:
        """Take ⁰Ω_d: for a link it is wanted later, of contacts it is their block of G."""
        if self.d is None:
            fill(G, self.rows, self.rows, self.Omega)
        else:
            self.d.Omega = self.Omega


@dataclass
class Node:
    """Link i of 𝒩.

    Attributes
    ----------
    branches : what arrives from its children and its own contacts.
    root : the free body, if it is one.
    Omega : (6, 6) ⁰Ω_i, line 13; unused at a root.
    K : (rows, 6) ⁱK_e of all contacts e at i and beyond, line 16; unused at a root.
    """

    branches: list[Branch]
    root: FreeBody | None = None
    Omega: Matrix = field(default_factory=list)
    K: Matrix = field(default_factory=list)

    def halves(self, P: Matrix) -> tuple[Matrix, Matrix]:
        """Return Z, Y with Z_j Y_kᵀ = P_j ⁰Ω_i P_kᵀ."""
        return (matmul(P, self.Omega), P) if self.root is None else self.root.halves(P)


def pv_osimr(tree: Tree, K: dict[int, Matrix], x: Inputs) -> Matrix:
    """Return G; K are the contacts' rows."""
    G = zeros(tree.rows, tree.rows)
    N: list[Node] = []  # leaves first: 𝒩ᵣ of the paper
    arriving: list[list[Branch]] = [
        [Branch(K[c.index], zeros(len(c.K), len(c.K)), rows_of(c)) for c in link.contacts]
        for link in tree.links
    ]  # lines 3 and 4
    for joint in articulated_bodies(tree, x):  # lines 5, 8 and 9
        branches = arriving[joint.i]
        if not branches:
            continue
        if isinstance(joint, FreeBody):
            N.append(Node(branches, joint))
            continue
        if len(branches) > 1 and sum(len(branch.P) for branch in branches) > 6:  # lines 6 and 7
            N.append(Node(branches))
            branch = Branch(identity(6), zeros(6, 6), rows_of_all(branches), N[-1])
        else:
            branch = stacked(branches)
        P, PS, PSD = joint.to_parent(branch.P, joint.i)  # line 9
        add_products(branch.Omega, PSD, PS)  # line 10
        if joint.parent == WORLD:
            branch.settle(G)
        else:
            branch.P = P
            arriving[joint.parent].append(branch)  # line 11
    for i in reversed(N):  # lines 12 and 13
        for branch in i.branches:
            branch.Z, branch.Y = i.halves(branch.P)
            add_products(branch.Omega, branch.Z, branch.Y)
            branch.settle(G)
    for i in N:  # lines 14 to 16
        if i.root is None:
            i.K = [row for branch in i.branches for row in branch.lift(branch.P)]
    for i in reversed(N):  # lines 17 to 20
        assemble(G, i.branches)
    return G


def stacked(branches: list[Branch]) -> Branch:
    """Return the rows of contacts that travel on together, as in Algorithm 1."""
    if len(branches) == 1:
        return branches[0]
    return Branch(
        [row for branch in branches for row in branch.P],
        block_diagonal([branch.Omega for branch in branches]),
        rows_of_all(branches),
    )


def rows_of_all(branches: list[Branch]) -> list[int]:
    """Return the rows of G of all contacts beyond."""
    return [row for branch in branches for row in branch.rows]


def assemble(G: Matrix, branches: list[Branch]) -> None:
    """Line 18 for contacts whose closest common ancestor is the link where `branches` meet.

    ⁱK_e = ᵈK_e ⁱP_dᵀ of line 16 is the left factor or the last one, whichever is the smaller
    product: of many contacts beyond d its six rows meet the other branches first.
    """
    done: list[tuple[Branch, Matrix, bool]] = []
    # Widest first: of two contacts the smaller one gets the side with Ω.
    for branch in sorted(branches, key=lambda branch: -len(branch.rows)):
        others = sum(len(other.P) for other in branches if other is not branch)
        late = branch.d is not None and len(branch.rows) > others
        Z, Y = branch.Z, branch.Y
        if not late:
            Z, Y = branch.lift(Z), branch.lift(Y)
        for other, Y_other, other_late in done:
            L = matmul(Z, transpose(Y_other))
            if other_late:
                L = transpose(other.lift(transpose(L)))
            fill(G, branch.rows, other.rows, branch.lift(L) if late else L)
        done.append((branch, Y, late))
