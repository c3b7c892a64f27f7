"""Outputs besides G, from the same state: J, M⁻¹Jᵀ, M, h, v, J̇q̇, ÿ, the free acceleration a⁰.

These outputs do not depend on the algorithm of G, so every traced algorithm has them;
sub-expressions shared with G are computed once. :func:`outputs_by_factors` computes G and all of
them from the factors of M. Columns of J and rows of M⁻¹Jᵀ are those of
:mod:`delassus.rbda.velocities`. With couplings or loops, q̇ = E ẏ, J and M⁻¹Jᵀ are J E and
(Eᵀ M E)⁻¹ Eᵀ Jᵀ of the spanning tree's J and M. h is C-RNEA at ÿ = 0, the free accelerations are
C-ABA (:mod:`delassus.rbda.dynamics`); a⁰ adds O(n + m): accelerations of links are
propagated down the tree and multiplied by the contacts' rows.

J̇ ẏ + J ÿ is d/dt (J ẏ), the derivative of components. With contact axes the material acceleration
of the contact point differs from this derivative by ω × v; with world axes both are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property
from typing import Any

from delassus.problem import Problem
from delassus.rbda.cluster_motion import Accelerations, ClusterMotion
from delassus.rbda.dynamics import c_aba, c_rnea
from delassus.rbda.factored_inertia import FactoredInertia
from delassus.rbda.gradient import matrix_derivatives
from delassus.rbda.jacobian import jacobian_of_ends
from delassus.rbda.joint_space import mass_matrix
from delassus.rbda.momentum import CentroidalRows, of_the_robot
from delassus.rbda.spatial import (
    carried_rows,
    contact_rows,
    cross,
    rotation_to,
    summed,
    summed_matrix,
    turned_rows,
)
from delassus.rbda.tangents import with_all_slopes
from delassus.rbda.tree import ContactRows, SharedRows, Tree, rows_of
from delassus.rbda.unit_forces import UnitForces
from delassus.scalars.duals import Dual
from delassus.scalars.functions import (
    Matrix,
    Vector,
    dot,
    identity,
    matmul,
    minus,
    plus,
    transpose,
    zeros,
)
from delassus.scalars.ports import Inputs, Outputs


def outputs_by_factors(problem: Problem, tree: Tree, x: Inputs) -> Outputs:
    """Compute all outputs of a problem, G among them, from the factors of M.

    With h of C-RNEA, ÿ⁰ = M⁻¹ (τ − h) and a⁰ = J ÿ⁰ + J̇ẏ.

    Parameters
    ----------
    tree : tree of the problem.
    """
    state = FactoredState(problem, tree, x)
    formulas = {**FORMULAS, **BY_FACTORS}
    return {port.name: formulas[port.name](state) for port in problem.outputs}


def compute_outputs(problem: Problem, tree: Tree, x: Inputs, names: Iterable[str]) -> Outputs:
    """Compute the outputs besides G that are named.

    Parameters
    ----------
    tree : tree of the problem.
    """
    state = OutputState(problem, tree, x)
    return {name: FORMULAS[name](state) for name in names}


class OutputState:
    """A problem at its inputs, with the results that several outputs share."""

    def __init__(self, problem: Problem, tree: Tree, x: Inputs) -> None:
        self.problem, self.tree, self.x = problem, tree, x

    @cached_property
    def motion(self) -> ClusterMotion:
        """The tree's motion."""
        return ClusterMotion(self.problem, self.tree, self.x)

    @cached_property
    def free(self) -> Accelerations:
        """Accelerations caused by the torques without contact forces."""
        return c_aba(self.motion, list(self.x["torques"]))

    @property
    def free_links(self) -> list[Vector]:
        """Accelerations of the links, without contact forces."""
        pairs = zip(self.free.links, self.motion.gravity, strict=True)
        return [plus(a, [0.0] * 3 + g) for a, g in pairs]


class FactoredState(OutputState):
    """A problem at its inputs, with the factors of M."""

    @cached_property
    def factors(self) -> FactoredInertia:
        """The factors of M, and J."""
        problem, tree, x = self.problem, self.tree, self.x
        M = mass_matrix(problem, tree, x)
        return FactoredInertia(M, self.J, problem.velocities)

    @cached_property
    def J(self) -> Matrix:
        """Velocities → contact velocities."""
        return jacobian(self.problem, self.tree, self.x)

    @cached_property
    def free_accelerations(self) -> Vector:
        """M⁻¹ (τ − h) (n,)."""
        return self.factors.accelerations(minus(list(self.x["torques"]), c_rnea(self.motion)))

    @property
    def a0(self) -> Vector:
        """J ÿ⁰ + J̇ẏ (m,)."""
        bias = contact_accelerations(self.motion, self.motion.bias)
        return plus([dot(row, self.free_accelerations) for row in self.J], bias)


FORMULAS: dict[str, Callable[[OutputState], Any]] = {
    "dG": lambda state: derivatives(state.problem, state.tree, state.x),
    "J": lambda state: jacobian(state.problem, state.tree, state.x),
    "M": lambda state: mass_matrix(state.problem, state.tree, state.x),
    "MinvJT": lambda state: response(state.problem, state.tree, state.x),
    "JdotV": lambda state: contact_accelerations(state.motion, state.motion.bias),
    "a0": lambda state: contact_accelerations(
        state.motion, state.free_links, state.free.independent
    ),
    "h": lambda state: c_rnea(state.motion),
    "v": lambda state: contact_velocities(state.motion),
    "turning": lambda state: turning(state.motion),
    "qdd0": lambda state: state.free.independent,
}
"""The outputs of a kernel besides G; their shapes and needs are in :mod:`delassus.outputs`."""

BY_FACTORS: dict[str, Callable[[FactoredState], Any]] = {
    "G": lambda state: state.factors.matrix,
    "J": lambda state: state.J,
    "MinvJT": lambda state: transpose(state.factors.response),
    "a0": lambda state: state.a0,
    "qdd0": lambda state: state.free_accelerations,
}
"""The outputs that follow from the factors of M."""


def derivatives(problem: Problem, tree: Tree, x: Inputs) -> list[Matrix]:
    """Return ∂G/∂y (n, m, m) of the contacts."""
    found = matrix_derivatives(problem, tree, x, UnitForces(problem, tree, x))
    found = [summed_matrix(tree, matrix) for matrix in found]
    own = of_the_robot(problem)
    if not own:
        return found
    # Rows of the whole robot have a short formula, which is differentiated as it stands.
    blank = zeros(len(tree.sums), len(tree.sums))
    filled = CentroidalRows(problem, tree, with_all_slopes(problem, x)).filled(blank)
    for r, row in enumerate(filled):
        for c, value in enumerate(row):
            if isinstance(value, Dual) and not {r, c}.isdisjoint(own):
                for k, matrix in enumerate(found):
                    matrix[r][c] = value.slopes[k]
    return found


def contact_accelerations(
    motion: ClusterMotion, a: list[Vector], independent: Vector | None = None
) -> Vector:
    """Return the derivatives (m,) of the contacts' velocities at accelerations of links.

    The result is J̇ ẏ for the links' bias accelerations, and a⁰ for their accelerations without
    contact forces.

    Parameters
    ----------
    independent : ÿ (n,) at which the links have these accelerations; None for 0.
    """
    problem, tree, x, v = motion.problem, motion.tree, motion.x, motion.v
    found: Vector = [0.0] * tree.rows
    rows = contact_rows(problem, tree, x)
    together = {end for shared in tree.shared if shared.together for end in shared.ends}
    summands = {end for shared in tree.shared for end in shared.ends} - together
    for i, link in enumerate(tree.links):
        for contact in link.contacts:
            K, a_link = rows[contact.index], a[i]
            in_world = contact.in_world and contact.index not in together
            if in_world or contact.index in summands:
                turning = cross(v[i][:3], _point_velocity(contact, x, v[i]))
                a_link = a_link[:3] + plus(a_link[3:], turning)
            for r, row in zip(rows_of(contact), K, strict=True):
                found[r] = found[r] + dot(row, a_link)
    for shared in tree.shared:
        first = shared.ends[0]
        if first is None:
            continue
        contact = tree.contact[first]
        if shared.together:
            change = _change_of_difference(motion, shared, contact)
            # Rows of the first frame are −K.
            changes = [-dot(row, change) for row in rows[first]]
        elif not contact.in_world:
            change = _turning_of_sum(motion, shared, contact)
            changes = [-dot(row, change) for row in contact.selection]
        else:
            continue
        for r, value in zip(rows_of(contact), changes, strict=True):
            found[r] = found[r] + value
    found = _summed(tree, found)
    if not of_the_robot(problem):
        return found
    return CentroidalRows(problem, tree, x).rates(found, motion, a, independent)


def contact_velocities(motion: ClusterMotion) -> Vector:
    """Return J ẏ (m,), the velocities of the contacts in their rows."""
    problem, tree, x = motion.problem, motion.tree, motion.x
    found: Vector = [0.0] * tree.rows
    rows = contact_rows(problem, tree, x)
    for i, link in enumerate(tree.links):
        for contact in link.contacts:
            for r, row in zip(rows_of(contact), rows[contact.index], strict=True):
                found[r] = found[r] + dot(row, motion.v[i])
    found = _summed(tree, found)
    if not of_the_robot(problem):
        return found
    return CentroidalRows(problem, tree, x).velocities(found, motion)


def turning(motion: ClusterMotion) -> Vector:
    """Return ω × v (m,), the material accelerations of contacts less those of components.

    Zero with world axes, and for rows of several frames and of the whole robot.
    """
    problem, tree, x, v = motion.problem, motion.tree, motion.x, motion.v
    found: Vector = [0.0] * tree.rows
    rows = contact_rows(problem, tree, x)
    shared = {end for group in tree.shared for end in group.ends}
    for i, link in enumerate(tree.links):
        for contact in link.contacts:
            if contact.in_world or contact.index in shared:
                continue
            carried = cross(v[i][:3], _point_velocity(contact, x, v[i]))
            for r, row in zip(rows_of(contact), rows[contact.index], strict=True):
                found[r] = dot(row[3:], carried)
    return _summed(tree, found)


def _summed(tree: Tree, values: Vector) -> Vector:
    """Return a value per row of the contacts from one per row of their ends."""
    if not tree.sums:
        return values
    parts = [[values[k] for k in numbers] for numbers in tree.sums]
    return [sum(part[1:], part[0]) if part else 0.0 for part in parts]


def _change_of_difference(
    motion: ClusterMotion, shared: SharedRows, contact: ContactRows
) -> Vector:
    """Return the change, at the first link, of a difference of twists in the axes of the rows.

    With the twist w of the second frame in the first, whose twist is v, the components of w − v
    change by (w − v) × w = −v × w while the accelerations are zero. In the axes of the world,
    which do not turn with the first frame, the components of u = w − v also change by ω × u at the
    contact's origin.
    """
    tree, i = motion.tree, motion.tree.link_of[contact.index]
    v, second = motion.v[i], shared.ends[1]
    w: Vector = [0.0] * 6
    if second is not None:
        j = tree.link_of[second]
        w = [dot(row, motion.v[j]) for row in carried_rows(tree, motion.x, identity(6), i, j)]
    omega = v[:3]
    change = cross(w[:3], omega) + plus(cross(w[3:], omega), cross(w[:3], v[3:]))
    if not contact.in_world:
        return change
    u = minus(w, v)
    moved = minus(_point_velocity(contact, motion.x, v), v[3:])
    linear = plus(cross(omega, u[3:]), cross(u[:3], moved))
    return plus(change, cross(omega, u[:3]) + linear)


def _turning_of_sum(motion: ClusterMotion, shared: SharedRows, contact: ContactRows) -> Vector:
    """Return ω × of a weighted sum of twists, linear first; the axes of the first frame turn."""
    tree, x = motion.tree, motion.x
    total: Vector = [0.0] * 6
    for end, weight in zip(shared.ends, shared.weights, strict=True):
        if end is None:
            continue
        v, full = motion.v[tree.link_of[end]], replace(tree.contact[end], selection=identity(6))
        turn = transpose(contact.to_link)
        if end != contact.index:
            turn = rotation_to(tree, x, contact, end)
        twist = [dot(row, v) for row in turned_rows(full, turn)]
        total = plus(total, [weight * value for value in twist])
    omega = [dot(row, motion.v[tree.link_of[contact.index]]) for row in contact.motion[3:]]
    return cross(omega, total[:3]) + cross(omega, total[3:])


def _point_velocity(contact: ContactRows, x: Inputs, v: Vector) -> Vector:
    """Return the velocity of a contact's point in its link's axes."""
    if contact.moving is None:
        in_contact = [dot(row, v) for row in contact.motion[:3]]
        return [dot(row, in_contact) for row in contact.to_link]
    moving = contact.moving
    position = list(x["contact_positions"][moving.position : moving.position + 3])
    turned = transpose(matmul(moving.rotation, transpose([position])))[0]
    return plus(v[3:], cross(v[:3], plus(moving.origin, turned)))


def jacobian(problem: Problem, tree: Tree, x: Inputs) -> Matrix:
    """Return J (m, n), velocities → contact velocities."""
    J = jacobian_of_ends(problem, tree, x)
    J = summed(tree, J) if tree.rows else zeros(len(tree.sums), len(problem.velocities))
    return CentroidalRows(problem, tree, x).jacobian(J) if of_the_robot(problem) else J


def response(problem: Problem, tree: Tree, x: Inputs) -> Matrix:
    """Return M⁻¹Jᵀ (n, m): contact forces → accelerations.

    Column r is the articulated-body algorithm (Featherstone, Rigid Body Dynamics Algorithms,
    sec. 7.3) with a unit force in row r as the only load.
    """
    unit = UnitForces(problem, tree, x)
    result = unit.response
    if not tree.rows:
        result = zeros(len(problem.velocities), len(tree.sums))
    elif tree.sums:
        result = transpose(summed(tree, transpose(result)))
    if not of_the_robot(problem):
        return result
    return CentroidalRows(problem, tree, x).response(result, unit)
