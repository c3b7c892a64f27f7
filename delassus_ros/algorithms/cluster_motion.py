"""Positions and rates of a closed robot: what inverse and forward dynamics have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from delassus_ros.algorithms.base import Inputs
from delassus_ros.algorithms.constraints import loop_jacobian
from delassus_ros.algorithms.duals import Dual
from delassus_ros.algorithms.frames import Placed, built
from delassus_ros.algorithms.rotors import spanning
from delassus_ros.algorithms.scalars import Matrix, Scalar, Vector, dot, transpose, zeros
from delassus_ros.algorithms.spatial import JointTransform, SpatialInertia, cross_matrix
from delassus_ros.algorithms.tree import Link, LinkCluster, Tree
from delassus_ros.contacts import Contact
from delassus_ros.errors import RobotError
from delassus_ros.model.clusters import Cluster, clusters_of, velocity_offsets
from delassus_ros.model.robot import WORLD, JointKind, Robot
from delassus_ros.problem import Problem


@dataclass(frozen=True, eq=False)
class Moving:
    """The links at given positions and rates.

    Attributes
    ----------
    transforms : between each link and its parent.
    rows : per link its joint's rate along its coordinate axis, as factors of the independent
        rates ẏ by their index.
    gamma : per link γ = Ė ẏ of its joint.
    v : velocities.
    c : accelerations that joints give the links while ÿ = 0 and the parents are at rest.
    g : acceleration of gravity.
    """

    transforms: list[JointTransform]
    rows: list[dict[int, Scalar]]
    gamma: list[Scalar]
    v: list[Vector]
    c: list[Vector]
    g: list[Vector]

    def bias(self, i: int, inertia: SpatialInertia) -> Vector:
        """Return v ×* H v − H g, the force on link i without acceleration."""
        v, momentum = self.v[i], inertia.times(self.v[i])
        turning = _crossed(v[:3], momentum[:3])
        moving = _crossed(v[3:], momentum[3:])
        moment = [a + b for a, b in zip(turning, moving, strict=True)]
        weight = inertia.times(self.g[i])
        bias = moment + _crossed(v[:3], momentum[3:])
        return [b - w for b, w in zip(bias, weight, strict=True)]

    def of_joint(self, i: int, independent: Sequence[Scalar]) -> Scalar:
        """Return what link i's joint has of independent rates or accelerations."""
        return dot(list(self.rows[i].values()), [independent[k] for k in self.rows[i]])

    def add(self, independent: Vector, i: int, torque: Scalar) -> None:
        """Add what a torque of link i's joint is in independent torques."""
        for k, factor in self.rows[i].items():
            independent[k] = independent[k] + factor * torque


class ClusterMotion:
    """A robot's spanning tree with its clusters, and the numbering of independent rates.

    Parameters
    ----------
    robot : any robot without floating joints inside the tree.

    Attributes
    ----------
    tree : links and clusters.
    joints : names of the joints with independent rates, in the order of these: model order. A
        planar joint has three (ẋ, ẏ, θ̇), a floating base six: the root link's twist in its own
        axes, linear first.
    size : number ny of independent rates.
    columns : per cluster, by its first link, the indices of its independent rates.

    Raises
    ------
    RobotError
        If a joint inside the tree is floating; names it. If no frame is on a body that moves.
    """

    def __init__(self, robot: Robot) -> None:
        for joint in robot.joints:
            if joint.kind is JointKind.FLOATING:
                raise RobotError(
                    f"joint {joint.name!r} is floating inside the tree, where dynamics are not "
                    "defined; make it the robot's base"
                )
        moved = next((frame for frame in robot.frames.values() if frame.body != WORLD), None)
        if moved is None:
            raise RobotError(
                f"robot {robot.name!r} has no frame on a body that moves, which dynamics need: "
                "give it one" if robot.bodies else f"robot {robot.name!r} has no body that moves"
            )
        # A problem has a contact; which one makes no difference.
        tree, placed = built(Problem(spanning(robot).robot, [Contact("any", moved.name, "point")]))
        first = velocity_offsets(robot)
        self._robot = robot
        self.size = sum(robot.joints[i].kind.nv for i in first)
        self.joints = tuple(robot.joints[i].name for i in first)
        self.columns: dict[int, list[int]] = {}
        self._rows: list[dict[int, Scalar]] = [{} for _ in tree.links]
        self._closed: list[tuple[Cluster, LinkCluster]] = []
        for cluster in clusters_of(robot):
            if cluster.is_ordinary:
                self._number(cluster.joints[0], first, placed, tree)
                continue
            closed = self._closed_links(cluster, placed, tree)
            self._closed.append((cluster, closed))
            self.columns[closed.links[0]] = [first[i] for i in cluster.independent]
        self.tree = Tree(tree.links, 0, tuple(closed for _, closed in self._closed))

    def _number(self, i: int, first: dict[int, int], placed: Placed, tree: Tree) -> None:
        """Set the rows of the links of an ordinary joint, of a planar one three."""
        joint, last = self._robot.joints[i], placed[i][0]
        if joint.kind is JointKind.ROOT:
            return
        for step in range(joint.kind.nv):
            link = last - joint.kind.nv + 1 + step
            self._rows[link] = {first[i] + step: tree.links[link].sign}

    def _closed_links(self, cluster: Cluster, placed: Placed, tree: Tree) -> LinkCluster:
        indices = tuple(placed[i][0] for i in cluster.joints)
        signs = [tree.links[i].sign for i in indices]

        def jacobian(x: Inputs) -> Matrix:
            E = loop_jacobian(self._robot, cluster, x["q"])
            return [[sign * e for e in row] for sign, row in zip(signs, E, strict=True)]

        parent = placed[cluster.parent][0]
        none = zeros(len(indices), len(indices))
        return LinkCluster(indices, parent, len(cluster.independent), jacobian, none)

    def at(self, x: Inputs) -> Moving:
        """Return the links at ``q``, ``rates`` and ``gravity``; see :mod:`cluster_dynamics`."""
        links = self.tree.links
        moving = Moving(
            [JointTransform(link, x) for link in links],
            [dict(row) for row in self._rows],
            [0.0] * len(links),
            [[0.0] * 6 for _ in links],
            [[0.0] * 6 for _ in links],
            [[0.0] * 6 for _ in links],
        )
        still = [0.0, 0.0, 0.0]
        for cluster, closed in self._closed:
            columns = self.columns[closed.links[0]]
            for i, row in zip(closed.links, closed.jacobian_at(x), strict=True):
                moving.rows[i] = dict(zip(columns, row, strict=True))
            if not cluster.is_constant:
                for i, gamma in zip(closed.links, self._bias(cluster, closed, x), strict=True):
                    moving.gamma[i] = gamma
        for i, link in enumerate(links):
            if link.motion == "free":
                moving.v[i] = motion_of_link(link, base_of(x["rates"]))
                moving.g[i] = motion_of_link(link, [*x["gravity"], *still])
                continue
            above = [*still, *x["gravity"]]
            if link.parent != WORLD:
                moving.v[i] = moving.transforms[i].motion_to_child(moving.v[link.parent])
                above = moving.g[link.parent]
            moving.g[i] = moving.transforms[i].motion_to_child(above)
            rate, v, c = moving.of_joint(i, x["rates"]), moving.v[i], moving.c[i]
            v[link.freedom] = v[link.freedom] + rate
            axis = [rate if k == link.axis else 0.0 for k in range(3)]
            if link.motion == "revolute":
                c[:3], c[3:] = _crossed(v[:3], axis), _crossed(v[3:], axis)
            else:
                c[3:] = _crossed(v[:3], axis)
            c[link.freedom] = c[link.freedom] + moving.gamma[i]
        return moving

    def _bias(self, cluster: Cluster, closed: LinkCluster, x: Inputs) -> Vector:
        """Return γ = Ė ẏ: the derivative of E ẏ in the direction in which q moves."""
        rates = [x["rates"][k] for k in self.columns[closed.links[0]]]
        q = list(x["q"])
        rows = loop_jacobian(self._robot, cluster, q)
        for joint, row in zip(cluster.joints, rows, strict=True):
            position = self._robot.q_offsets[joint]
            q[position] = Dual(q[position], [dot(row, rates)])
        found = []
        for i, row in zip(closed.links, loop_jacobian(self._robot, cluster, q), strict=True):
            slopes = [e.slopes[0] if isinstance(e, Dual) else 0.0 for e in row]
            found.append(self.tree.links[i].sign * dot(slopes, rates))
        return found


def base_of(independent: Sequence[Scalar]) -> Vector:
    """Return the part of a floating base: it is the first joint."""
    return list(independent[:6])


def motion_of_link(link: Link, twist: Vector) -> Vector:
    """Return a twist (or acceleration) of a floating base in its link: angular first.

    Parameters
    ----------
    twist : of the root link in its own axes, linear first.
    """
    linear, angular = twist[:3], twist[3:]
    at_origin = [v + w for v, w in zip(linear, _crossed(angular, list(link.origin)), strict=True)]
    return _turned(link, angular) + _turned(link, at_origin)


def force_of_link(link: Link, wrench: Vector) -> Vector:
    """Return a wrench on a floating base in its link; as for :func:`motion_of_link`."""
    force, moment = wrench[:3], wrench[3:]
    shift = _crossed(list(link.origin), force)
    about_origin = [m - s for m, s in zip(moment, shift, strict=True)]
    return _turned(link, about_origin) + _turned(link, force)


def _turned(link: Link, v: Vector) -> Vector:
    """Return a vector of a free link's body in the link's axes."""
    return v if link.axes is None else [dot(column, v) for column in transpose(link.axes)]


def _crossed(u: Vector, v: Vector) -> Vector:
    return [dot(row, v) for row in cross_matrix(u)]
