"""The independent velocities ẏ of a problem: their columns, their relation to a tree's joints.

Columns are in model order: one per revolute or prismatic joint, ẋ, ẏ, θ̇ of a planar one, and the
twist of a floating base in its body axes, linear first, as in Pinocchio. With couplings or loops
the columns belong to the clusters' independent joints, q̇ = E ẏ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from delassus.model.clusters import Cluster, clusters_of, velocity_offsets
from delassus.problem import Problem
from delassus.rbda.constraints import loop_bias, loop_jacobian
from delassus.rbda.rotors import clean, independent_links
from delassus.rbda.spatial import cross
from delassus.rbda.tree import Link, Tree
from delassus.rbda.unknown_constants import constants, specific_constants
from delassus.scalars.functions import Matrix, Scalar, Vector, dot, plus, transpose
from delassus.scalars.ports import Inputs


class Velocities:
    """The columns of the independent velocities, for a tree of the problem.

    Attributes
    ----------
    columns : per link, the columns that affect the link's joint; six for a free body.
    first : per free body the column of its twist, linear first.
    single : per link of an ordinary joint the column of its velocity.
    shared : per cluster of several joints the columns of its independent joints.
    """

    def __init__(self, problem: Problem, tree: Tree) -> None:
        robot = self._robot = problem.robot
        self._signs = [link.sign for link in tree.links]
        self.columns: list[list[int]] = [[] for _ in tree.links]
        self.first: dict[int, int] = {}
        self.single: dict[int, int] = {}
        self._closed: list[tuple[Cluster, list[int]]] = []
        offsets = velocity_offsets(robot)
        self._links: dict[str, list[int]] = {}
        for i, link in enumerate(tree.links):
            self._links.setdefault(link.name, []).append(i)
        for cluster in clusters_of(robot):
            columns = [offsets[joint] for joint in cluster.independent]
            if not cluster.is_ordinary:
                self._closed.append((cluster, columns))
                for joint in cluster.joints:
                    for i in self._links_of(joint):
                        self.columns[i] = columns
                continue
            for k, i in enumerate(self._links_of(cluster.joints[0]), columns[0]):
                if tree.links[i].motion == "free":
                    self.first[i], self.columns[i] = k, list(range(k, k + 6))
                else:
                    self.single[i], self.columns[i] = k, [k]
        # Per joint of a cluster: the link whose rate is the joint's rate.
        unfelt = {i for cluster in tree.clusters if not cluster.freedoms for i in cluster.links}
        self._link_of = {
            joint: i
            for cluster, _ in self._closed
            for joint in cluster.joints
            for i in self._links_of(joint)
            if i not in unfelt
        }

    @property
    def shared(self) -> list[list[int]]:
        """Per cluster of several joints the columns of its independent joints."""
        return [columns for _, columns in self._closed]

    @property
    def varying(self) -> list[int]:
        """Columns of clusters whose E depends on the configuration."""
        return [k for cluster, own in self._closed if not cluster.is_constant for k in own]

    def _links_of(self, joint: int) -> Sequence[int]:
        return self._links.get(self._robot.joints[joint].name, ())

    def rows(self, x: Inputs) -> list[dict[int, Scalar]]:
        """Return per link the joint's rate along its coordinate axis, as factors of ẏ by column.

        Free bodies have no entries.
        """
        rows: list[dict[int, Scalar]] = [{} for _ in self._signs]
        for i, k in self.single.items():
            rows[i] = {k: self._signs[i]}
        for cluster, columns in self._closed:
            E = loop_jacobian(cluster, x["q"])
            for joint, row in zip(cluster.joints, E, strict=True):
                for i in self._links_of(joint):
                    rows[i] = {k: self._signs[i] * e for k, e in zip(columns, row, strict=True)}
        return rows

    def biases(self, x: Inputs) -> Vector:
        """Return γ = Ė ẏ of the links' joints at positions and ``rates``."""
        gamma: Vector = [0.0] * len(self._signs)
        for cluster, columns in self._closed:
            if cluster.is_constant:
                continue
            rates = [x["rates"][k] for k in columns]
            values = loop_bias(cluster, x["q"], rates)
            for joint, value in zip(cluster.joints, values, strict=True):
                if joint in self._link_of:
                    i = self._link_of[joint]
                    gamma[i] = self._signs[i] * value
        return gamma

    def of_clusters(self, rates: Mapping[int, Scalar]) -> dict[int, Scalar]:
        """Return the velocities (or accelerations) of clusters by column, from link rates.

        Parameters
        ----------
        rates : rates by link; missing links have rate zero.
        """
        found: dict[int, Scalar] = {}
        for cluster, columns in self._closed:
            present = [joint for joint in cluster.joints if joint in self._link_of]
            if not any(self._link_of[joint] in rates for joint in present):
                continue
            by_joint = {
                joint: rates.get(i, 0.0) * self._signs[i]
                for joint, i in ((joint, self._link_of[joint]) for joint in present)
            }
            if by_joint.keys() >= set(cluster.independent):
                values = [by_joint[joint] for joint in cluster.independent]
            else:
                chosen, inverse = self._inverse(cluster, present)
                values = [dot(row, [by_joint[joint] for joint in chosen]) for row in inverse]
            found.update(zip(columns, values, strict=True))
        return found

    def _inverse(self, cluster: Cluster, present: list[int]) -> tuple[list[int], Matrix]:
        """Return a choice of present joints, and the matrix: their rates → independent rates.

        Only constant clusters can lack joints.
        """
        with specific_constants():
            E = loop_jacobian(cluster, self._robot.neutral().tolist())
        ratios = {joint: np.array(row) for joint, row in zip(cluster.joints, E, strict=True)}
        chosen = independent_links(ratios, present)
        inverse = np.linalg.inv(np.array([ratios[joint] for joint in chosen]))
        rows = [clean(row).tolist() for row in inverse]
        return chosen, constants((self._robot, cluster, "inverse"))(rows)


def motion_of_link(link: Link, twist: Vector) -> Vector:
    """Return a twist (or acceleration) of a free body at its link, angular first.

    Parameters
    ----------
    twist : twist of the body's frame in the body's axes, linear first.
    """
    linear, angular = twist[:3], twist[3:]
    at_origin = plus(linear, cross(angular, list(link.origin)))
    return _to_link(link, angular) + _to_link(link, at_origin)


def force_of_link(link: Link, wrench: Vector) -> Vector:
    """Return a wrench on a free body at its link, angular first; see :func:`motion_of_link`."""
    force, moment = wrench[:3], wrench[3:]
    shift = cross(list(link.origin), force)
    about_origin = [m - s for m, s in zip(moment, shift, strict=True)]
    return _to_link(link, about_origin) + _to_link(link, force)


def motion_of_body(link: Link, a: Vector) -> Vector:
    """Return a free link's acceleration at its body's frame, linear first."""
    angular, linear = _to_body(link, a[:3]), _to_body(link, a[3:])
    return plus(linear, cross(list(link.origin), angular)) + angular


def force_on_body(link: Link, f: Vector) -> Vector:
    """Return a force (or row) of a free link at its body's frame, linear first."""
    moment, force = _to_body(link, f[:3]), _to_body(link, f[3:])
    return force + plus(moment, cross(list(link.origin), force))


def _to_link(link: Link, v: Vector) -> Vector:
    """Return a vector of a free link's body in the link's axes."""
    return v if link.axes is None else [dot(column, v) for column in transpose(link.axes)]


def _to_body(link: Link, v: Vector) -> Vector:
    """Return a vector of a free link in its body's axes."""
    return v if link.axes is None else [dot(row, v) for row in link.axes]
