"""C-RNEA and C-ABA: inverse and forward dynamics of robots with couplings and loops.

M. Chignoli, N. Adrian, S. Kim, P. Wensing, "Recursive Rigid-Body Dynamics Algorithms for Systems
with Kinematic Loops"; with one-joint clusters they are the recursive Newton-Euler and the
articulated-body algorithm (R. Featherstone, Rigid Body Dynamics Algorithms, 2008, ch. 5 and 7).
Joint rates are q̇ = E ẏ and joint accelerations q̈ = E ÿ + γ, γ = Ė ẏ, with the loop Jacobian E.
Everything is written over scalars, in the frames of :mod:`delassus_ros.rbda.tree`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from delassus_ros.contacts import Contact
from delassus_ros.errors import RobotError
from delassus_ros.model.clusters import Cluster, clusters_of, velocity_offsets
from delassus_ros.model.robot import WORLD, JointKind, Robot
from delassus_ros.problem import Problem, beside_base
from delassus_ros.rbda.cluster_propagation import ClusterPropagator
from delassus_ros.rbda.constraints import loop_bias, loop_jacobian
from delassus_ros.rbda.frames import Placed, built
from delassus_ros.rbda.outputs import force_on_body, motion_of_body
from delassus_ros.rbda.propagation import FreeBody, Propagator, propagator
from delassus_ros.rbda.rotors import spanning
from delassus_ros.rbda.spatial import JointTransform, SpatialInertia, cross_matrix
from delassus_ros.rbda.tree import Link, LinkCluster, Tree
from delassus_ros.scalars.functions import Matrix, Scalar, Vector, dot, transpose, zeros
from delassus_ros.scalars.ports import Inputs


def c_rnea(motion: ClusterMotion, x: Inputs) -> Vector:
    """Return the independent torques (ny,) [N·m, N] that a motion needs.

    Parameters
    ----------
    motion : of the robot.
    x : ``q`` (nq,) of the spanning tree, closed; ``rates`` ẏ and ``accelerations`` ÿ (ny,), of
        a floating base the spatial acceleration; ``gravity`` (3,) [m/s²] in the world's axes, of
        a floating base in those of its root link; ``wrenches`` (w, 6) on frames, if there are
        any, in their axes, linear first.
    """
    links, moving = motion.tree.links, motion.at(x)
    a: list[Vector] = []
    forces: list[Vector] = []
    for i, link in enumerate(links):
        a.append(_carried(link, moving, i, a, x["accelerations"]))
        inertia = SpatialInertia.of(link)
        forces.append(_plus(inertia.times(a[i]), moving.bias(i, inertia)))
    torques: Vector = [0.0] * motion.size
    for i in reversed(range(len(links))):
        link = links[i]
        if link.motion == "free":
            torques[:6] = force_on_body(link, forces[i])
            continue
        rate = moving.of_joint(i, x["accelerations"]) + moving.gamma[i]
        moving.add(torques, i, forces[i][link.freedom] + link.armature * rate)
        if link.parent != WORLD:
            moved = moving.transforms[i].force_to_parent(forces[i])
            forces[link.parent] = _plus(forces[link.parent], moved)
    return torques


def hybrid(motion: ClusterMotion, accelerated: frozenset[int], x: Inputs) -> Vector:
    """Return torques where accelerations are known, and accelerations where torques are (ny,).

    R. Featherstone, Rigid Body Dynamics Algorithms, 2008, section 9.2: the articulated-body
    algorithm in which joints of known acceleration carry all of what is beyond them.

    Parameters
    ----------
    motion : of the robot.
    accelerated : indices of independent rates whose accelerations are known; all of a cluster's
        or none, all of a floating base's or none.
    x : as for :func:`c_rnea`, with ``known`` (ny,) in place of ``accelerations``: accelerations
        of those, torques of the others.
    """
    ydd = c_aba(motion, {**x, "torques": x["known"]}, accelerated)
    torques = c_rnea(motion, {**x, "accelerations": ydd})
    return [torques[k] if k in accelerated else ydd[k] for k in range(motion.size)]


def c_aba(motion: ClusterMotion, x: Inputs, accelerated: frozenset[int] = frozenset()) -> Vector:
    """Return the independent accelerations ÿ (ny,) that torques cause.

    Parameters
    ----------
    motion : of the robot.
    x : as for :func:`c_rnea`, with ``torques`` (ny,) in place of ``accelerations``.
    accelerated : as for :func:`hybrid`; their accelerations stand in the place of their torques.

    Raises
    ------
    NumericalError
        On numbers, if the mass matrix is not positive definite there.
    """
    tree, moving = motion.tree, motion.at(x)
    H = [SpatialInertia.of(link) for link in tree.links]
    p = [moving.bias(i, inertia) for i, inertia in enumerate(H)]
    # Per joint, what its own torques and loads are to its acceleration: D⁻¹ u in a first form.
    passed: list[tuple[Propagator | ClusterPropagator | FreeBody | Carried, Vector]] = []
    for joint in reversed(tree.joints):
        i, link = joint.i, tree.links[joint.i]
        columns = motion.columns_of(i)
        if columns and accelerated.issuperset(columns):
            passed.append((Carried(joint.links), []))
            for k in reversed(joint.links):
                parent = tree.links[k].parent
                if link.motion == "free" or parent == WORLD:
                    continue
                rate = moving.of_joint(k, x["torques"])
                held = list(moving.c[k])
                held[tree.links[k].freedom] = held[tree.links[k].freedom] + rate
                f = _plus(p[k], H[k].times(held))
                H[parent] = H[parent] + moving.transforms[k].inertia_to_parent(H[k])
                p[parent] = _plus(p[parent], moving.transforms[k].force_to_parent(f))
            continue
        if link.motion == "free":
            passed.append((FreeBody(i, link, H[i]), []))
            continue
        # A cluster's propagator adds to H of links what they carry in the cluster.
        own_inertias = {k: H[k] for k in joint.links}
        passing = propagator(joint, tree, H, x)
        if isinstance(passing, Propagator):
            f = _plus(p[i], H[i].times(moving.c[i]))
            ((column, sign),) = moving.rows[i].items()
            u = sign * x["torques"][column] - f[link.freedom]
            passed.append((passing, [u * passing.D_inverse]))
            if link.parent != WORLD:
                through = [value + h * u for value, h in zip(f, passing.HSD, strict=True)]
                load = moving.transforms[i].force_to_parent(through)
        else:
            f, own = _held(motion, moving, passing, own_inertias, p)
            u_y = [x["torques"][k] - value for k, value in zip(columns, own, strict=True)]
            load, z = passing.loads_to_parent(f, u_y)
            passed.append((passing, z))
        if joint.parent != WORLD:
            H[joint.parent] = H[joint.parent] + passing.inertia_to_parent()
            p[joint.parent] = _plus(p[joint.parent], load)
    return _accelerations(motion, moving, passed, p, x)


def _held(
    motion: ClusterMotion,
    moving: Moving,
    cluster: ClusterPropagator,
    H: dict[int, SpatialInertia],
    p: list[Vector],
) -> tuple[Vector, Vector]:
    """Return force on the carrier and independent torques of a cluster held at ÿ = 0, a = 0."""
    links = motion.tree.links
    a: dict[int, Vector] = {}
    for i in reversed(cluster.links):
        a[i] = list(moving.c[i])
        if links[i].parent in a:
            above = cluster.transforms[i].motion_to_child(a[links[i].parent])
            a[i] = _plus(above, a[i])
    forces = {i: _plus(p[i], H[i].times(a[i])) for i in cluster.links}
    total: Vector = [0.0] * 6
    torques: dict[int, Scalar] = {}
    for i in cluster.links:
        link, f = links[i], forces[i]
        torques[i] = f[link.freedom] + link.armature * moving.gamma[i]
        if link.parent == WORLD:
            continue
        f = cluster.transforms[i].force_to_parent(f)
        if link.parent == cluster.parent:
            total = _plus(total, f)
        else:
            forces[link.parent] = _plus(forces[link.parent], f)
    in_order = [torques[i] for i in reversed(cluster.links)]
    return total, [dot(in_order, column) for column in transpose(cluster.E)]


def _accelerations(
    motion: ClusterMotion,
    moving: Moving,
    passed: list[tuple[Propagator | ClusterPropagator | FreeBody | Carried, Vector]],
    p: list[Vector],
    x: Inputs,
) -> Vector:
    """Return ÿ by the last sweep of the articulated-body algorithm, from the roots."""
    links = motion.tree.links
    found: Vector = [0.0] * motion.size
    a: list[Vector] = [[] for _ in links]
    for joint, z in reversed(passed):
        i, link = joint.i, links[joint.i]
        if isinstance(joint, Carried):
            for column in motion.columns_of(i):
                found[column] = x["torques"][column]
            for k in joint.links:
                a[k] = _carried(links[k], moving, k, a, x["torques"])
            continue
        if isinstance(joint, FreeBody):
            wrench = force_of_link(link, base_of(x["torques"]))
            a[i] = joint.solve([w - f for w, f in zip(wrench, p[i], strict=True)])
            found[:6] = motion_of_body(link, a[i])
            continue
        above = [0.0] * 6 if joint.parent == WORLD else a[joint.parent]
        if isinstance(joint, Propagator):
            moved = moving.transforms[i].motion_to_child(above)
            rate = z[0] - dot(joint.HSD, moved)
            moving.add(found, i, rate)
            a[i] = _plus(moved, moving.c[i])
            a[i][joint.S] = a[i][joint.S] + rate
            continue
        rates = joint.independent(above, z)
        for column, value in zip(motion.columns[i], rates, strict=True):
            found[column] = value
        for k, row in zip(reversed(joint.links), joint.E, strict=True):
            carrier = links[k].parent
            carried = above if carrier == joint.parent else a[carrier]
            a[k] = _plus(moving.transforms[k].motion_to_child(carried), moving.c[k])
            freedom = links[k].freedom
            a[k][freedom] = a[k][freedom] + dot(row, rates)
    return found


@dataclass(frozen=True)
class Carried:
    """A joint of known acceleration, which carries what is beyond it as a rigid one does.

    Attributes
    ----------
    links : what it moves, parents first.
    """

    links: tuple[int, ...]

    @property
    def i(self) -> int:
        """The first of its links."""
        return self.links[0]


def _carried(
    link: Link, moving: Moving, i: int, a: Sequence[Vector], accelerations: Sequence[Scalar]
) -> Vector:
    """Return the acceleration of link i by those of its parent and its joint."""
    if link.motion == "free":
        return motion_of_link(link, base_of(accelerations))
    own = list(moving.c[i])
    if link.parent != WORLD:
        own = _plus(moving.transforms[i].motion_to_child(a[link.parent]), own)
    own[link.freedom] = own[link.freedom] + moving.of_joint(i, accelerations)
    return own


def external_forces(tree: Tree, x: Inputs) -> dict[int, Vector]:
    """Return the external forces on links, by link: those of the input ``wrenches``."""
    found: dict[int, Vector] = {}
    for i, link in enumerate(tree.links):
        for index, K in link.wrenches:
            given = list(x["wrenches"][6 * index : 6 * index + 6])
            force = [dot(column, given) for column in transpose(K)]
            found[i] = _plus(found[i], force) if i in found else force
    return found


def _plus(u: Vector, v: Vector) -> Vector:
    return [a + b for a, b in zip(u, v, strict=True)]


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
    external : forces on links, of those that have some.
    """

    transforms: list[JointTransform]
    rows: list[dict[int, Scalar]]
    gamma: list[Scalar]
    v: list[Vector]
    c: list[Vector]
    g: list[Vector]
    external: dict[int, Vector]

    def bias(self, i: int, inertia: SpatialInertia) -> Vector:
        """Return v ×* H v − H g − f, the force on link i without acceleration."""
        v, momentum = self.v[i], inertia.times(self.v[i])
        turning = _crossed(v[:3], momentum[:3])
        moving = _crossed(v[3:], momentum[3:])
        moment = [a + b for a, b in zip(turning, moving, strict=True)]
        weight = inertia.times(self.g[i])
        bias = moment + _crossed(v[:3], momentum[3:])
        found = [b - w for b, w in zip(bias, weight, strict=True)]
        if i not in self.external:
            return found
        return [b - f for b, f in zip(found, self.external[i], strict=True)]

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
    wrenches : names of frames that external wrenches act on.
    regrouped : as for :func:`delassus_ros.rbda.frames.built`.

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
        If a joint inside the tree is floating, or on the world beside a floating base; names it.
        If no frame is on a body that moves.
    ProblemError
        If there is no such frame, it is named twice, or it does not move.
    """

    def __init__(
        self, robot: Robot, wrenches: Sequence[str] = (), regrouped: bool = True
    ) -> None:
        for joint in robot.joints:
            if joint.kind is JointKind.FLOATING:
                raise RobotError(
                    f"joint {joint.name!r} is floating inside the tree, where dynamics are not "
                    "defined; make it the robot's base"
                )
        beside = beside_base(robot)
        if beside is not None:
            raise RobotError(
                f"joint {beside!r} is on the world beside the floating base, in whose axes "
                "gravity is given; take that tree apart by Robot.subtree, or outputs of a Problem "
                "with axes='world'"
            )
        moved = next((frame for frame in robot.frames.values() if frame.body != WORLD), None)
        if moved is None:
            raise RobotError(
                f"robot {robot.name!r} has no frame on a body that moves, which dynamics need: "
                "give it one"
                if robot.bodies
                else f"robot {robot.name!r} has no body that moves"
            )
        # A problem has a contact; which one makes no difference.
        any_contact = [Contact("any", moved.name, "point")]
        problem = Problem(spanning(robot).robot, any_contact, wrenches=wrenches)
        tree, placed = built(problem, regrouped)
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

    def columns_of(self, i: int) -> list[int]:
        """Return the indices of the independent rates of the joint whose first link is i."""
        if self.tree.links[i].motion == "free":
            return list(range(6))
        return self.columns[i] if i in self.columns else list(self._rows[i])

    @cached_property
    def columns_by_joint(self) -> dict[str, list[int]]:
        """Indices of the independent rates of each joint of :attr:`joints`."""
        first = velocity_offsets(self._robot)
        joints = {i: self._robot.joints[i] for i in first}
        return {
            joint.name: list(range(first[i], first[i] + joint.kind.nv))
            for i, joint in joints.items()
        }

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
            external_forces(self.tree, x),
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
        gamma = loop_bias(self._robot, cluster, x["q"], rates)
        return [self.tree.links[i].sign * g for i, g in zip(closed.links, gamma, strict=True)]


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
