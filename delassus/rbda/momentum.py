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

from delassus.errors import AlgorithmError
from delassus.model.robot import WORLD
from delassus.problem import Problem
from delassus.rbda.cluster_motion import ClusterMotion
from delassus.rbda.dynamics import momentum_rate
from delassus.rbda.jacobian import jacobian_of_ends
from delassus.rbda.joint_space import mass_matrix
from delassus.rbda.propagation import FreeBody, articulated_bodies
from delassus.rbda.row_loops import RowLoops
from delassus.rbda.spatial import (
    JointTransform,
    RigidInertia,
    SpatialInertia,
    carried_rows,
    contact_rows,
    cross,
    rotation_of_quaternion,
    summed,
    summed_matrix,
)
from delassus.rbda.tree import NO_BASE, Tree, rows_of
from delassus.rbda.trees import spanning_tree, tree_of
from delassus.rbda.unit_forces import UnitForces
from delassus.rbda.unknown_constants import structure
from delassus.rbda.velocities import Velocities, force_on_body, motion_of_body
from delassus.scalars.functions import (
    Matrix,
    Scalar,
    Vector,
    cross_matrix,
    dot,
    identity,
    matmul,
    plus,
    transpose,
    zeros,
)
from delassus.scalars.ports import Inputs


def contact_matrix(problem: Problem, tree: Tree, x: Inputs, G: Matrix) -> Matrix:
    """Return G of a problem's contacts from G of their ends, with the rows of the whole robot."""
    G = summed_matrix(tree, G)
    if of_the_robot(problem):
        G = CentroidalRows(problem, tree, x).filled(G)
    return RowLoops(problem, G).matrix


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
        # Rotors on the world have mass and momentum, which the tree of the recursions lacks.
        self._is_spanning = problem.robot.base == "fixed" and problem.robot.is_closed
        if self._is_spanning:
            self._tree = structure(spanning_tree(problem))
        else:
            self._tree = tree if tree.base == NO_BASE else structure(tree_of(problem))
        frees = [i for i, link in enumerate(self._tree.links) if link.motion == "free"]
        self._root = frees[0] if frees else WORLD

    @cached_property
    def _composites(self) -> dict[int, RigidInertia]:
        """Inertia of each link and the links beyond it; of the whole robot at the root."""
        links = self._tree.links
        composite = {i: RigidInertia.of(link) for i, link in enumerate(links)}
        for i in reversed(range(len(links))):
            if links[i].motion != "free":
                moved = JointTransform(links[i], self._x).rigid_inertia_to_parent(composite[i])
                before = composite.get(links[i].parent)
                composite[links[i].parent] = moved if before is None else before + moved
        return composite

    @cached_property
    def _inertia(self) -> tuple[Scalar, Matrix, Matrix]:
        """Mass, [c×] of the centre of mass c at the base, and the inertia about it (3, 3)."""
        links = self._tree.links
        whole = self._composites[self._root]
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
        if self._is_spanning:
            per_momentum = UnitForces(self._problem, tree, x).response_to_ground()
            J = jacobian_of_ends(self._problem, tree, x)
            return matmul(J, per_momentum) if J else [], matmul(
                self._momentum_of_velocities(), per_momentum
            )
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
        momentum = self._momentum_of_velocities()
        found = [list(row) for row in J]
        for rows, X in self._maps():
            for r, values in zip(rows, matmul(X, momentum), strict=True):
                found[r] = values
        return found

    def _momentum_of_velocities(self) -> Matrix:
        """Return F (6, n), momentum at the base per velocity, linear first."""
        problem, tree, x = self._problem, self._tree, self._x
        if self._root != WORLD:
            return mass_matrix(problem, tree, x)[:6]
        F = zeros(6, len(problem.velocities))
        factors = Velocities(problem, tree).rows(x)
        for i, link in enumerate(tree.links):
            column = self._composites[i].spatial().column(link.freedom)
            (carried,) = carried_rows(tree, x, [column], i, WORLD)
            for k, factor in factors[i].items():
                for r, value in enumerate(carried[3:] + carried[:3]):
                    F[r][k] = F[r][k] + value * factor
        return F

    def response(self, MinvJT: Matrix, unit: UnitForces) -> Matrix:
        """Return M⁻¹Jᵀ with the columns of the whole robot.

        On a floating base the robot moves as one rigid body.
        """
        found = [list(row) for row in MinvJT]
        if self._is_spanning:
            unit = UnitForces(self._problem, self._tree, self._x)
        if self._root == WORLD:
            per_momentum = unit.response_to_ground()
        else:
            per_momentum = zeros(len(found), 6)
            per_momentum[:6] = identity(6)
        for rows, X in self._maps():
            for k, values in enumerate(matmul(per_momentum, transpose(X))):
                for r, value in zip(rows, values, strict=True):
                    found[k][r] = value
        return found

    def rates(
        self,
        values: Vector,
        motion: ClusterMotion,
        a: list[Vector],
        independent: Vector | None,
    ) -> Vector:
        """Return derivatives (m,) of the rows with those of the whole robot.

        The momentum about the centre of mass changes by the wrench about it; in the axes of a base
        that turns at ω the components also change by −ω × themselves.

        Parameters
        ----------
        a : accelerations of the links of `motion`.
        independent : ÿ (n,) at which the links have these accelerations; None for 0.
        """
        found = list(values)
        if self._is_spanning:
            motion = ClusterMotion(self._problem, self._tree, self._x)
            a = motion.bias
            if independent is not None:
                links = zip(motion.accelerations(independent).links, motion.gravity, strict=True)
                a = [plus(link, [0.0] * 3 + g) for link, g in links]
        joints = motion.gamma if independent is None else motion.of_joints(independent)
        force = momentum_rate(motion, a, joints)
        turns = self._problem.axes == "contact" and self._root != WORLD
        for rows, X in self._maps():
            changes = [dot(row, self._at_base(force)) for row in X]
            if turns:
                omega = motion_of_body(self._tree.links[self._root], motion.v[self._root])[3:]
                carried = [dot(row, self._at_base(motion.momentum)) for row in X]
                turning = [
                    value
                    for first in range(0, len(rows), 3)
                    for value in cross(omega, carried[first : first + 3])
                ]
                changes = [c - t for c, t in zip(changes, turning, strict=True)]
            for r, value in zip(rows, changes, strict=True):
                found[r] = value
        return found

    def velocities(self, values: Vector, motion: ClusterMotion) -> Vector:
        """Return velocities (m,) of the rows with those of the whole robot, its momentum.

        Parameters
        ----------
        values : velocities of the rows of contacts.
        """
        found = list(values)
        if self._is_spanning:
            motion = ClusterMotion(self._problem, self._tree, self._x)
        momentum = self._at_base(motion.momentum)
        for rows, X in self._maps():
            for r, row in zip(rows, X, strict=True):
                found[r] = dot(row, momentum)
        return found

    def _at_base(self, force: Vector) -> Vector:
        """Return a force at the root, angular first, as a wrench at the base, linear first."""
        if self._root == WORLD:
            return force[3:] + force[:3]
        return force_on_body(self._tree.links[self._root], force)
