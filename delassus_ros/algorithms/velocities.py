"""The velocities that J and M⁻¹Jᵀ are about, and what links' rates are in them.

They are the independent ones: of an open chain all joints', of a closed robot those of its
clusters' independent joints. The tree of links may lack some of their bodies (rotors whose inertia
is counted with others), so that both directions need the loop Jacobian E.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from delassus_ros.algorithms.base import Inputs
from delassus_ros.algorithms.constraints import loop_jacobian
from delassus_ros.algorithms.generic import constants, specific_constants
from delassus_ros.algorithms.rotors import clean, independent_links
from delassus_ros.algorithms.scalars import Matrix, Scalar, dot
from delassus_ros.algorithms.tree import Tree
from delassus_ros.model.clusters import Cluster, clusters_of, velocity_offsets
from delassus_ros.problem import Problem


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
