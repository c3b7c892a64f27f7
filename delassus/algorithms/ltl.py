"""LTL: the joint-space route with branch-induced sparsity; O(n d² + m d² + m² d).

R. Featherstone, "Exploiting Sparsity in Operational-Space Dynamics", The International Journal
of Robotics Research 29(10), 2010, with the factorisation of R. Featherstone, "Efficient
Factorization of the Joint-Space Inertia Matrix for Branched Kinematic Trees", IJRR 24(6), 2005,
in its form without square roots: M = Lᵀ D L, Y = J L⁻¹, G = Y D⁻¹ Yᵀ; equations (4) to (6) of
A. S. Sathya, W. Decré, J. Swevers, "PV-OSIMr", IEEE RA-L, 2024. M is computed by the
composite-rigid-body algorithm, R. Featherstone, Rigid Body Dynamics Algorithms, 2008, table 6.2.

With couplings and loops, q̇ = E ẏ, LTL is the projection J E (Eᵀ M E)⁻¹ Eᵀ Jᵀ: M and J of the
spanning tree, projected cluster by cluster on the independent rates, then factorised with the
sparsity induced by the tree of clusters; the method that M. Chignoli, N. Adrian, S. Kim,
P. Wensing, "Recursive Rigid-Body Dynamics Algorithms for Systems with Kinematic Loops", compare
with.
"""

from __future__ import annotations

from delassus.algorithms.registry import register
from delassus.model.robot import WORLD
from delassus.rbda.joint_space import Freedoms, composite_rigid_bodies
from delassus.rbda.spatial import JointTransform
from delassus.rbda.tree import Tree
from delassus.scalars.functions import (
    Matrix,
    Scalar,
    Vector,
    dot,
    identity,
    is_zero,
    matmul,
    positive,
    transpose,
    zeros,
)
from delassus.scalars.ports import Inputs


@register("ltl", clusters=True, aliases=("projection", "ltl_osim"))
def ltl(tree: Tree, K: dict[int, Matrix], x: Inputs) -> Matrix:
    """Featherstone's sparse factorisation of M (2005, 2010); with loops, of Eᵀ M E."""
    M, J, freedoms = projected(tree, K, x)
    L, D_inverse = factorise(M, freedoms)
    return products([solve_rows(L, row, freedoms) for row in J], D_inverse)


def projected(
    tree: Tree, K: dict[int, Matrix], x: Inputs
) -> tuple[Matrix, Matrix, Freedoms]:
    """Return M (lower triangle), J and their velocities; with loops Eᵀ M E, J E and those of ẏ."""
    freedoms = Freedoms.of(tree)
    transforms = [JointTransform(link, x) for link in tree.links]
    M = composite_rigid_bodies(tree, freedoms, transforms)
    J = jacobian(tree, freedoms, transforms, K)
    if not tree.clusters:
        return M, J, freedoms
    independent = _Independent(tree, freedoms, x)
    return independent.inertia(M), independent.rows(J), independent.freedoms


def jacobian(
    tree: Tree, freedoms: Freedoms, transforms: list[JointTransform], K: dict[int, Matrix]
) -> Matrix:
    """Return J (m, nv) from the contacts' rows, carried to the root."""
    J = zeros(tree.rows, len(freedoms.above))
    for i, link in enumerate(tree.links):
        for contact in link.contacts:
            rows = K[contact.index]
            for j in tree.path(i):
                column, moving = freedoms.first[j], tree.links[j]
                for r, row in enumerate(rows, start=contact.first_row):
                    if moving.motion == "free":
                        J[r][column : column + 6] = row
                    else:
                        J[r][column] = row[moving.freedom]
                if moving.parent != WORLD and moving.motion != "free":
                    rows = [transforms[j].force_to_parent(row) for row in rows]
    return J


def factorise(M: Matrix, freedoms: Freedoms) -> tuple[Matrix, list[Scalar]]:
    """Return L (unit lower triangular, as sparse as M) and D⁻¹ with M = Lᵀ D L.

    Featherstone (2005), table 2: from the last velocity to the first, only along branches.
    """
    L = [list(row) for row in M]
    n = len(M)
    D_inverse: list[Scalar] = [0.0] * n
    for k in reversed(range(n)):
        D_inverse[k] = 1.0 / positive(L[k][k], f"the inertia seen by joint {freedoms.names[k]!r}")
        branch = freedoms.ancestors(k)
        for depth, i in enumerate(branch):
            a = L[k][i] * D_inverse[k]
            if is_zero(a):
                continue
            for j in branch[depth:]:
                L[i][j] = L[i][j] - a * L[k][j]
            L[k][i] = a
    return L, D_inverse


def solve_rows(L: Matrix, row: list[Scalar], freedoms: Freedoms) -> list[Scalar]:
    """Return y = row · L⁻¹, which has the row's branch-induced sparsity (2010, section 4)."""
    y = list(row)
    for k in reversed(range(len(y))):
        if is_zero(y[k]):
            continue
        for i in freedoms.ancestors(k):
            y[i] = y[i] - L[k][i] * y[k]
    return y


def substituted(L: Matrix, z: Vector, freedoms: Freedoms) -> Vector:
    """Return L⁻¹ z for the factor of :func:`factorise`."""
    found: Vector = []
    for k, value in enumerate(z):
        for i in freedoms.ancestors(k):
            value = value - L[k][i] * found[i]
        found.append(value)
    return found


def products(Y: Matrix, D_inverse: list[Scalar]) -> Matrix:
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


class _Independent:
    """The independent rates ẏ of a tree, joint by joint.

    Attributes
    ----------
    freedoms : numbering of the rates; the rates of a cluster are consecutive.
    """

    def __init__(self, tree: Tree, spanning: Freedoms, x: Inputs) -> None:
        self.freedoms = Freedoms([], [], [])
        # Per joint: the velocities of its links, its first ẏ, E, and the armature added to M.
        self._columns: list[list[int]] = []
        self._first: list[int] = []
        self._E: list[Matrix] = []
        self._armature: list[Matrix] = []
        self._above: list[int] = []  # per joint, the carrying joint
        joint_of: dict[int, int] = {WORLD: WORLD}
        last: dict[int, int] = {WORLD: WORLD}  # per joint, the last ẏ on the way to it
        for number, joint in enumerate(tree.joints):
            if joint.cluster is None:
                size = 6 if tree.links[joint.i].motion == "free" else 1
                first = spanning.first[joint.i]
                self._columns.append(list(range(first, first + size)))
                self._E.append(identity(size))
                self._armature.append(zeros(size, size))
            else:
                size = joint.cluster.freedoms
                self._columns.append([spanning.first[i] for i in joint.links])
                self._E.append(joint.cluster.jacobian_at(x))
                self._armature.append(joint.cluster.armature)
            joint_of.update(dict.fromkeys(joint.links, number))
            first, above = len(self.freedoms.above), last[joint_of[joint.parent]]
            self._first.append(first)
            self._above.append(joint_of[joint.parent])
            chain = [above, *range(first, first + size)]
            self.freedoms.above.extend(chain[:size])
            self.freedoms.names.extend([tree.links[joint.links[-1]].name] * size)
            last[number] = chain[-1]

    def rows(self, J: Matrix) -> Matrix:
        """Return J E."""
        found = zeros(len(J), len(self.freedoms.above))
        for columns, first, E in zip(self._columns, self._first, self._E, strict=True):
            for k, rates in enumerate(transpose(E)):
                for source, row in zip(J, found, strict=True):
                    row[first + k] = dot([source[c] for c in columns], rates)
        return found

    def inertia(self, M: Matrix) -> Matrix:
        """Return the lower triangle of Eᵀ M E from that of M."""
        n = len(self.freedoms.above)
        found = zeros(n, n)
        for a, columns in enumerate(self._columns):
            E_t = transpose(self._E[a])
            if not E_t:
                continue
            b = a
            while b != WORLD:
                block = [[M[max(r, c)][min(r, c)] for c in self._columns[b]] for r in columns]
                if a == b:
                    block = [
                        [m + d for m, d in zip(row, added, strict=True)]
                        for row, added in zip(block, self._armature[a], strict=True)
                    ]
                projected = matmul(E_t, matmul(block, self._E[b])) if self._E[b][0] else []
                for k, row in enumerate(projected):
                    for h, value in enumerate(row):
                        if self._first[b] + h <= self._first[a] + k:
                            found[self._first[a] + k][self._first[b] + h] = value
                b = self._above[b]
        return found
