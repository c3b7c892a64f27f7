"""PV-OSIMr: the Delassus matrix in O(n + m²) operations, over joints and clusters.

A. S. Sathya, W. Decré, J. Swevers, "PV-OSIMr: A Lowest Order Complexity Algorithm for Computing
the Delassus Matrix", IEEE Robotics and Automation Letters, 2024: Algorithm 3, with the line
numbers of the preprint. All quantities are in local link frames: quantities that move to the
parent are transformed to its frame.

As in section III-A, up to six rows of contacts that meet at a link are propagated unchanged: 𝒩
holds only the links where more than six rows meet (:func:`wide_nodes`), and the roots: free bodies
with ⁰Ω = H⁻¹, and the ground with ⁰Ω = 0. With only roots in 𝒩 the algorithm is Algorithm 1,
PV-OSIM; with every link where paths of contacts join (:func:`joining_nodes`) it is Algorithm 3 as
published, ``pv_osimr_strict``. The matrix is the same for every choice of nodes.

For robots with local loops (C-PV-OSIMr, which neither paper has) the joints may be clusters, of
M. Chignoli, N. Adrian, S. Kim, P. Wensing, "Recursive Rigid-Body Dynamics Algorithms for Systems
with Kinematic Loops". The step over a cluster is
:class:`~delassus.rbda.cluster_propagation.ClusterPropagator`; rows leave a cluster together by
several links, and links inside clusters may be in 𝒩. The derivation is in ``docs/clusters.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from delassus.algorithms.registry import register
from delassus.model.robot import WORLD
from delassus.rbda.propagation import (
    FreeBody,
    add_products,
    articulated_joints,
    block_diagonal,
    fill,
)
from delassus.rbda.spatial import sum_of_rows
from delassus.rbda.tree import Link, Tree, rows_of
from delassus.scalars.functions import Matrix, Scalar, identity, matmul, transpose, zeros
from delassus.scalars.ports import Inputs


@register("pv_osimr", clusters=True, aliases=("c_pv_osimr",))
def pv_osimr(tree: Tree, K: dict[int, Matrix], x: Inputs) -> Matrix:
    """PV-OSIMr (Sathya et al., 2024), fewer nodes than Algorithm 3 where at most six rows meet."""
    return delassus(tree, K, x, wide_nodes(tree))


@register("pv_osimr_strict")
def pv_osimr_strict(tree: Tree, K: dict[int, Matrix], x: Inputs) -> Matrix:
    """PV-OSIMr, Algorithm 3 as published: a node at every link where paths of contacts join."""
    return delassus(tree, K, x, joining_nodes(tree))


def delassus(
    tree: Tree, K: dict[int, Matrix], x: Inputs, nodes: frozenset[int], spreads: bool = False
) -> Matrix:
    """Return G; K are the contacts' rows.

    Parameters
    ----------
    nodes : 𝒩, the links where the six rows of an extended propagator replace all arriving rows.
    spreads : the rows of nodes meet at a node, and products go down branch by branch, as KJR
        does; otherwise by ⁱK of line 16. The recursion is as deep as nodes are nested.
    """
    N = backward_sweep(tree, K, x, nodes, spreads)
    if not spreads:
        limited_backward_sweep(N)
    return forward_sweep(tree.rows, N)


def backward_sweep(
    tree: Tree, K: dict[int, Matrix], x: Inputs, nodes: frozenset[int], spreads: bool = False
) -> list[WideNode]:
    """Lines 1–11: propagate inertias, P and Ω to the roots; return 𝒩, roots first."""
    arriving = [
        [own_contact(K[contact.index], rows_of(contact)) for contact in link.contacts]
        for link in tree.links
    ]  # lines 3 and 4
    ground = WideNode([], spreads=spreads)
    N: list[WideNode] = []
    shared = first_rows(tree)
    for joint in articulated_joints(tree, x):  # lines 5, 8 and 9
        leaving: list[Propagated] = []
        moved: list[tuple[Matrix, Matrix, Matrix]] = []
        for i in joint.links:
            branches = merged(arriving[i], shared)
            if not branches:
                continue
            if isinstance(joint, FreeBody):
                N.append(WideNode(branches, i, root=joint, spreads=spreads))
                continue
            if i in nodes:  # lines 6 and 7
                N.append(WideNode(branches, i, spreads=spreads))
                leaving.append(after_joint(N[-1]))
            else:
                leaving.append(assembled(branches))
            moved.append(joint.to_parent(leaving[-1].P, i))  # line 9
        if isinstance(joint, FreeBody) or not leaving:
            continue
        # A cluster couples what leaves it by several links.
        carried = assembled(leaving)
        P, PS, PSD = ([row for rows in part for row in rows] for part in zip(*moved, strict=True))
        add_products(carried.Omega, PSD, PS)  # line 10
        if joint.parent == WORLD:
            ground.branches.append(carried)
        else:
            carried.P = P
            arriving[joint.parent].append(carried)  # line 11
    if ground.branches:
        ground.branches = merged(ground.branches, shared)
        N.append(ground)
    return N[::-1]


def first_rows(tree: Tree) -> dict[int, int]:
    """Return per row of an end of a contact the row of the contact's first end; empty if alike."""
    return {row: rows[0] for rows in tree.sums for row in rows}


def limited_backward_sweep(N: Sequence[WideNode]) -> None:
    """Lines 14–16 for the nodes, from the leaves, so that no recursion is deep."""
    for node in reversed(N):
        if not node.is_root:
            node.K = [row for branch in node.branches for row in branch.lift(branch.P)]


def forward_sweep(m: int, N: Sequence[WideNode]) -> Matrix:
    """Lines 12, 13 and 17–20: ⁰Ω of every node and the blocks of G; `N` roots first.

    Lifting the halves of P instead of P gives the halves of K directly.
    """
    G = zeros(m, m)
    for node in N:
        done: list[tuple[Propagated, Matrix, bool]] = []
        # Widest first: of two contacts the smaller contact gets the side with Ω.
        for branch in sorted(node.branches, key=lambda branch: -len(branch.index)):
            Z, Y = node.halves(branch.P)
            # Line 13, ⁰Ω_j = ⁱΩ_j + ⁱP_jᵀ ⁰Ω_i ⁱP_j; for contacts this is their block of G.
            add_products(branch.Omega, Z, Y)
            settle(G, branch)
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


def settle(G: Matrix, branch: Propagated) -> None:
    """Split a branch's final Ω into ⁰Ω of its nodes and blocks of G within the branch."""
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


def wide_nodes(tree: Tree) -> frozenset[int]:
    """Return the links, except roots, where more than six rows meet: section III-A.

    The paper's 𝒩 holds all links where the paths of several contacts join. At the returned links
    more rows arrive than the six of an extended propagator that leave; at the other links of 𝒩 the
    contacts' rows are propagated unchanged. Beyond the paper, several contacts on one link count
    separately, rows that left a cluster by several links arrive together, and rows of one force
    count once.
    """
    return _nodes(tree, lambda link, arriving: _rows(arriving) > 6)


def joining_nodes(tree: Tree) -> frozenset[int]:
    """Return the paper's 𝒩 without roots: links where paths join, and ends of more than six rows.

    The contacts of one link are one end effector, as in the paper.
    """

    def joins(link: Link, arriving: list[set[object]]) -> bool:
        own = len(link.contacts)
        return _rows(arriving) > 6 or len(arriving) - own + bool(own) > 1

    return _nodes(tree, joins)


def _rows(arriving: list[set[object]]) -> int:
    """Return the number of rows that travel on."""
    return len(set().union(*arriving))


def _nodes(tree: Tree, is_node: Callable[[Link, list[set[object]]], bool]) -> frozenset[int]:
    """Return the links where several branches or contacts meet and `is_node` holds, except roots.

    Parameters
    ----------
    is_node : of the link and the rows that arrive there by contact and branch; rows of one force
        are the same.
    """
    found = set()
    shared = first_rows(tree)
    arriving: list[list[set[object]]] = [
        [{shared.get(row, row) for row in rows_of(contact)} for contact in link.contacts]
        for link in tree.links
    ]
    for joint in reversed(tree.joints):
        leaving: set[object] = set()
        for i in joint.links:
            link = tree.links[i]
            if not arriving[i] or link.motion == "free":
                continue
            rows = set[object]().union(*arriving[i])
            together = len(arriving[i]) > 1 or not link.contacts
            if together and is_node(link, arriving[i]):
                found.add(i)
                rows = {(i, k) for k in range(6)}
            leaving |= rows
        if leaving and joint.parent != WORLD:
            arriving[joint.parent].append(leaving)
    return frozenset(found)


@dataclass
class WideNode:
    """A link of 𝒩, or a root.

    Attributes
    ----------
    branches : rows arriving from the link's children and contacts.
    link : index of the link; WORLD for the ground.
    root : the free body, in place of ⁰Ω_i = H⁻¹; None for other links.
    Omega : (6, 6) ⁰Ω_i of line 13, known once the nodes above are done; zero for the ground.
    K : (rows, 6) the rows ⁱK_e of all contacts e at i and beyond, line 16; unused at a root.
    spreads : products with this node's rows go down branch by branch; K is unused.
    """

    branches: list[Propagated]
    link: int = WORLD
    root: FreeBody | None = None
    Omega: Matrix = field(default_factory=lambda: zeros(6, 6))
    K: Matrix = field(default_factory=list)
    spreads: bool = False

    @property
    def is_root(self) -> bool:
        """Whether the node is a root of the tree."""
        return self.root is not None or self.link == WORLD

    def halves(self, P: Matrix) -> tuple[Matrix, Matrix]:
        """Return Z, Y with Z_i Y_jᵀ = P_i ⁰Ω P_jᵀ, equation (17)."""
        if self.root is not None:
            return self.root.halves(P)
        return matmul(P, self.Omega), P

    def couples(self, branch: Propagated) -> bool:
        """Return whether P of a branch, not its contacts' rows, meets other branches here.

        True for branches behind nodes, where products spread; otherwise for those of them with
        more rows of contacts than the other branches have.
        """
        below = any(part.node is not None for part in branch.parts)
        others = sum(len(other.P) for other in self.branches if other is not branch)
        return below and (self.spreads or len(branch.index) > others)

    def lift(self, rows: Matrix) -> Matrix:
        """Return K · rows for `rows` (6, …) at this node."""
        if self.spreads:
            return [row for branch in self.branches for row in branch.lift(matmul(branch.P, rows))]
        return matmul(self.K, rows)


@dataclass
class NodePart:
    """Rows of P from one source: contacts, or a node.

    Attributes
    ----------
    index : the rows of G of these contacts; behind a node, of all contacts of the node.
    first, size : range of rows in P: as many as in `index`, or six behind a node.
    node : the node that the rows come from; None for rows of contacts.
    """

    index: list[int]
    first: int
    size: int
    node: WideNode | None = None

    def lift(self, rows: Matrix) -> Matrix:
        """Return `rows`, one per row of this part, for the contacts' rows; line 16."""
        return rows if self.node is None else self.node.lift(rows)

    def of(self, rows: Matrix) -> Matrix:
        """Return the rows of this part."""
        return rows[self.first : self.first + self.size]


@dataclass
class Propagated:
    """The quantities propagated from a link d towards the root: P and Ω of the paper.

    Attributes
    ----------
    P : (r, 6) the rows of ⁱP_dᵀ: the propagated rows K of contacts, or, behind a node, the
        node's extended motion propagator.
    Omega : (r, r) ⁱΩ_d, the apparent inverse inertia due to the joints passed so far.
    parts : sources of the rows.
    """

    P: Matrix
    Omega: Matrix
    parts: list[NodePart]

    @property
    def index(self) -> list[int]:
        """The rows of G of all contacts below."""
        return [row for part in self.parts for row in part.index]

    def lift(self, rows: Matrix) -> Matrix:
        """Return `rows`, one per row of P, for the contacts' rows."""
        return [row for part in self.parts for row in part.lift(part.of(rows))]


def own_contact(K: Matrix, index: list[int]) -> Propagated:
    """Line 4: P = K and Ω = 0 at the contact's link."""
    k = len(K)
    return Propagated(K, zeros(k, k), [NodePart(index, 0, k)])


def after_joint(node: WideNode) -> Propagated:
    """Line 7: P = 1 and Ω = 0 at a node."""
    index = [row for branch in node.branches for row in branch.index]
    return Propagated(identity(6), zeros(6, 6), [NodePart(index, 0, 6, node)])


def assembled(branches: list[Propagated]) -> Propagated:
    """Return all rows together, as lines 6 and 7 of Algorithm 1 do."""
    if len(branches) == 1:
        return branches[0]
    P: Matrix = []
    parts = []
    for branch in branches:
        parts += [
            NodePart(part.index, part.first + len(P), part.size, part.node)
            for part in branch.parts
        ]
        P = P + branch.P
    return Propagated(P, block_diagonal([branch.Omega for branch in branches]), parts)


def merged(branches: list[Propagated], shared: Mapping[int, int]) -> list[Propagated]:
    """Return branches with rows of one force added, where they meet: 6 rows travel on, not 12.

    The rows of a contact of several links have one force λ: K of different links is added, and so
    are the entries of Ω. Rows behind a node are added in G.

    Parameters
    ----------
    shared : per row of an end of a contact, the row of the contact's first end.
    """
    plain = [part for branch in branches for part in branch.parts if part.node is None]
    keys = [shared[row] for part in plain for row in part.index] if shared else []
    if len(set(keys)) == len(keys):
        return branches
    whole = assembled(branches)
    found: dict[int, NodePart] = {}
    kept: list[NodePart] = []
    sources: list[list[int]] = []
    for part in whole.parts:
        own = range(part.first, part.first + part.size)
        before = found.get(shared[part.index[0]]) if part.node is None else None
        if before is not None:
            for k, source in enumerate(own, start=before.first):
                sources[k].append(source)
            continue
        kept.append(NodePart(part.index, len(sources), part.size, part.node))
        sources += [[k] for k in own]
        if part.node is None:
            found[shared[part.index[0]]] = kept[-1]
    P = [sum_of_rows([whole.P[k] for k in rows]) for rows in sources]
    size = len(sources)
    Omega = zeros(size, size)
    for r in range(size):
        for c in range(r, size):
            total: Scalar = 0.0
            for i in sources[r]:
                for j in sources[c]:
                    total = total + whole.Omega[i][j]
            Omega[r][c] = Omega[c][r] = total
    return [Propagated(P, Omega, kept)]
