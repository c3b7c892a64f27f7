"""LTL: the joint-space route with branch-induced sparsity; O(n d² + m d² + m² d).

R. Featherstone, "Exploiting Sparsity in Operational-Space Dynamics", The International Journal
of Robotics Research 29(10), 2010, with the factorisation of R. Featherstone, "Efficient
Factorization of the Joint-Space Inertia Matrix for Branched Kinematic Trees", IJRR 24(6), 2005,
in its form without square roots: M = Lᵀ D L, Y = J L⁻¹, G = Y D⁻¹ Yᵀ; equations (4) to (6) of
A. S. Sathya, W. Decré, J. Swevers, "PV-OSIMr", IEEE RA-L, 2024. M is computed by the
composite-rigid-body algorithm, R. Featherstone, Rigid Body Dynamics Algorithms, 2008, table 6.2.
"""

from __future__ import annotations

from dataclasses import dataclass

from delassus_ros.algorithms.base import Inputs, Outputs
from delassus_ros.algorithms.open_chain import OpenChainAlgorithm
from delassus_ros.algorithms.registry import register
from delassus_ros.algorithms.scalars import Matrix, Scalar, is_zero, positive, zeros
from delassus_ros.algorithms.spatial import JointTransform, RigidInertia, contact_rows
from delassus_ros.algorithms.tree import Tree
from delassus_ros.model.robot import WORLD
from delassus_ros.problem import Problem


@dataclass(frozen=True)
class Freedoms:
    """The tree's velocities, numbered parents first.

    Attributes
    ----------
    first : per link, its first velocity.
    above : λ of the 2005 paper: per velocity the next one towards the root, or WORLD.
    names : per velocity, the joint.
    """

    first: list[int]
    above: list[int]
    names: list[str]

    @staticmethod
    def of(tree: Tree) -> Freedoms:
        """Return the numbering; a free body has six velocities in a row."""
        first: list[int] = []
        last: list[int] = []
        above: list[int] = []
        names: list[str] = []
        for link in tree.links:
            first.append(len(above))
            free = link.motion == "free"
            above.append(WORLD if free or link.parent == WORLD else last[link.parent])
            if free:
                above += range(first[-1], first[-1] + 5)
            last.append(len(above) - 1)
            names += [link.name] * (len(above) - first[-1])
        return Freedoms(first, above, names)

    def ancestors(self, k: int) -> list[int]:
        """Return λ(k), λ(λ(k)), … to the root."""
        path = []
        while self.above[k] != WORLD:
            k = self.above[k]
            path.append(k)
        return path


@register("ltl")
class Ltl(OpenChainAlgorithm):
    """Featherstone's sparse factorisation of M (2005, 2010)."""

    def evaluate(self, problem: Problem, x: Inputs) -> Outputs:
        """Compute G; see the base class."""
        return {"G": ltl(Tree.of(problem), contact_rows(problem, x), x)}


def ltl(tree: Tree, K: dict[int, Matrix], x: Inputs) -> Matrix:
    """Return G; K are the contacts' rows."""
    freedoms = Freedoms.of(tree)
    transforms = [JointTransform(link, x) for link in tree.links]
    M = composite_rigid_bodies(tree, freedoms, transforms)
    J = jacobian(tree, freedoms, transforms, K)
    L, D_inverse = factorise(M, freedoms)
    return products([solve_rows(L, row, freedoms) for row in J], D_inverse)


def composite_rigid_bodies(
    tree: Tree, freedoms: Freedoms, transforms: list[JointTransform]
) -> Matrix:
    """Return the lower triangle of M, zero where two joints do not share a branch."""
    n = len(freedoms.above)
    M = zeros(n, n)
    composite = [RigidInertia.of(link) for link in tree.links]
    for i in reversed(range(len(tree.links))):
        link, row = tree.links[i], freedoms.first[i]
        if link.motion == "free":
            for r, values in enumerate(composite[i].spatial().matrix()):
                M[row + r][row : row + r + 1] = values[: r + 1]
            continue
        F = composite[i].spatial().column(link.freedom)
        M[row][row] = F[link.freedom] + link.armature
        j = i
        while tree.links[j].motion != "free" and tree.links[j].parent != WORLD:
            F = transforms[j].force_to_parent(F)
            if j == i:
                F = [f + c for f, c in zip(F, (*link.couple, 0.0, 0.0, 0.0), strict=True)]
            j = tree.links[j].parent
            column, above = freedoms.first[j], tree.links[j]
            if above.motion == "free":
                M[row][column : column + 6] = F
            else:
                M[row][column] = F[above.freedom]
        if link.parent != WORLD:
            moved = transforms[i].rigid_inertia_to_parent(composite[i])
            composite[link.parent] = composite[link.parent] + moved
    return M


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
