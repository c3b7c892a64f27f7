"""Joint space: the numbering of a tree's velocities, and the mass matrix in it.

M is computed by the composite-rigid-body algorithm, R. Featherstone, Rigid Body Dynamics
Algorithms, 2008, table 6.2.
"""

from __future__ import annotations

from dataclasses import dataclass

from delassus.model.robot import WORLD
from delassus.problem import Problem
from delassus.rbda.spatial import JointTransform, RigidInertia
from delassus.rbda.tree import Tree
from delassus.rbda.velocities import Velocities, force_on_body
from delassus.scalars.functions import Matrix, Scalar, is_zero, zeros
from delassus.scalars.ports import Inputs


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


def mass_matrix(problem: Problem, tree: Tree, x: Inputs) -> Matrix:
    """Return M (n, n), the inertia of the independent velocities; with loops Eᵀ M E."""
    velocities, freedoms = Velocities(problem, tree), Freedoms.of(tree)
    rows = velocities.rows(x)
    spanning = composite_rigid_bodies(tree, freedoms, [JointTransform(k, x) for k in tree.links])
    for cluster in tree.clusters:
        for i, row in zip(cluster.links, cluster.armature, strict=True):
            for j, value in zip(cluster.links, row, strict=True):
                r, c = freedoms.first[i], freedoms.first[j]
                if c <= r:
                    spanning[r][c] = spanning[r][c] + value
    # Per velocity of the tree: the factors of the independent velocities.
    factors: list[dict[int, Scalar]] = []
    for i, link in enumerate(tree.links):
        if link.motion != "free":
            factors.append(rows[i])
            continue
        unit = [[1.0 if k == c else 0.0 for c in range(6)] for k in range(6)]
        factors += [
            dict(enumerate(force_on_body(link, row), start=velocities.first[i])) for row in unit
        ]
    n = len(problem.velocities)
    M = zeros(n, n)
    for r, row in enumerate(spanning):
        for c, value in enumerate(row[: r + 1]):
            if is_zero(value):
                continue
            for k, left in factors[r].items():
                for h, right in factors[c].items():
                    if r == c and h > k:
                        continue
                    term = left * value * right
                    # Both halves of the spanning tree's matrix meet on the diagonal.
                    term = term + term if r != c and k == h else term
                    k_, h_ = max(k, h), min(k, h)
                    M[k_][h_] = M[k_][h_] + term
    return [[M[max(k, h)][min(k, h)] for h in range(n)] for k in range(n)]
