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

With further outputs M, its factors and J are those of the outputs, so that M⁻¹ Jᵀ and free
accelerations cost substitutions only; see :mod:`delassus.rbda.factored_inertia`.
"""

from __future__ import annotations

from delassus.algorithms.registry import TracedAlgorithm, register
from delassus.model.robot import WORLD
from delassus.problem import Problem
from delassus.rbda.factored_inertia import factorise, products, solve_rows
from delassus.rbda.joint_space import Freedoms, composite_rigid_bodies
from delassus.rbda.momentum import contact_matrix
from delassus.rbda.outputs import outputs_by_factors
from delassus.rbda.spatial import JointTransform, contact_rows
from delassus.rbda.tree import NO_BASE, Tree
from delassus.rbda.trees import tree_of
from delassus.scalars.functions import Matrix, dot, identity, matmul, transpose, zeros
from delassus.scalars.ports import Inputs, Outputs


@register("ltl", aliases=("projection", "ltl_osim"))
class LTL(TracedAlgorithm):
    """Featherstone's sparse factorisation of M (2005, 2010); with loops, of Eᵀ M E."""

    clusters = True
    any_tree = True

    def evaluate(self, problem: Problem, x: Inputs) -> Outputs:
        """Compute all outputs; see the base class."""
        return self.evaluate_on(problem, tree_of(problem), x)

    def evaluate_on(self, problem: Problem, tree: Tree, x: Inputs) -> Outputs:
        """Compute G, and all outputs on the tree of the base, with the constants of `tree`."""
        if len(problem.outputs) > 1 and tree.base == NO_BASE:
            return outputs_by_factors(problem, tree, x)
        G = ltl(tree, contact_rows(problem, tree, x), x)
        return {"G": contact_matrix(problem, tree, x, G)}


def ltl(tree: Tree, K: dict[int, Matrix], x: Inputs) -> Matrix:
    """Return G of the contacts of a tree."""
    M, J, freedoms = projected(tree, K, x)
    L, D_inverse = factorise(M, freedoms.names)
    return products([solve_rows(L, row) for row in J], D_inverse)


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
