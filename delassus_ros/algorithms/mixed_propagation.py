"""Propagation in any mixture of PV-OSIM and PV-OSIMr, over joints and clusters.

:mod:`~delassus_ros.algorithms.pv_osimr` with what it decides by rule left open: a
:class:`Decision` says at which links six rows of an extended propagator go on for the contacts'
rows, and in which order the products at such a link are taken. No links: Algorithm 1 (PV-OSIM) of
A. S. Sathya, W. Decré, J. Swevers, "PV-OSIMr", IEEE RA-L, 2024; :func:`wide_nodes`: Algorithm 3
(PV-OSIMr), whose preprint's line numbers are used. The matrix is always the same. Joints may be
clusters, from which rows leave together by several links; see ``docs/clusters.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from delassus_ros.algorithms.base import Inputs
from delassus_ros.algorithms.propagation import (
    FreeBody,
    add_products,
    articulated_joints,
    block_diagonal,
    fill,
)
from delassus_ros.algorithms.scalars import Matrix, identity, matmul, transpose, zeros
from delassus_ros.algorithms.tree import Tree
from delassus_ros.model.robot import WORLD


@dataclass(frozen=True)
class Decision:
    """What becomes a node, and how the rows below a node meet the rest of the robot.

    Attributes
    ----------
    opens : links that become nodes.
    couples : nodes of which the six rows of P, not the contacts' rows, meet what else arrives
        at the node above; the contacts' rows follow after. None: those with more contacts'
        rows than the rest of what arrives there.
    spreads : nodes through which the result goes down branch by branch instead of by the
        contacts' rows K of the whole node.
    """

    opens: frozenset[int] = frozenset()
    couples: frozenset[int] | None = None
    spreads: frozenset[int] = frozenset()


@dataclass
class Part:
    """Rows of P that come from one place: from contacts as they are, or from a node.

    Attributes
    ----------
    index : the rows of G that belong to it; those of the whole node past a node.
    first, size : its rows in P: as many as in `index`, or six past a node.
    node : the node that the rows come from, if any.
    """

    index: list[int]
    first: int
    size: int
    node: Node | None = None

    def lift(self, rows: Matrix) -> Matrix:
        """Return `rows`, one per row of this part, for the contacts' rows; line 16."""
        return rows if self.node is None else self.node.lift(rows)

    def of(self, rows: Matrix) -> Matrix:
        """Return the rows of this part."""
        return rows[self.first : self.first + self.size]


@dataclass
class Propagated:
    """What travels from a link d towards the root: P and Ω of the paper.

    Attributes
    ----------
    P : (r, 6) the rows of ⁱP_dᵀ: the rows K of contacts, propagated, or, past a node, the
        node's extended motion propagator.
    Omega : (r, r) ⁱΩ_d, the apparent inverse inertia due to the joints passed so far.
    parts : where the rows come from.
    """

    P: Matrix
    Omega: Matrix
    parts: list[Part]

    @property
    def index(self) -> list[int]:
        """The rows of G of all contacts below."""
        return [row for part in self.parts for row in part.index]

    def lift(self, rows: Matrix) -> Matrix:
        """Return `rows`, one per row of P, for the contacts' rows."""
        return [row for part in self.parts for row in part.lift(part.of(rows))]


@dataclass
class Node:
    """A node: a link where six rows leave for all that arrive, or a root.

    Attributes
    ----------
    branches : what arrives from its children and its own contacts.
    decision : what is decided for it.
    link : index of its link.
    Omega : (6, 6) ⁰Ω_i; known once the nodes above are done; zero at a fixed base.
    root : for a free body, that body, in place of ⁰Ω_i = H⁻¹.
    K : the rows of all contacts below, at this node.
    """

    branches: list[Propagated]
    decision: Decision
    link: int = WORLD
    Omega: Matrix = field(default_factory=lambda: zeros(6, 6))
    root: FreeBody | None = None
    K: Matrix = field(default_factory=list)

    def halves(self, P: Matrix) -> tuple[Matrix, Matrix]:
        """Return Z, Y with Z_i Y_jᵀ = P_i ⁰Ω P_jᵀ, equation (17)."""
        if self.root is not None:
            return self.root.halves(P)
        return matmul(P, self.Omega), P

    def couples(self, branch: Propagated) -> bool:
        """Return whether P of a branch meets the other ones here, before its contacts' rows."""
        nodes = [part.node.link for part in branch.parts if part.node is not None]
        if self.decision.couples is not None:
            return not self.decision.couples.isdisjoint(nodes)
        others = sum(len(other.P) for other in self.branches if other is not branch)
        return bool(nodes) and len(branch.index) > others

    def lifted(self) -> None:
        """Compute K: lines 14–16, the rows of all contacts below, at this node."""
        self.K = [row for branch in self.branches for row in branch.lift(branch.P)]

    def lift(self, rows: Matrix) -> Matrix:
        """Return K · rows, for `rows` (6, …) at this node."""
        if self.link in self.decision.spreads:
            return [row for branch in self.branches for row in branch.lift(matmul(branch.P, rows))]
        return matmul(self.K, rows)


def wide_nodes(tree: Tree) -> frozenset[int]:
    """Return the links, but no roots, where more than six rows meet: section III-A.

    These are the links of the paper's 𝒩, where the ways of several contacts join, at which more
    rows arrive than the six of an extended propagator that leave in their place; at the other
    links of 𝒩 the contacts' rows travel on as they are. Beyond the paper, each contact counts,
    also of several on one link, and rows may arrive together from a cluster that they left by
    several links.
    """
    opened = set()
    arriving: list[list[int]] = [
        [len(contact.selection) for contact in link.contacts] for link in tree.links
    ]
    for joint in reversed(tree.joints):
        leaving = 0
        for i in joint.links:
            if not arriving[i] or tree.links[i].motion == "free":
                continue
            rows = sum(arriving[i])
            together = len(arriving[i]) > 1 or not tree.links[i].contacts
            if together and rows > 6:
                opened.add(i)
                rows = 6
            leaving += rows
        if leaving and joint.parent != WORLD:
            arriving[joint.parent].append(leaving)
    return frozenset(opened)


def delassus(tree: Tree, K: dict[int, Matrix], x: Inputs, decision: Decision) -> Matrix:
    """Return G; K are the contacts' rows."""
    return assemble(tree.rows, backward_sweep(tree, K, x, decision))


def backward_sweep(tree: Tree, K: dict[int, Matrix], x: Inputs, decision: Decision) -> list[Node]:
    """Lines 1–11: propagate inertias, P and Ω to the roots; return 𝒩, roots first."""
    arriving = [
        [own_contact(K[contact.index], contact.first_row) for contact in link.contacts]
        for link in tree.links
    ]
    ground = Node([], decision)
    nodes: list[Node] = []
    for joint in articulated_joints(tree, x):
        leaving: list[Propagated] = []
        moved: list[tuple[Matrix, Matrix, Matrix]] = []
        for i in joint.links:
            branches = arriving[i]
            if not branches:
                continue
            if isinstance(joint, FreeBody):
                nodes.append(Node(branches, decision, i, root=joint))
                continue
            if i in decision.opens:
                nodes.append(Node(branches, decision, i))
                leaving.append(past(nodes[-1]))
            else:
                leaving.append(joined(branches))
            moved.append(joint.to_parent(leaving[-1].P, i))  # line 9
        if isinstance(joint, FreeBody) or not leaving:
            continue
        # A cluster joint couples what leaves it by several links.
        carried = joined(leaving)
        P, PS, PSD = ([row for rows in part for row in rows] for part in zip(*moved, strict=True))
        add_products(carried.Omega, PSD, PS)  # line 10
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
    k = len(K)
    index = list(range(first_row, first_row + k))
    return Propagated(K, zeros(k, k), [Part(index, 0, k)])


def past(node: Node) -> Propagated:
    """Line 7: P = 1 and Ω = 0 at a node."""
    index = [row for branch in node.branches for row in branch.index]
    return Propagated(identity(6), zeros(6, 6), [Part(index, 0, 6, node)])


def joined(branches: list[Propagated]) -> Propagated:
    """Return all rows together, as lines 6 and 7 of Algorithm 1 do."""
    if len(branches) == 1:
        return branches[0]
    P: Matrix = []
    parts = []
    for branch in branches:
        parts += [
            Part(part.index, part.first + len(P), part.size, part.node) for part in branch.parts
        ]
        P = P + branch.P
    return Propagated(P, block_diagonal([branch.Omega for branch in branches]), parts)


def assemble(m: int, nodes: Sequence[Node]) -> Matrix:
    """Lines 12 to 20: ⁰Ω of every node and the blocks of G; `nodes` roots first.

    Line 16 lifts the halves of P rather than P, which gives the halves of K at once.
    """
    limited_backward_sweep(nodes)
    G = zeros(m, m)
    for node in nodes:
        done: list[tuple[Propagated, Matrix, bool]] = []
        # Widest first: of two contacts the smaller one gets the side with Ω.
        for branch in sorted(node.branches, key=lambda branch: -len(branch.index)):
            Z, Y = node.halves(branch.P)
            # Line 13, ⁰Ω_j = ⁱΩ_j + ⁱP_jᵀ ⁰Ω_i ⁱP_j; for contacts the same is their block.
            add_products(branch.Omega, Z, Y)
            spread(G, branch)
            if len(node.branches) == 1:
                continue
            late = node.couples(branch)
            if not late:
                Z, Y = branch.lift(Z), branch.lift(Y)
            for other, Y_other, other_late in done:
                # Line 18 for contacts whose closest common ancestor is this node.
                block = matmul(Z, transpose(Y_other))
                if other_late:
                    block = transpose(other.lift(transpose(block)))
                fill(G, branch.index, other.index, branch.lift(block) if late else block)
            done.append((branch, Y, late))
    return G


def limited_backward_sweep(nodes: Sequence[Node]) -> None:
    """Lines 14–16 for the nodes that need it, from the leaves, so that no recursion is deep."""
    for node in reversed(nodes):
        is_root = node.root is not None or node.link == WORLD
        if not is_root and node.link not in node.decision.spreads:
            node.lifted()


def spread(G: Matrix, branch: Propagated) -> None:
    """Take a branch's final Ω apart: ⁰Ω of its nodes, and blocks of G within the branch."""
    for a, part in enumerate(branch.parts):
        rows = part.of(branch.Omega)
        for other in branch.parts[a:]:
            block = transpose(other.of(transpose(rows)))
            if part is not other:
                block = part.lift(transpose(other.lift(transpose(block))))
            elif part.node is not None:
                part.node.Omega = block
                continue
            fill(G, part.index, other.index, block)
