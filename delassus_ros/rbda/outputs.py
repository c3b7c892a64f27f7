"""Outputs besides G, from the same state: the contact Jacobian J and M⁻¹Jᵀ.

They do not depend on how G is computed, so every traced algorithm has them; sub-expressions
that they share with G are computed once. Columns of J and rows of M⁻¹Jᵀ are the independent
velocities of the robot in model order: one per revolute or prismatic joint, ẋ, ẏ, θ̇ of a planar
one, and the twist of a floating base in its own axes, linear first, as in Pinocchio. With
couplings or loops, q̇ = E ẏ, they are J E and (Eᵀ M E)⁻¹ Eᵀ Jᵀ of the spanning tree's J and M.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import numpy as np

from delassus_ros.model.clusters import Cluster, clusters_of, velocity_offsets
from delassus_ros.model.robot import WORLD
from delassus_ros.problem import Problem
from delassus_ros.rbda.cluster_propagation import ClusterPropagator
from delassus_ros.rbda.constraints import loop_bias, loop_jacobian
from delassus_ros.rbda.propagation import FreeBody, Propagator, articulated_joints
from delassus_ros.rbda.rotors import clean, independent_links
from delassus_ros.rbda.spatial import JointTransform, contact_rows, cross_matrix
from delassus_ros.rbda.tree import Link, Tree, rows_of
from delassus_ros.rbda.unknown_constants import constants, specific_constants
from delassus_ros.scalars.functions import Matrix, Scalar, Vector, dot, matmul, transpose, zeros
from delassus_ros.scalars.ports import Inputs
from delassus_ros.scalars.steps import blocks, step


def jacobian(problem: Problem, tree: Tree, x: Inputs) -> Matrix:
    """Return J (m, n): velocities → contact velocities, by the rows' way to the root."""
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
        indices, factors = list(velocities.rows[i]), list(velocities.rows[i].values())
        joint, moves = JointTransform(link, x), link.parent != WORLD
        for block in blocks(len(arriving[i])):
            numbers = [r for r, _ in arriving[i][block]]
            rows = [row for _, row in arriving[i][block]]
            entries, moved = _felt(joint, rows, link.freedom, factors, moves)
            for r, values in zip(numbers, entries, strict=True):
                for k, value in zip(indices, values, strict=True):
                    J[r][k] = J[r][k] + value
            if moves:
                arriving[link.parent] += zip(numbers, moved, strict=True)
    return J


def response(problem: Problem, tree: Tree, x: Inputs) -> Matrix:
    """Return M⁻¹Jᵀ (n, m): contact forces → accelerations.

    Column r is the articulated-body algorithm (Featherstone, Rigid Body Dynamics Algorithms,
    sec. 7.3) with a unit force in row r as the only load.
    """
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
    # Per row of G: rates of links in clusters. Per link: its accelerations by row of G; a row that
    # does not reach a tree leaves it at rest.
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
        if isinstance(joint, ClusterPropagator):
            for r in sorted({*above, *pushed[i]}):
                a, z = above.get(r, [0.0] * 6), pushed[i].get(r, [0.0] * joint.freedoms)
                rates[r].update(joint.rates(a, z))
                for link, b in joint.accelerations(a, z).items():
                    acceleration[link][r] = b
            continue
        transform, index = JointTransform(tree.links[i], x), velocities.single.get(i)
        sign = 1.0 if index is None else tree.links[i].sign
        for rows in _alike(above, pushed[i]):
            A = [above.get(r, [0.0] * 6) for r in rows]
            KSD = [pushed[i].get(r, [0.0])[0] for r in rows]
            own, B = _driven(transform, A, KSD, joint.HSD, joint.S, sign)
            acceleration[i].update(zip(rows, B, strict=True))
            for r, rate in zip(rows, own, strict=True):
                if index is None:
                    rates[r][i] = rate
                else:
                    result[index][r] = rate
    for r, of_links in enumerate(rates):
        for k, value in velocities.of_clusters(of_links).items():
            result[k][r] = value
    return result


@step
def _felt(
    transform: JointTransform, rows: Matrix, S: int, factors: Vector, moves: bool
) -> tuple[Matrix, Matrix]:
    """Return rows' entries in J, for factors of velocities in a joint's rate, and at the parent.

    Parameters
    ----------
    moves : whether there is a parent.
    """
    entries = [[row[S] * factor for factor in factors] for row in rows]
    return entries, [transform.force_to_parent(row) for row in rows if moves]


@step
def _driven(
    transform: JointTransform, A: Matrix, KSD: Vector, HSD: Vector, S: int, sign: float
) -> tuple[Vector, Matrix]:
    """Return rates of a joint, times `sign`, and accelerations of its link, by row of G.

    Parameters
    ----------
    A : (rows, 6) accelerations of the parent.
    KSD : (rows,) K S D⁻¹; see :class:`~delassus_ros.rbda.propagation.Propagator`.
    HSD : (6,) H S D⁻¹.
    """
    rates: Vector = []
    B: Matrix = []
    for a, ksd in zip(A, KSD, strict=True):
        b = transform.motion_to_child(a)
        rate = ksd - dot(HSD, b)
        b[S] = b[S] + rate
        rates.append(rate * sign)
        B.append(b)
    return rates, B


def _alike(above: Collection[int], pushed: Collection[int]) -> Iterator[list[int]]:
    """Return the rows of both, in blocks of those that are in both, or in the same one."""
    for numbers in (
        [r for r in above if r in pushed],
        [r for r in above if r not in pushed],
        [r for r in pushed if r not in above],
    ):
        for block in blocks(len(numbers)):
            yield numbers[block]


def _own_rows(problem: Problem, tree: Tree, x: Inputs) -> list[list[tuple[int, Vector]]]:
    """Return per link the rows of its contacts: their numbers in G, and themselves."""
    K = contact_rows(problem, tree, x)
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


class Velocities:
    """The numbering of the velocities, for a tree of the problem.

    Attributes
    ----------
    rows : per link of the tree its joint's rate along its coordinate axis, as factors of the
        velocities by their index; none for free links.
    first : per free link the index of its body's twist, linear first.
    single : per link of an ordinary joint the index of its velocity.
    """

    def __init__(self, problem: Problem, tree: Tree, x: Inputs) -> None:
        robot = self._robot = problem.robot
        self._signs = [link.sign for link in tree.links]
        self.rows: list[dict[int, Scalar]] = [{} for _ in tree.links]
        self.first: dict[int, int] = {}
        self.single: dict[int, int] = {}
        self._closed: list[tuple[Cluster, list[int]]] = []
        offsets = velocity_offsets(robot)
        links: dict[str, list[int]] = {}
        for i, link in enumerate(tree.links):
            links.setdefault(link.name, []).append(i)
        for cluster in clusters_of(robot):
            columns = [offsets[joint] for joint in cluster.independent]
            if cluster.is_ordinary:
                for k, i in enumerate(links[robot.joints[cluster.joints[0]].name], columns[0]):
                    if tree.links[i].motion == "free":
                        self.first[i] = k
                    else:
                        self.single[i], self.rows[i] = k, {k: self._signs[i]}
                continue
            self._closed.append((cluster, columns))
            E = loop_jacobian(robot, cluster, x["q"])
            for joint, row in zip(cluster.joints, E, strict=True):
                for i in links.get(robot.joints[joint].name, ()):
                    self.rows[i] = {
                        k: self._signs[i] * e for k, e in zip(columns, row, strict=True)
                    }
        # Per joint of a cluster the link whose rate says what the joint's is.
        unfelt = {i for cluster in tree.clusters if not cluster.freedoms for i in cluster.links}
        self._link_of = {
            joint: i
            for cluster, _ in self._closed
            for joint in cluster.joints
            for i in links.get(robot.joints[joint].name, ())
            if i not in unfelt
        }

    def biases(self, x: Inputs) -> dict[int, Scalar]:
        """Return γ = Ė ẏ of links' joints, where it is not zero, at positions and ``rates``."""
        found: dict[int, Scalar] = {}
        for cluster, columns in self._closed:
            if cluster.is_constant:
                continue
            rates = [x["rates"][k] for k in columns]
            gamma = loop_bias(self._robot, cluster, x["q"], rates)
            for joint, value in zip(cluster.joints, gamma, strict=True):
                if joint in self._link_of:
                    i = self._link_of[joint]
                    found[i] = self._signs[i] * value
        return found

    def of_clusters(self, rates: Mapping[int, Scalar]) -> dict[int, Scalar]:
        """Return clusters' velocities (or accelerations) by index, from rates of their links.

        Parameters
        ----------
        rates : by link; what is missing is zero.
        """
        found: dict[int, Scalar] = {}
        for cluster, columns in self._closed:
            present = [joint for joint in cluster.joints if joint in self._link_of]
            if not any(self._link_of[joint] in rates for joint in present):
                continue
            own = {
                joint: rates.get(i, 0.0) * self._signs[i]
                for joint, i in ((joint, self._link_of[joint]) for joint in present)
            }
            if own.keys() >= set(cluster.independent):
                values = [own[joint] for joint in cluster.independent]
            else:
                chosen, inverse = self._inverse(cluster, present)
                values = [dot(row, [own[joint] for joint in chosen]) for row in inverse]
            found.update(zip(columns, values, strict=True))
        return found

    def _inverse(self, cluster: Cluster, present: list[int]) -> tuple[list[int], Matrix]:
        """Return joints among those present, and what takes their rates to the independent ones.

        Only a constant cluster has lost joints.
        """
        with specific_constants():
            E = loop_jacobian(self._robot, cluster, self._robot.neutral().tolist())
        ratios = {joint: np.array(row) for joint, row in zip(cluster.joints, E, strict=True)}
        chosen = independent_links(ratios, present)
        inverse = np.linalg.inv(np.array([ratios[joint] for joint in chosen]))
        rows = [clean(row).tolist() for row in inverse]
        return chosen, constants((self._robot, cluster, "inverse"))(rows)
