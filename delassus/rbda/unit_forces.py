"""A tree at rest under a unit force in each row of G: accelerations, by two sweeps."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from delassus.errors import AlgorithmError
from delassus.model.robot import WORLD
from delassus.problem import Problem
from delassus.rbda.cluster_propagation import ClusterPropagator
from delassus.rbda.propagation import FreeBody, JointPropagator, articulated_joints
from delassus.rbda.spatial import JointTransform, contact_rows
from delassus.rbda.tree import Tree, rows_of
from delassus.rbda.velocities import Velocities, motion_of_body
from delassus.scalars.functions import Matrix, Scalar, Vector, dot, zeros
from delassus.scalars.ports import Inputs
from delassus.scalars.steps import blocks, step


class UnitForces:
    """A tree at rest under a unit force in each row of G.

    Attributes
    ----------
    joints : propagators, children first.
    rows : per link the rows Kᴬ of its contacts and of those beyond, as (number in G, row).
    accelerations : per link, by row of G; a row of another tree causes no acceleration.
    rates : per row of G the accelerations of joints by link, of joints in clusters.
    response : M⁻¹Jᵀ (n, m).
    """

    def __init__(self, problem: Problem, tree: Tree, x: Inputs) -> None:
        self._tree, self._x = tree, x
        self._velocities = velocities = Velocities(problem, tree)
        self.rows = arriving = rows_at_links(problem, tree, x)
        self.joints = joints = list[JointPropagator]()
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
        self.response = result = zeros(len(problem.velocities), tree.rows)
        self.rates = rates = [dict[int, Scalar]() for _ in range(tree.rows)]
        self.accelerations = acceleration = [dict[int, Vector]() for _ in tree.links]
        for joint in reversed(joints):
            i = joint.i
            if isinstance(joint, FreeBody):
                for r, row in arriving[i]:
                    acceleration[i][r] = joint.solve(row)
                    twist = motion_of_body(tree.links[i], acceleration[i][r])
                    for k in range(6):
                        result[velocities.first[i] + k][r] = twist[k]
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
                joint_rates, B = _driven(transform, A, KSD, joint.HSD, joint.S, sign)
                acceleration[i].update(zip(rows, B, strict=True))
                for r, rate in zip(rows, joint_rates, strict=True):
                    if index is None:
                        rates[r][i] = rate
                    else:
                        result[index][r] = rate
        for r, of_links in enumerate(rates):
            for k, value in velocities.of_clusters(of_links).items():
                result[k][r] = value

    def response_to_ground(self) -> Matrix:
        """Return M⁻¹Fᵀ (n, 6), with F the momentum of the robot per velocity, linear first.

        Column k is the acceleration of the joints, with no torque, while the world accelerates by
        −1 along k.
        """
        order, velocities = (3, 4, 5, 0, 1, 2), self._velocities
        result = zeros(len(self.response), 6)
        ground = [[-1.0 if k == entry else 0.0 for k in range(6)] for entry in order]
        acceleration: dict[int, Matrix] = {WORLD: ground}
        in_clusters: list[dict[int, Scalar]] = [{} for _ in order]
        for joint in reversed(self.joints):
            i, link = joint.i, self._tree.links[joint.i]
            if isinstance(joint, FreeBody):
                raise AlgorithmError(f"joint {link.name!r} is free on a fixed base")
            above = acceleration[joint.parent]
            if isinstance(joint, ClusterPropagator):
                Z = zeros(len(order), joint.freedoms)
                if joint.parent == WORLD:
                    Z = joint.z_of_ground(self._tree, above)
                for k, (a, z) in enumerate(zip(above, Z, strict=True)):
                    in_clusters[k].update(joint.rates(a, z))
                    for moved, value in joint.accelerations(a, z).items():
                        acceleration.setdefault(moved, []).append(value)
                continue
            rates, acceleration[i] = _driven(
                JointTransform(link, self._x), above, [0.0] * 6, joint.HSD, joint.S, link.sign
            )
            result[velocities.single[i]] = rates
        for k, of_links in enumerate(in_clusters):
            for column, value in velocities.of_clusters(of_links).items():
                result[column][k] = value
        return result


@step
def _driven(
    transform: JointTransform, A: Matrix, KSD: Vector, HSD: Vector, S: int, sign: float
) -> tuple[Vector, Matrix]:
    """Return by row of G the rates of a joint, times `sign`, and the accelerations of its link.

    Parameters
    ----------
    A : (rows, 6) accelerations of the parent.
    KSD : (rows,) K S D⁻¹; see :class:`~delassus.rbda.propagation.Propagator`.
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
    """Yield blocks of rows: those in both collections, those in `above`, those in `pushed`."""
    for numbers in (
        [r for r in above if r in pushed],
        [r for r in above if r not in pushed],
        [r for r in pushed if r not in above],
    ):
        for block in blocks(len(numbers)):
            yield numbers[block]


def rows_at_links(problem: Problem, tree: Tree, x: Inputs) -> list[list[tuple[int, Vector]]]:
    """Return per link the rows of its contacts as (number in G, row)."""
    K = contact_rows(problem, tree, x)
    return [
        [pair for c in link.contacts for pair in zip(rows_of(c), K[c.index], strict=True)]
        for link in tree.links
    ]
