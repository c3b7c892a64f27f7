"""Projection: J E (Eᵀ M E)⁻¹ Eᵀ Jᵀ, the joint-space route on the spanning tree; E = ∂q̇/∂ẏ.

M and J of the spanning tree by the composite-rigid-body algorithm, projected cluster by cluster on
the independent rates, then factorised with the sparsity that the tree of clusters induces, as in
:mod:`delassus_ros.algorithms.ltl`. The method that M. Chignoli, N. Adrian, S. Kim, P. Wensing,
"Recursive Rigid-Body Dynamics Algorithms for Systems with Kinematic Loops", compare with. On a
robot without loops it is LTL.
"""

from __future__ import annotations

from delassus_ros.algorithms.base import Inputs, Outputs
from delassus_ros.algorithms.ltl import (
    Freedoms,
    composite_rigid_bodies,
    factorise,
    jacobian,
    products,
    solve_rows,
)
from delassus_ros.algorithms.open_chain import ClusterAlgorithm
from delassus_ros.algorithms.registry import register
from delassus_ros.algorithms.scalars import Matrix, dot, identity, matmul, transpose, zeros
from delassus_ros.algorithms.spatial import JointTransform, contact_rows
from delassus_ros.algorithms.tree import Tree
from delassus_ros.model.robot import WORLD
from delassus_ros.problem import Problem


@register("projection")
class Projection(ClusterAlgorithm):
    """The projection on the independent rates of the spanning tree."""

    def evaluate(self, problem: Problem, x: Inputs) -> Outputs:
        """Compute G; see the base class."""
        return {"G": projection(Tree.of(problem), contact_rows(problem, x), x)}


def projection(tree: Tree, K: dict[int, Matrix], x: Inputs) -> Matrix:
    """Return G; K are the contacts' rows."""
    freedoms = Freedoms.of(tree)
    transforms = [JointTransform(link, x) for link in tree.links]
    M = composite_rigid_bodies(tree, freedoms, transforms)
    J = jacobian(tree, freedoms, transforms, K)
    if tree.clusters:
        independent = _Independent(tree, freedoms, x)
        M, J, freedoms = independent.inertia(M), independent.rows(J), independent.freedoms
    L, D_inverse = factorise(M, freedoms)
    return products([solve_rows(L, row, freedoms) for row in J], D_inverse)


class _Independent:
    """The independent rates ẏ of a tree, joint by joint.

    Attributes
    ----------
    freedoms : their numbering; all those of a cluster follow one on the other.
    """

    def __init__(self, tree: Tree, spanning: Freedoms, x: Inputs) -> None:
        self.freedoms = Freedoms([], [], [])
        # Per joint: the velocities of its links, its first ẏ, E, and what is added to M.
        self._columns: list[list[int]] = []
        self._first: list[int] = []
        self._E: list[Matrix] = []
        self._armature: list[Matrix] = []
        self._above: list[int] = []  # the joint that carries it
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
        for a, own in enumerate(self._columns):
            E_t = transpose(self._E[a])
            if not E_t:
                continue
            b = a
            while b != WORLD:
                block = [[M[max(r, c)][min(r, c)] for c in self._columns[b]] for r in own]
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
