"""∂G/∂y in closed form: rank eight per joint.

G is the stationary value of Gauss's principle, so that the derivative along a joint is that of the
constraints a_i = X_i a_p + S_i q̈_i alone. With accelerations A_i (6, m) of link i and forces
F_i (6, m) that its joint transmits, per unit force in each row of G,

    ∂G/∂q_i = F_iᵀ (S_i×) A_i + transpose,   F_i = Hᴬ_i A_i − Kᴬ_iᵀ

(S_i× S_i = 0, so that A_i stands for X_i A_p(i)). S× has four entries for a revolute joint and two
for a prismatic one: rank 8 or 4. In world axes the rows turn with their link: ∂K/∂q A and its
transpose are added. In a loop q̇ = E ẏ:

    ∂G/∂y_c = Σ_i E_ic ∂G/∂q_i − (τᵀ (∂E/∂y_c) Ÿ + transpose)

with the torques τ (links, m) that the loop transmits at its joints, and ÿ per unit force, Ÿ.
Quantities are in the frames of :mod:`delassus.rbda.tree`; forces there are those of the tree's
inertias, which give the same G.
"""

from __future__ import annotations

from collections.abc import Iterator

from delassus.model.robot import WORLD
from delassus.problem import Problem
from delassus.rbda.cluster_propagation import ClusterPropagator
from delassus.rbda.propagation import FreeBody, Propagator
from delassus.rbda.spatial import SpatialInertia, contact_rows
from delassus.rbda.tangents import with_all_slopes
from delassus.rbda.tree import Link, Tree, rows_of
from delassus.rbda.unit_forces import UnitForces
from delassus.rbda.velocities import Velocities
from delassus.scalars.duals import Dual
from delassus.scalars.functions import Matrix, Scalar, Vector, dot, is_zero, zeros
from delassus.scalars.ports import Inputs
from delassus.scalars.steps import blocks, step

Row = dict[int, Vector]
"""Vectors by row of G."""


def matrix_derivatives(problem: Problem, tree: Tree, x: Inputs, unit: UnitForces) -> list[Matrix]:
    """Return ∂G/∂y (n, m, m), one symmetric matrix per independent velocity.

    Parameters
    ----------
    unit : accelerations per unit force in each row.
    """
    velocities, m = Velocities(problem, tree), tree.rows
    found = [zeros(m, m) for _ in problem.velocities]
    factors = velocities.rows(x)
    for joint in unit.joints:
        if isinstance(joint, FreeBody):
            continue
        if isinstance(joint, Propagator):
            rows = {r: row for r, row in unit.rows[joint.i]}
            forces = {joint.i: _forces(joint.H, tree.links[joint.i], unit, joint.i, rows)}
        else:
            forces = _forces_in_cluster(joint, tree, unit)
        for i, F in forces.items():
            _add_joint(found, tree.links[i], F, unit.accelerations[i], factors[i])
        if isinstance(joint, ClusterPropagator):
            _add_loop(problem, found, joint, tree, x, unit, velocities, forces)
    if problem.axes == "world" or tree.shared:
        _add_turning_rows(problem, found, tree, x, unit)
    return found


def _forces(H: SpatialInertia, link: Link, unit: UnitForces, i: int, rows: Row) -> Row:
    """Return F_i by row of G; only the entries that S× needs are computed."""
    lines, needed = H.matrix(), [k for k, _, _ in _cross(link)]
    found: Row = {}
    for r, a in unit.accelerations[i].items():
        force: Vector = [0.0] * 6
        for k in needed:
            force[k] = dot(lines[k], a)
            if r in rows:
                force[k] = force[k] - rows[r][k]
        found[r] = force
    return found


def _forces_in_cluster(joint: ClusterPropagator, tree: Tree, unit: UnitForces) -> dict[int, Row]:
    """Return F_i by link and row of G of the links of a cluster."""
    forces: dict[int, Row] = {}
    for i in joint.links:  # children first
        rows = dict(unit.rows[i])
        lines = joint.H[i].matrix()
        forces[i] = {}
        for r, a in unit.accelerations[i].items():
            force = [dot(line, a) for line in lines]
            if r in rows:
                force = [f - k for f, k in zip(force, rows[r], strict=True)]
            forces[i][r] = force
    for i in joint.links:
        link = tree.links[i]
        if link.parent not in forces:
            continue
        for r, force in forces[i].items():
            moved = joint.transforms[i].force_to_parent(force)
            rate = unit.rates[r].get(i, 0.0)
            moved = [f + c * rate for f, c in zip(moved, (*link.couple, 0, 0, 0), strict=True)]
            above = forces[link.parent]
            above[r] = [f + g for f, g in zip(above[r], moved, strict=True)]
    return forces


def _cross(link: Link) -> Iterator[tuple[int, int, float]]:
    """Yield (row, column, sign) of the entries of S×, for a unit direction S."""
    a, b = (link.axis + 1) % 3, (link.axis + 2) % 3
    # e × v has entries −v_b at a and v_a at b.
    if link.motion == "revolute":
        yield from ((a, b, -1.0), (b, a, 1.0))
        yield from ((3 + a, 3 + b, -1.0), (3 + b, 3 + a, 1.0))
    else:
        yield from ((3 + a, b, -1.0), (3 + b, a, 1.0))


def _add_joint(
    found: list[Matrix], link: Link, F: Row, A: Row, factors: dict[int, Scalar]
) -> None:
    """Add the factor of each velocity times Fᵀ (S×) A and its transpose."""
    entries = list(_cross(link))
    numbers = sorted(A)
    left = [[F[r][k] for k, _, _ in entries] for r in numbers]
    right = [[sign * A[r][k] for _, k, sign in entries] for r in numbers]
    cuts = blocks(len(numbers))
    for number, rows in enumerate(cuts):
        for columns in cuts[number:]:
            block = _products(left[rows], right[rows], left[columns], right[columns])
            for i, r in enumerate(numbers[rows]):
                for j, s in enumerate(numbers[columns]):
                    if s < r:
                        continue
                    for c, factor in factors.items():
                        value = found[c][r][s] + factor * block[i][j]
                        found[c][r][s] = found[c][s][r] = value


@step
def _products(F: Matrix, P: Matrix, other_F: Matrix, other_P: Matrix) -> Matrix:
    """Return F P'ᵀ + P F'ᵀ for the rows F, P and F', P'."""
    return [
        [dot(f, q) + dot(p, g) for g, q in zip(other_F, other_P, strict=True)]
        for f, p in zip(F, P, strict=True)
    ]


def _add_loop(
    problem: Problem,
    found: list[Matrix],
    joint: ClusterPropagator,
    tree: Tree,
    x: Inputs,
    unit: UnitForces,
    velocities: Velocities,
    forces: dict[int, Row],
) -> None:
    """Add the part of a loop whose E changes with the configuration."""
    n = len(problem.velocities)
    curved = velocities.rows(with_all_slopes(problem, x))
    links = [
        i for i in joint.links
        if any(isinstance(v, Dual) and not all(map(is_zero, v.slopes)) for v in curved[i].values())
    ]  # fmt: skip
    if not links:
        return
    torques = _torques(joint, tree, unit, forces)
    numbers = sorted(unit.accelerations[joint.i])
    for c in range(n):
        # ∂E/∂y_c Ÿ of each joint, by row of G.
        for i in links:
            slopes = {
                k: v.slopes[c]
                for k, v in curved[i].items()
                if isinstance(v, Dual) and not is_zero(v.slopes[c])
            }
            if not slopes:
                continue
            changed = {
                r: dot(list(slopes.values()), [unit.response[k][r] for k in slopes])
                for r in numbers
            }
            for r in numbers:
                for s in numbers:
                    if s < r:
                        continue
                    part = torques[i][r] * changed[s] + torques[i][s] * changed[r]
                    found[c][r][s] = found[c][s][r] = found[c][r][s] - part


def _torques(
    joint: ClusterPropagator, tree: Tree, unit: UnitForces, forces: dict[int, Row]
) -> dict[int, dict[int, Scalar]]:
    """Return the torques that the loop transmits, by link and row of G."""
    in_order = list(reversed(joint.links))
    cluster = next(c for c in tree.clusters if c.links[0] == joint.i)
    found: dict[int, dict[int, Scalar]] = {}
    for i, between in zip(in_order, cluster.armature, strict=True):
        link = tree.links[i]
        found[i] = {}
        for r, force in forces[i].items():
            rates = [unit.rates[r].get(k, 0.0) for k in in_order]
            torque = force[link.freedom] + link.armature * unit.rates[r].get(i, 0.0)
            torque = torque + dot(list(between), rates)
            if link.parent != WORLD and r in unit.accelerations[link.parent]:
                above = unit.accelerations[link.parent][r]
                torque = torque + dot(list(link.couple), above[:3])
            found[i][r] = torque
    return found


def _add_turning_rows(
    problem: Problem, found: list[Matrix], tree: Tree, x: Inputs, unit: UnitForces
) -> None:
    """Add ∂K/∂y A and its transpose: rows in world axes and of several frames depend on q."""
    rows = contact_rows(problem, tree, with_all_slopes(problem, x))
    for i, link in enumerate(tree.links):
        for contact in link.contacts:
            for r, row in zip(rows_of(contact), rows[contact.index], strict=True):
                for c in range(len(found)):
                    slopes = [k.slopes[c] if isinstance(k, Dual) else 0.0 for k in row]
                    if all(map(is_zero, slopes)):
                        continue
                    for s, a in unit.accelerations[i].items():
                        part = dot(slopes, a)
                        found[c][r][s] = found[c][r][s] + part
                        found[c][s][r] = found[c][s][r] + part
