"""Outputs that depend on rates and torques: h, J̇q̇ and the free contact acceleration a⁰.

The articulated-body algorithm and the recursive Newton-Euler algorithm (R. Featherstone, Rigid
Body Dynamics Algorithms, 2008, ch. 5 and 7) with couplings and loops as clusters (C-ABA and
C-RNEA), on the tree that G is computed on: articulated inertias, propagators and velocities are
the same expressions, computed once. a⁰ costs O(n + m) beside them: accelerations of links go down
the tree, and the contacts' rows take theirs.

The derivative of rows. With contact axes it is that of the components in these axes, d/dt (J ẏ),
which J̇ ẏ + J ÿ is in every case; the material acceleration of the contact point is larger by
ω × v. With world axes both are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property

from delassus_ros.model.robot import WORLD
from delassus_ros.outputs import OUTPUTS
from delassus_ros.problem import Problem
from delassus_ros.rbda.cluster_propagation import ClusterPropagator
from delassus_ros.rbda.dynamics import external_forces, force_of_link, motion_of_link
from delassus_ros.rbda.joint_space import mass_matrix
from delassus_ros.rbda.outputs import (
    Velocities,
    force_on_body,
    jacobian,
    motion_of_body,
    response,
)
from delassus_ros.rbda.propagation import FreeBody, Propagator, articulated_joints
from delassus_ros.rbda.spatial import (
    JointTransform,
    RigidInertia,
    SpatialInertia,
    contact_rows,
    cross_matrix,
    world_rotations,
)
from delassus_ros.rbda.tree import ContactRows, Link, Tree, rows_of
from delassus_ros.scalars.functions import Matrix, Scalar, Vector, dot, matmul, transpose
from delassus_ros.scalars.ports import Inputs, Outputs
from delassus_ros.scalars.steps import step


def bias_forces(motion: Motion) -> Vector:
    """Return h (n,): the torques C ẏ + g that a motion without acceleration needs."""
    problem, tree, x = motion.problem, motion.tree, motion.x
    armature = _cluster_armature(tree, motion.gamma)
    forces = [
        _inertia_force(link, v, a, g)
        for link, v, a, g in zip(tree.links, motion.v, motion.bias, motion.gravity, strict=True)
    ]
    for i, force in external_forces(tree, x).items():
        forces[i] = [f - e for f, e in zip(forces[i], force, strict=True)]
    h: Vector = [0.0] * len(problem.velocities)
    for i in reversed(range(len(tree.links))):
        link, f = tree.links[i], forces[i]
        if link.motion == "free":
            for k, value in enumerate(force_on_body(link, f), start=motion.velocities.first[i]):
                h[k] = h[k] + value
            continue
        gamma = motion.gamma.get(i, 0.0)
        torque = f[link.freedom] + link.armature * gamma + armature.get(i, 0.0)
        if link.parent != WORLD:
            above = motion.bias[link.parent]
            torque = torque + dot(list(link.couple), above[:3])
            moved = motion.transforms[i].force_to_parent(f)
            forces[link.parent] = _plus(forces[link.parent], moved)
            forces[link.parent] = _plus(forces[link.parent], motion.spin(i, gamma))
        for k, factor in motion.velocities.rows[i].items():
            h[k] = h[k] + factor * torque
    return h


def bias_accelerations(motion: Motion) -> Vector:
    """Return J̇ ẏ (m,): the accelerations of contacts while the velocities stay as they are."""
    return _of_contacts(motion, motion.bias)


def free_accelerations(motion: Motion) -> Vector:
    """Return a⁰ (m,): the accelerations of contacts under the torques, without contact forces."""
    return _of_contacts(motion, motion.free[0])


def free_joint_accelerations(motion: Motion) -> Vector:
    """Return ÿ (n,) under the torques, without contact forces."""
    return motion.free[1]


def _free(motion: Motion) -> tuple[list[Vector], Vector]:
    """Return accelerations of links, and ÿ, without contact forces.

    A sweep of the articulated-body algorithm, whose articulated inertias are those of G.
    """
    problem, tree, x, gravity = motion.problem, motion.tree, motion.x, motion.gravity
    rest = [0.0] * 3
    # Accelerations less that of gravity, as if the ground were accelerated upwards.
    ground = rest + [-g for g in x["gravity"]]
    p = [_gyroscopic(link, v) for link, v in zip(tree.links, motion.v, strict=True)]
    for i, link in enumerate(tree.links):
        if link.parent != WORLD and link.motion != "free":
            p[link.parent] = _plus(p[link.parent], motion.spin(i, 0.0))
    for i, force in external_forces(tree, x).items():
        p[i] = [f - e for f, e in zip(p[i], force, strict=True)]
    torques = list(x["torques"])
    for cluster in tree.clusters:
        if cluster.freedoms:
            continue
        # Rotors whose spin is counted with what they turn; what is left of one that is not round
        # is felt there, too.
        for i in cluster.links:
            felt = p[i][tree.links[i].freedom]
            for k, factor in motion.velocities.rows[i].items():
                torques[k] = torques[k] - factor * felt
    joints: list[tuple[Propagator | ClusterPropagator | FreeBody, Vector]] = []
    for joint in articulated_joints(tree, x):
        i = joint.i
        if isinstance(joint, FreeBody):
            joints.append((joint, []))
            continue
        if isinstance(joint, Propagator):
            u, load = _driven_load(
                motion.transforms[i], joint.H, joint.HSD, joint.S, p[i], motion.c[i],
                motion.torque(torques, i),
            )  # fmt: skip
            joints.append((joint, [u * joint.D_inverse]))
        else:
            f, own = _held(tree, motion, joint, p, ground)
            applied = motion.torques_of_cluster(torques, joint)
            u_y = [torque - value for torque, value in zip(applied, own, strict=True)]
            load, z = joint.loads_to_parent(f, u_y)
            joints.append((joint, z))
        if joint.parent != WORLD:
            p[joint.parent] = _plus(p[joint.parent], load)
    a: list[Vector] = [[] for _ in tree.links]
    found: Vector = [0.0] * len(problem.velocities)
    coupled: dict[int, Scalar] = {}
    for joint, z in reversed(joints):
        i = joint.i
        if isinstance(joint, FreeBody):
            wrench = force_of_link(tree.links[i], motion.base_wrench(torques, i))
            a[i] = joint.solve([w - f for w, f in zip(wrench, p[i], strict=True)])
            own = motion_of_body(tree.links[i], _plus(a[i], rest + gravity[i]))
            for k, value in enumerate(own, start=motion.velocities.first[i]):
                found[k] = value
            continue
        above = ground if joint.parent == WORLD else a[joint.parent]
        if isinstance(joint, Propagator):
            rate, a[i] = _accelerated(
                motion.transforms[i], above, motion.c[i], joint.HSD, joint.S, z[0]
            )
            if i in motion.velocities.single:
                found[motion.velocities.single[i]] = tree.links[i].sign * rate
            else:
                coupled[i] = rate
            continue
        rates = joint.rates(above, z)
        coupled.update(rates)
        for k in reversed(joint.links):
            carrier = tree.links[k].parent
            carried = above if carrier == joint.parent else a[carrier]
            a[k] = _plus(motion.transforms[k].motion_to_child(carried), motion.c[k])
            freedom = tree.links[k].freedom
            a[k][freedom] = a[k][freedom] + rates[k]
    for k, value in motion.velocities.of_clusters(coupled).items():
        found[k] = value
    return [_plus(each, rest + g) for each, g in zip(a, gravity, strict=True)], found


FORMULAS: dict[str, Callable[..., Matrix | Vector]] = {
    "J": jacobian,
    "JdotV": bias_accelerations,
    "M": mass_matrix,
    "MinvJT": response,
    "a0": free_accelerations,
    "h": bias_forces,
    "qdd0": free_joint_accelerations,
}
"""The outputs of a kernel besides G: functions of a :class:`Motion` if the table of outputs says
that they need rates, otherwise of problem, tree and inputs."""


def secondary_outputs(problem: Problem, tree: Tree, x: Inputs, names: Iterable[str]) -> Outputs:
    """Return outputs besides G by name.

    Parameters
    ----------
    tree : the tree of the problem.
    """
    found: Outputs = {}
    motion: Motion | None = None
    for name in names:
        if "rates" in OUTPUTS[name].needs:
            motion = motion or Motion(problem, tree, x)
            found[name] = FORMULAS[name](motion)
        else:
            found[name] = FORMULAS[name](problem, tree, x)
    return found


class Motion:
    """The links of a problem's tree at positions and rates.

    Attributes
    ----------
    problem, tree, x : of which.
    velocities : the numbering of the independent velocities.
    transforms : between each link and its parent.
    rate : per link that of its joint, along its coordinate axis.
    gamma : γ = Ė ẏ of joints, by link, where it is not zero.
    v : velocities of the links.
    c : accelerations that joints give the links while ÿ = 0 and the parents are at rest.
    bias : accelerations of the links while ÿ = 0.
    """

    def __init__(self, problem: Problem, tree: Tree, x: Inputs) -> None:
        self.problem, self.tree, self.x = problem, tree, x
        self.velocities = Velocities(problem, tree, x)
        self.gamma = self.velocities.biases(x)
        self.transforms = [JointTransform(link, x) for link in tree.links]
        self.rate: list[Scalar] = []
        self.v: list[Vector] = []
        self.c: list[Vector] = []
        self.bias: list[Vector] = []
        rest = [0.0] * 6
        for i, link in enumerate(tree.links):
            if link.motion == "free":
                first = self.velocities.first[i]
                self.rate.append(0.0)
                self.v.append(motion_of_link(link, list(x["rates"][first : first + 6])))
                self.c.append(list(rest))
                self.bias.append(list(rest))
                continue
            row = self.velocities.rows[i]
            rate = dot(list(row.values()), [x["rates"][k] for k in row])
            above, carried = rest, rest
            if link.parent != WORLD:
                above, carried = self.v[link.parent], self.bias[link.parent]
            v, c, bias = _moved(
                self.transforms[i], above, carried, rate, self.gamma.get(i, 0.0), link.axis,
                link.motion == "revolute",
            )  # fmt: skip
            self.rate.append(rate)
            self.v.append(v)
            self.c.append(c)
            self.bias.append(bias)

    @cached_property
    def gravity(self) -> list[Vector]:
        """Return the acceleration of gravity (3,) per link, in its axes."""
        return _gravity(self)

    @cached_property
    def free(self) -> tuple[list[Vector], Vector]:
        """Return accelerations of links, and ÿ, without contact forces."""
        return _free(self)

    def spin(self, i: int, acceleration: Scalar) -> Vector:
        """Return the force on the parent of link i by the spin that is left of a rotor there.

        Its angular momentum, ``couple`` times the joint's rate, turns with the parent.

        Parameters
        ----------
        acceleration : of the joint.
        """
        link = self.tree.links[i]
        couple = list(link.couple)
        turning = _crossed(self.v[link.parent][:3], [k * self.rate[i] for k in couple])
        return [t + k * acceleration for t, k in zip(turning, couple, strict=True)] + [0.0] * 3

    def torque(self, torques: Vector, i: int) -> Scalar:
        """Return the torque at link i's own joint of the independent torques."""
        if i in self.velocities.single:
            return self.tree.links[i].sign * torques[self.velocities.single[i]]
        factors = self.velocities.of_clusters({i: 1.0})
        return dot(list(factors.values()), [torques[k] for k in factors])

    def torques_of_cluster(self, torques: Vector, joint: ClusterPropagator) -> Vector:
        """Return the torques at a cluster's own independent rates of the independent torques."""
        found = []
        for column in transpose(joint.E):
            rates = dict(zip(reversed(joint.links), column, strict=True))
            factors = self.velocities.of_clusters(rates)
            found.append(dot(list(factors.values()), [torques[k] for k in factors]))
        return found

    def base_wrench(self, torques: Vector, i: int) -> Vector:
        """Return the torques of a floating base: the wrench on its root link, linear first."""
        first = self.velocities.first[i]
        return torques[first : first + 6]


def _gravity(motion: Motion) -> list[Vector]:
    tree, x = motion.tree, motion.x
    ground = list(x["gravity"])
    found: list[Vector] = []
    rotations = world_rotations(tree, x) if "base_orientation" in x else {}
    for i, link in enumerate(tree.links):
        if link.motion != "free":
            above = ground if link.parent == WORLD else found[link.parent]
            found.append(motion.transforms[i].motion_to_child([0.0] * 3 + above)[3:])
        elif i in rotations:
            found.append([dot(column, ground) for column in transpose(rotations[i])])
        else:
            found.append(motion_of_link(link, ground + [0.0] * 3)[3:])
    return found


def _of_contacts(motion: Motion, a: list[Vector]) -> Vector:
    """Return the derivatives of the contacts' rows at accelerations of links."""
    problem, tree, x, v = motion.problem, motion.tree, motion.x, motion.v
    found: Vector = [0.0] * tree.rows
    rows = contact_rows(problem, tree, x)
    for i, link in enumerate(tree.links):
        for contact in link.contacts:
            K, own = rows[contact.index], a[i]
            if problem.axes == "world":
                turning = _crossed(v[i][:3], _point_velocity(contact, x, v[i]))
                own = own[:3] + [b + w for b, w in zip(own[3:], turning, strict=True)]
            for r, row in zip(rows_of(contact), K, strict=True):
                found[r] = dot(row, own)
    return found


def _point_velocity(contact: ContactRows, x: Inputs, v: Vector) -> Vector:
    """Return the velocity of a contact's point in its link's axes."""
    if contact.moving is None:
        own = [dot(row, v) for row in contact.motion[:3]]
        return [dot(row, own) for row in contact.to_link]
    moving = contact.moving
    given = list(x["contact_positions"][moving.position : moving.position + 3])
    turned = transpose(matmul(moving.rotation, transpose([given])))[0]
    p = [o + t for o, t in zip(moving.origin, turned, strict=True)]
    return [b + t for b, t in zip(v[3:], _crossed(v[:3], p), strict=True)]


def _cluster_armature(tree: Tree, gamma: dict[int, Scalar]) -> dict[int, Scalar]:
    """Return what the inertia between the joints of clusters adds to their torques at ÿ = 0."""
    return {
        i: dot(row, [gamma.get(j, 0.0) for j in cluster.links])
        for cluster in tree.clusters
        for i, row in zip(cluster.links, cluster.armature, strict=True)
    }


def _held(
    tree: Tree, motion: Motion, cluster: ClusterPropagator, p: list[Vector], ground: Vector
) -> tuple[Vector, Vector]:
    """Return force on the carrier and independent torques of a cluster held at ÿ = 0.

    Parameters
    ----------
    ground : acceleration of what carries it, if that is the ground; a link that carries it does
        not accelerate.
    """
    armature = _cluster_armature(tree, motion.gamma)
    a: dict[int, Vector] = {}
    for i in reversed(cluster.links):
        a[i], above = list(motion.c[i]), tree.links[i].parent
        if above in a or above == WORLD:
            carried = ground if above == WORLD else a[above]
            a[i] = _plus(motion.transforms[i].motion_to_child(carried), a[i])
    forces = {i: _plus(p[i], cluster.H[i].times(a[i])) for i in cluster.links}
    total: Vector = [0.0] * 6
    torques: dict[int, Scalar] = {}
    for i in cluster.links:
        link, f, gamma = tree.links[i], forces[i], motion.gamma.get(i, 0.0)
        torques[i] = f[link.freedom] + link.armature * gamma + armature.get(i, 0.0)
        if link.parent in a:
            torques[i] = torques[i] + dot(list(link.couple), a[link.parent][:3])
        if link.parent == WORLD:
            continue
        f = motion.transforms[i].force_to_parent(f)
        f = [b + k * gamma for b, k in zip(f[:3], link.couple, strict=True)] + f[3:]
        if link.parent == cluster.parent:
            total = _plus(total, f)
        else:
            forces[link.parent] = _plus(forces[link.parent], f)
    in_order = [torques[i] for i in reversed(cluster.links)]
    return total, [dot(in_order, column) for column in transpose(cluster.E)]


@step
def _moved(
    transform: JointTransform,
    above: Vector,
    carried: Vector,
    rate: Scalar,
    gamma: Scalar,
    axis: int,
    revolute: bool,
) -> tuple[Vector, Vector, Vector]:
    """Return v, c and the bias acceleration of a link from those of its parent."""
    v = transform.motion_to_child(above)
    S = axis if revolute else 3 + axis
    v[S] = v[S] + rate
    own = [rate if k == axis else 0.0 for k in range(3)]
    turned = _crossed(v[:3], own)
    c = [*turned, *_crossed(v[3:], own)] if revolute else [0.0, 0.0, 0.0, *turned]
    c[S] = c[S] + gamma
    return v, c, _plus(transform.motion_to_child(carried), c)


def _gyroscopic(link: Link, v: Vector) -> Vector:
    """Return v ×* H v, the force on a link that moves without acceleration."""
    H = RigidInertia.of(link)
    return _turning_force(v, H.mass, H.moment, H.rotational)


def _inertia_force(link: Link, v: Vector, a: Vector, g: Vector) -> Vector:
    """Return H (a − g) + v ×* H v."""
    H = RigidInertia.of(link)
    return _force(v, a, g, H.mass, H.moment, H.rotational)


@step
def _turning_force(v: Vector, mass: Scalar, moment: Vector, rotational: Matrix) -> Vector:
    """Return v ×* H v of a rigid body."""
    momentum = _momentum(v, mass, moment, rotational)
    turning = _plus(_crossed(v[:3], momentum[:3]), _crossed(v[3:], momentum[3:]))
    return turning + _crossed(v[:3], momentum[3:])


@step
def _force(
    v: Vector, a: Vector, g: Vector, mass: Scalar, moment: Vector, rotational: Matrix
) -> Vector:
    """Return H (a − g) + v ×* H v of a rigid body."""
    momentum = _momentum(v, mass, moment, rotational)
    turning = _plus(_crossed(v[:3], momentum[:3]), _crossed(v[3:], momentum[3:]))
    felt = a[:3] + [b - w for b, w in zip(a[3:], g, strict=True)]
    own = _momentum(felt, mass, moment, rotational)
    return _plus(own, turning + _crossed(v[:3], momentum[3:]))


def _momentum(v: Vector, mass: Scalar, moment: Vector, rotational: Matrix) -> Vector:
    """Return H v of a rigid body."""
    angular = [dot(row, v[:3]) for row in rotational]
    linear = _crossed(v[:3], moment)
    return _plus(angular, _crossed(moment, v[3:])) + [
        mass * b + w for b, w in zip(v[3:], linear, strict=True)
    ]


@step
def _driven_load(
    transform: JointTransform,
    H: SpatialInertia,
    HSD: Vector,
    S: int,
    p: Vector,
    c: Vector,
    torque: Scalar,
) -> tuple[Scalar, Vector]:
    """Return u of a joint, and the force that it passes to the parent."""
    f = _plus(p, H.times(c))
    u = torque - f[S]
    return u, transform.force_to_parent([b + h * u for b, h in zip(f, HSD, strict=True)])


@step
def _accelerated(
    transform: JointTransform, above: Vector, c: Vector, HSD: Vector, S: int, z: Scalar
) -> tuple[Scalar, Vector]:
    """Return the accelerations of a joint and its link from that of its parent; z is D⁻¹ u."""
    moved = transform.motion_to_child(above)
    rate = z - dot(HSD, moved)
    a = _plus(moved, c)
    a[S] = a[S] + rate
    return rate, a


def _plus(u: Vector, v: Vector) -> Vector:
    return [a + b for a, b in zip(u, v, strict=True)]


def _crossed(u: Vector, v: Vector) -> Vector:
    return [dot(row, v) for row in cross_matrix(list(u))]
