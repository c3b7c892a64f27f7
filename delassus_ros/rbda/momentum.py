"""Rows of the whole robot: centre of mass and centroidal momentum.

The base rows of M ẏ are the momentum of the robot, so the centroidal momentum matrix is
A = X [1 0] M, with X from wrenches at the base to wrenches at the centre of mass. Hence
A M⁻¹ Jᵀ = X [1 0] Jᵀ, the wrenches of unit contact forces about the centre of mass, and
A M⁻¹ Aᵀ = X [1 0] Aᵀ, the inertia of the whole robot about it: no recursion is needed. Linear rows
divided by the mass are the velocity of the centre of mass.

On a fixed base the momentum at the world is F ẏ, with F the rows of M that a base would have. The
elimination of the joints leaves such a base the articulated inertia I − F M⁻¹ Fᵀ, and of the rows
K of a contact those propagated to the world, K X − J M⁻¹ Fᵀ. What the joints take away is summed
link by link, so that nothing cancels. D. Orin, A. Goswami, S.-H. Lee,
"Centroidal dynamics of a humanoid robot", Autonomous Robots 35, 2013, for A.
"""

from __future__ import annotations

from functools import cached_property

from delassus_ros.errors import AlgorithmError
from delassus_ros.model.robot import WORLD
from delassus_ros.problem import Problem
from delassus_ros.rbda.joint_space import mass_matrix
from delassus_ros.rbda.propagation import FreeBody, articulated_bodies
from delassus_ros.rbda.spatial import (
    JointTransform,
    RigidInertia,
    SpatialInertia,
    carried_rows,
    contact_rows,
    cross_matrix,
    rotation_of_quaternion,
    summed,
    summed_matrix,
)
from delassus_ros.rbda.tree import NO_BASE, Tree, rows_of
from delassus_ros.rbda.trees import tree_of
from delassus_ros.rbda.unknown_constants import structure
from delassus_ros.rbda.velocities import force_on_body
from delassus_ros.scalars.functions import (
    Matrix,
    Scalar,
    dot,
    forward_substitute,
    identity,
    ldl,
    matmul,
    transpose,
    zeros,
)
from delassus_ros.scalars.ports import Inputs


def contact_matrix(problem: Problem, tree: Tree, x: Inputs, G: Matrix) -> Matrix:
    """Return G of a problem's contacts from G of their ends, with the rows of the whole robot."""
    G = summed_matrix(tree, G)
    if of_the_robot(problem):
        G = CentroidalRows(problem, tree, x).filled(G)
    return without_loops(problem, G)


def without_loops(problem: Problem, G: Matrix) -> Matrix:
    """Return G of the contacts, G_cc − G_cℓ G_ℓℓ⁻¹ G_ℓc, with loops that are closed by rows."""
    m = problem.contacts.rows
    if len(G) == m:
        return G
    names = ", ".join(repr(loop.name) for loop in problem.robot.row_loops)
    L, D_inverse = ldl([row[m:] for row in G[m:]], f"the inverse inertia of loops {names}")
    Y = [forward_substitute(L, row[m:]) for row in G[:m]]
    Z = [[y * d for y, d in zip(row, D_inverse, strict=True)] for row in Y]
    found = zeros(m, m)
    for r in range(m):
        for c in range(r, m):
            found[r][c] = found[c][r] = G[r][c] - dot(Z[r], Y[c])
    return found


def of_the_robot(problem: Problem) -> list[int]:
    """Return the rows of G that are of the whole robot."""
    offsets = problem.contacts.row_offsets
    return [
        row
        for index, contact in enumerate(problem.contacts)
        if not contact.ends
        for row in range(offsets[index], offsets[index + 1])
    ]


class CentroidalRows:
    """The rows of the whole robot at the inputs, in the axes of the problem.

    Parameters
    ----------
    tree : any tree of the problem.
    """

    def __init__(self, problem: Problem, tree: Tree, x: Inputs) -> None:
        self._problem, self._x = problem, x
        self._tree = tree if tree.base == NO_BASE else structure(tree_of(problem))
        frees = [i for i, link in enumerate(self._tree.links) if link.motion == "free"]
        self._root = frees[0] if frees else WORLD

    @cached_property
    def _inertia(self) -> tuple[Scalar, Matrix, Matrix]:
        """Mass, [c×] of the centre of mass c at the base, and the inertia about it (3, 3)."""
        links = self._tree.links
        composite = {i: RigidInertia.of(link) for i, link in enumerate(links)}
        for i in reversed(range(len(links))):
            if links[i].motion != "free":
                moved = JointTransform(links[i], self._x).rigid_inertia_to_parent(composite[i])
                before = composite.get(links[i].parent)
                composite[links[i].parent] = moved if before is None else before + moved
        whole = composite[self._root]
        by_mass = 1.0 / whole.mass
        at_link = cross_matrix([h * by_mass for h in whole.moment])
        square = matmul(at_link, at_link)
        about = [
            [value + whole.mass * s for value, s in zip(*rows, strict=True)]
            for rows in zip(whole.rotational, square, strict=True)
        ]
        link = None if self._root == WORLD else links[self._root]
        turn = identity(3) if link is None or link.axes is None else link.axes
        center = matmul(turn, [[h * by_mass] for h in whole.moment])
        origin = [0.0, 0.0, 0.0] if link is None else link.origin
        at_base = [o + c for o, (c,) in zip(origin, center, strict=True)]
        return whole.mass, cross_matrix(at_base), matmul(turn, matmul(about, transpose(turn)))

    @cached_property
    def _rotation(self) -> Matrix:
        """Rotation from the axes of the base link to the axes of the rows."""
        if self._problem.axes == "contact" or self._root == WORLD:
            return identity(3)
        link = self._tree.links[self._root]
        turn = rotation_of_quaternion(list(self._x["base_orientation"]))
        return turn if link.placement is None else matmul(link.placement, turn)

    @cached_property
    def _to_center(self) -> Matrix:
        """X (6, 6): wrench at the base, force first → wrench at the centre of mass."""
        R = self._rotation
        moment = [[-value for value in row] for row in matmul(R, self._inertia[1])]
        return [[*row, 0.0, 0.0, 0.0] for row in R] + [
            [*one, *other] for one, other in zip(moment, R, strict=True)
        ]

    def _maps(self) -> list[tuple[list[int], Matrix]]:
        """Per contact of the whole robot its rows, and the part of X that they have."""
        found = []
        offsets = self._problem.contacts.row_offsets
        for index, contact in enumerate(self._problem.contacts):
            if contact.ends:
                continue
            X = self._to_center
            if contact.rows == 3:
                by_mass = 1.0 / self._inertia[0]
                X = [[value * by_mass for value in row] for row in X[:3]]
            found.append((list(range(offsets[index], offsets[index + 1])), X))
        return found

    def _wrenches(self) -> Matrix:
        """Wrenches (m, 6) at the base of unit forces in the rows, force first."""
        tree, x = self._tree, self._x
        if self._root == WORLD:
            found = self._taken[0]
            return summed(tree, found) if found else zeros(len(tree.sums), 6)
        K = contact_rows(self._problem, tree, x)
        found = zeros(tree.rows, 6)
        for i, link in enumerate(tree.links):
            for contact in link.contacts:
                rows = carried_rows(tree, x, K[contact.index], i, self._root)
                for r, row in zip(rows_of(contact), rows, strict=True):
                    found[r] = force_on_body(tree.links[self._root], row)
        return summed(tree, found) if found else zeros(len(tree.sums), 6)

    @cached_property
    def _taken(self) -> tuple[Matrix, Matrix]:
        """F M⁻¹ Jᵀ per end's row (rows, 6) and F M⁻¹ Fᵀ (6, 6) on a fixed base, linear first."""
        tree, x = self._tree, self._x
        K = contact_rows(self._problem, tree, x)
        wrenches = zeros(tree.rows, 6)
        # Per link the numbers of rows, the rows propagated, and what joints beyond have taken.
        numbers: list[list[int]] = [[] for _ in tree.links]
        passing: list[Matrix] = [[] for _ in tree.links]
        taken: list[Matrix] = [[] for _ in tree.links]
        for i, link in enumerate(tree.links):
            for contact in link.contacts:
                numbers[i] += rows_of(contact)
                passing[i] += K[contact.index]
                taken[i] += zeros(len(K[contact.index]), 6)
        inertia = {WORLD: SpatialInertia(zeros(3, 3), zeros(3, 3), zeros(3, 3))}
        for joint in articulated_bodies(tree, x):
            if isinstance(joint, FreeBody):
                raise AlgorithmError(f"joint {tree.links[joint.i].name!r} is free on a fixed base")
            i, above = joint.i, joint.parent
            transform, HS = JointTransform(tree.links[i], x), joint.H.column(joint.S)
            away = [-h for h in joint.HSD]
            before = inertia.pop(i, SpatialInertia(zeros(3, 3), zeros(3, 3), zeros(3, 3)))
            arriving = transform.inertia_to_parent(before.minus_product(HS, away))
            inertia[above] = inertia[above] + arriving if above in inertia else arriving
            if not numbers[i]:
                continue
            rows, _, KSD = joint.to_parent(passing[i], i)
            moved = [
                transform.force_to_parent([e + ksd * h for e, h in zip(row, HS, strict=True)])
                for row, (ksd,) in zip(taken[i], KSD, strict=True)
            ]
            if above == WORLD:
                for r, row in zip(numbers[i], moved, strict=True):
                    wrenches[r] = row[3:] + row[:3]
                continue
            numbers[above] += numbers[i]
            passing[above] += rows
            taken[above] += moved
        own = inertia[WORLD].matrix()
        order = [3, 4, 5, 0, 1, 2]
        return wrenches, [[own[r][c] for c in order] for r in order]

    def _own(self) -> Matrix:
        """Return F M⁻¹ Fᵀ (6, 6), linear first: of a floating base the robot's inertia there."""
        if self._root == WORLD:
            return self._taken[1]
        mass, c, about = self._inertia
        linear = [[mass if i == j else 0.0 for j in range(3)] for i in range(3)]
        coupled = [[mass * value for value in row] for row in c]
        square = matmul(c, c)
        angular = [
            [value - mass * s for value, s in zip(*rows, strict=True)]
            for rows in zip(about, square, strict=True)
        ]
        return [[*a, *b] for a, b in zip(linear, transpose(coupled), strict=True)] + [
            [*a, *b] for a, b in zip(coupled, angular, strict=True)
        ]

    def filled(self, G: Matrix) -> Matrix:
        """Return G with the rows and columns of the whole robot."""
        W, maps = self._wrenches(), self._maps()
        found = [list(row) for row in G]
        own = {row for rows, _ in maps for row in rows}
        others = [r for r in range(len(G)) if r not in own]
        for rows, X in maps:
            block = matmul(X, transpose([W[r] for r in others])) if others else []
            for r, values in zip(rows, block, strict=False):
                for c, value in zip(others, values, strict=True):
                    found[r][c] = found[c][r] = value
            left = matmul(X, self._own())
            for columns, Y in maps:
                pair = matmul(left, transpose(Y))
                for r, values in zip(rows, pair, strict=True):
                    for c, value in zip(columns, values, strict=True):
                        if r <= c:
                            found[r][c] = found[c][r] = value
        return found

    def jacobian(self, J: Matrix) -> Matrix:
        """Return J with the rows of the whole robot."""
        base = mass_matrix(self._problem, self._tree, self._x)[:6]
        found = [list(row) for row in J]
        for rows, X in self._maps():
            for r, values in zip(rows, matmul(X, base), strict=True):
                found[r] = values
        return found

    def response(self, MinvJT: Matrix) -> Matrix:
        """Return M⁻¹Jᵀ with the columns of the whole robot: motions as a rigid body."""
        found = [list(row) for row in MinvJT]
        for rows, X in self._maps():
            for r, twist in zip(rows, X, strict=True):
                for k, value in enumerate(twist):
                    found[k][r] = value
        return found
