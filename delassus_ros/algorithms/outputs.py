"""Outputs besides G, from the same state: the contact Jacobian J and M⁻¹Jᵀ.

They do not depend on how G is computed, so every traced algorithm has them; sub-expressions
that they share with G are computed once. Columns of J and rows of M⁻¹Jᵀ are the velocities of
the robot's joints in model order: one per revolute or prismatic joint, ẋ, ẏ, θ̇ of a planar one,
and the twist of a floating base in its own axes, linear first, as in Pinocchio.
"""

from __future__ import annotations

from delassus_ros.algorithms.base import Inputs, Outputs, TracedAlgorithm
from delassus_ros.algorithms.propagation import FreeBody, Propagator, articulated_bodies
from delassus_ros.algorithms.scalars import Matrix, Vector, dot, matmul, transpose, zeros
from delassus_ros.algorithms.spatial import JointTransform, contact_rows, cross_matrix
from delassus_ros.algorithms.tree import Link, Tree, rows_of
from delassus_ros.model.robot import WORLD
from delassus_ros.problem import Problem


def evaluate(problem: Problem, algorithm: TracedAlgorithm, x: Inputs) -> Outputs:
    """Return all outputs of a problem: G by the algorithm, the others as here."""
    results = dict(algorithm.evaluate(problem, x))
    for port in problem.outputs:
        if port.name not in results and port.name in _SHARED:
            results[port.name] = _SHARED[port.name](problem, x)
    return results


def jacobian(problem: Problem, x: Inputs) -> Matrix:
    """Return J (m, nv): velocities → contact velocities, by the rows' way to the root."""
    tree = Tree.of(problem)
    K = contact_rows(problem, x)
    columns = velocity_columns(tree)
    J = zeros(tree.rows, problem.robot.nv)
    # Per link: row of G and the row itself, at that link.
    arriving: list[list[tuple[int, Vector]]] = [
        [pair for c in link.contacts for pair in zip(rows_of(c), K[c.index], strict=True)]
        for link in tree.links
    ]
    for i in reversed(range(len(tree.links))):
        link = tree.links[i]
        if not arriving[i]:
            continue
        if link.motion == "free":
            for r, row in arriving[i]:
                J[r][columns[i] : columns[i] + 6] = force_on_body(link, row)
            continue
        joint = JointTransform(link, x)
        for r, row in arriving[i]:
            J[r][columns[i]] = row[link.freedom] * link.sign
        if link.parent != WORLD:
            arriving[link.parent] += [(r, joint.force_to_parent(row)) for r, row in arriving[i]]
    return J


def response(problem: Problem, x: Inputs) -> Matrix:
    """Return M⁻¹Jᵀ (nv, m): contact forces → joint accelerations.

    Column r is the articulated-body algorithm (Featherstone, Rigid Body Dynamics Algorithms,
    sec. 7.3) with a unit force in row r as the only load.
    """
    tree = Tree.of(problem)
    K = contact_rows(problem, x)
    columns = velocity_columns(tree)
    arriving: list[list[tuple[int, Vector]]] = [
        [pair for c in link.contacts for pair in zip(rows_of(c), K[c.index], strict=True)]
        for link in tree.links
    ]
    joints: list[Propagator | FreeBody] = []
    pushed: list[dict[int, object]] = [{} for _ in tree.links]  # K S D⁻¹ of each row
    for joint in articulated_bodies(tree, x):
        joints.append(joint)
        if isinstance(joint, FreeBody) or not arriving[joint.i]:
            continue
        numbers = [r for r, _ in arriving[joint.i]]
        moved, _, KSD = joint.to_parent([row for _, row in arriving[joint.i]], joint.i)
        pushed[joint.i] = dict(zip(numbers, (ksd for (ksd,) in KSD), strict=True))
        if joint.parent != WORLD:
            arriving[joint.parent] += zip(numbers, moved, strict=True)
    result = zeros(problem.robot.nv, tree.rows)
    # Accelerations of the links per row; a row that does not reach a tree leaves it at rest.
    acceleration: list[dict[int, Vector]] = [{} for _ in tree.links]
    for joint in reversed(joints):
        i, first = joint.i, columns[joint.i]
        if isinstance(joint, FreeBody):
            for r, row in arriving[i]:
                acceleration[i][r] = joint.solve(row)
                own = motion_of_body(tree.links[i], acceleration[i][r])
                for k in range(6):
                    result[first + k][r] = own[k]
            continue
        above = acceleration[joint.parent] if joint.parent != WORLD else {}
        transform = JointTransform(tree.links[i], x)
        for r in sorted({*above, *pushed[i]}):
            a = transform.motion_to_child(above[r]) if r in above else [0.0] * 6
            rate = pushed[i].get(r, 0.0) - dot(joint.HSD, a)
            a[joint.S] = a[joint.S] + rate
            acceleration[i][r] = a
            result[first][r] = rate * tree.links[i].sign
    return result


def velocity_columns(tree: Tree) -> list[int]:
    """Return the index of each link's first velocity."""
    columns, count = [], 0
    for link in tree.links:
        columns.append(count)
        count += 6 if link.motion == "free" else 1
    return columns


def force_on_body(link: Link, f: Vector) -> Vector:
    """Return a force (or row) of a free link at its body's frame, linear first."""
    moment, force = f[:3], f[3:]
    if link.axes is not None:
        moment, force = (_rotated(link.axes, v) for v in (moment, force))
    p = cross_matrix(list(link.origin))
    return force + [m + dot(row, force) for m, row in zip(moment, p, strict=True)]


def motion_of_body(link: Link, a: Vector) -> Vector:
    """Return a free link's acceleration at its body's frame, linear first."""
    angular, linear = a[:3], a[3:]
    if link.axes is not None:
        angular, linear = (_rotated(link.axes, v) for v in (angular, linear))
    p = cross_matrix(list(link.origin))
    return [v + dot(row, angular) for v, row in zip(linear, p, strict=True)] + angular


def _rotated(rotation: Matrix, v: Vector) -> Vector:
    return transpose(matmul(rotation, transpose([v])))[0]


_SHARED = {"J": jacobian, "MinvJT": response}
