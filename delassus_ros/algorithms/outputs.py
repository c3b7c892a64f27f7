"""Outputs besides G, from the same state: the contact Jacobian J and M⁻¹Jᵀ.

They do not depend on how G is computed, so every traced algorithm has them; sub-expressions
that they share with G are computed once. Columns of J and rows of M⁻¹Jᵀ are the independent
velocities of the robot in model order: one per revolute or prismatic joint, ẋ, ẏ, θ̇ of a planar
one, and the twist of a floating base in its own axes, linear first, as in Pinocchio. With
couplings or loops, q̇ = E ẏ, they are J E and (Eᵀ M E)⁻¹ Eᵀ Jᵀ of the spanning tree's J and M.
"""

from __future__ import annotations

from collections.abc import Mapping

from delassus_ros.algorithms.base import Inputs, Outputs, TracedAlgorithm
from delassus_ros.algorithms.cluster_propagation import ClusterPropagator
from delassus_ros.algorithms.propagation import FreeBody, Propagator, articulated_joints
from delassus_ros.algorithms.scalars import Matrix, Scalar, Vector, dot, matmul, transpose, zeros
from delassus_ros.algorithms.spatial import JointTransform, contact_rows, cross_matrix
from delassus_ros.algorithms.tree import Link, Tree, rows_of
from delassus_ros.algorithms.velocities import Velocities
from delassus_ros.arguments import shown
from delassus_ros.errors import CompilerError
from delassus_ros.model.robot import WORLD
from delassus_ros.problem import Problem


def evaluate(problem: Problem, algorithm: TracedAlgorithm, x: Inputs) -> Outputs:
    """Return all outputs of a problem: G by the algorithm, the others as here.

    Raises
    ------
    CompilerError
        If the algorithm returns something else than outputs by name; names it.
    """
    own = algorithm.evaluate(problem, x)
    if not isinstance(own, Mapping):
        raise CompilerError(
            f"algorithm {algorithm.name!r} returned {shown(own)}; expected outputs by name: write "
            "{'G': rows}"
        )
    results = dict(own)
    for port in problem.outputs:
        if port.name not in results and port.name in _SHARED:
            results[port.name] = _SHARED[port.name](problem, x)
    return results


def jacobian(problem: Problem, x: Inputs) -> Matrix:
    """Return J (m, n): velocities → contact velocities, by the rows' way to the root."""
    tree = Tree.of(problem)
    velocities = Velocities(problem, tree, x)
    J = zeros(tree.rows, len(problem.velocities))
    # Per link: row of G and the row itself, at that link.
    arriving = _own_rows(problem, tree, x)
    for i in reversed(range(len(tree.links))):
        link = tree.links[i]
        if not arriving[i]:
            continue
        if link.motion == "free":
            first = velocities.first[i]
            for r, row in arriving[i]:
                J[r][first : first + 6] = force_on_body(link, row)
            continue
        joint = JointTransform(link, x)
        for r, row in arriving[i]:
            for k, factor in velocities.rows[i].items():
                J[r][k] = J[r][k] + row[link.freedom] * factor
        if link.parent != WORLD:
            arriving[link.parent] += [(r, joint.force_to_parent(row)) for r, row in arriving[i]]
    return J


def response(problem: Problem, x: Inputs) -> Matrix:
    """Return M⁻¹Jᵀ (n, m): contact forces → accelerations.

    Column r is the articulated-body algorithm (Featherstone, Rigid Body Dynamics Algorithms,
    sec. 7.3) with a unit force in row r as the only load.
    """
    tree = Tree.of(problem)
    velocities = Velocities(problem, tree, x)
    arriving = _own_rows(problem, tree, x)
    joints: list[Propagator | ClusterPropagator | FreeBody] = []
    pushed: list[dict[int, Vector]] = [{} for _ in tree.links]  # K S D⁻¹ of each row
    for joint in articulated_joints(tree, x):
        joints.append(joint)
        for i in joint.links:
            if isinstance(joint, FreeBody) or not arriving[i]:
                continue
            numbers = [r for r, _ in arriving[i]]
            moved, _, KSD = joint.to_parent([row for _, row in arriving[i]], i)
            pushed[joint.i].update(zip(numbers, KSD, strict=True))
            if joint.parent != WORLD:
                arriving[joint.parent] += zip(numbers, moved, strict=True)
    result = zeros(len(problem.velocities), tree.rows)
    # Per row of G, and accelerations of the links; a row that does not reach a tree leaves it at
    # rest.
    rates: list[dict[int, Scalar]] = [{} for _ in range(tree.rows)]
    acceleration: list[dict[int, Vector]] = [{} for _ in tree.links]
    for joint in reversed(joints):
        i = joint.i
        if isinstance(joint, FreeBody):
            for r, row in arriving[i]:
                acceleration[i][r] = joint.solve(row)
                own = motion_of_body(tree.links[i], acceleration[i][r])
                for k in range(6):
                    result[velocities.first[i] + k][r] = own[k]
            continue
        above = acceleration[joint.parent] if joint.parent != WORLD else {}
        for r in sorted({*above, *pushed[i]}):
            a = above.get(r, [0.0] * 6)
            if isinstance(joint, ClusterPropagator):
                z = pushed[i].get(r, [0.0] * joint.freedoms)
                rates[r].update(joint.rates(a, z))
                for link, b in joint.accelerations(a, z).items():
                    acceleration[link][r] = b
                continue
            b = JointTransform(tree.links[i], x).motion_to_child(a)
            rates[r][i] = pushed[i].get(r, [0.0])[0] - dot(joint.HSD, b)
            b[joint.S] = b[joint.S] + rates[r][i]
            acceleration[i][r] = b
    for r, of_links in enumerate(rates):
        for k, value in velocities.of_links(of_links).items():
            result[k][r] = value
    return result


def _own_rows(problem: Problem, tree: Tree, x: Inputs) -> list[list[tuple[int, Vector]]]:
    """Return per link the rows of its contacts: their numbers in G, and themselves."""
    K = contact_rows(problem, x)
    return [
        [pair for c in link.contacts for pair in zip(rows_of(c), K[c.index], strict=True)]
        for link in tree.links
    ]


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
