"""C-RNEA and C-ABA: inverse and forward dynamics of robots with couplings and loops.

M. Chignoli, N. Adrian, S. Kim, P. Wensing, "Recursive Rigid-Body Dynamics Algorithms for Systems
with Kinematic Loops", sections VI and VII, whose equation numbers stand below; with one-joint
clusters they are the recursive Newton-Euler and the articulated-body algorithm (R. Featherstone,
Rigid Body Dynamics Algorithms, 2008, ch. 5 and 7).
Rotors whose inertia is redistributed leave a spin on the link that carries them and inertia
between joints (:mod:`delassus.rbda.rotors`); both are included here. Torques are those of
motors: springs, dampers and gravity compensation (:mod:`delassus.rbda.passive`) add to them.
"""

from __future__ import annotations

from collections.abc import Mapping

from delassus.model.robot import WORLD
from delassus.rbda.cluster_motion import Accelerations, ClusterMotion
from delassus.rbda.cluster_propagation import ClusterPropagator
from delassus.rbda.passive import passive_torques
from delassus.rbda.propagation import CarriedJoint, FreeBody, Propagator, articulated_joints
from delassus.rbda.spatial import JointTransform, SpatialInertia
from delassus.rbda.tree import Tree
from delassus.rbda.velocities import (
    force_of_link,
    force_on_body,
    motion_of_body,
)
from delassus.scalars.functions import Scalar, Vector, dot, minus, plus, transpose
from delassus.scalars.steps import step


def c_rnea(motion: ClusterMotion, accelerations: Accelerations | None = None) -> Vector:
    """Return the independent torques (n,) [N·m, N] that a motion needs: C-RNEA.

    The forward pass (33) is that of `motion`; inertia forces are (34), the backward pass to the
    carriers (35), and torques of independent joints Eᵀ Sᵀ f (31). Inside of a cluster forces go
    from link to link, which is the remapping of parents and children, (22) and (23).

    Parameters
    ----------
    accelerations : of :meth:`ClusterMotion.accelerations`; None for ÿ = 0, which shares the
        links' bias accelerations with J̇ ẏ.
    """
    if accelerations is None:
        a, gravity, joint_accelerations = motion.bias, motion.gravity, motion.gamma
    else:
        a, ydd = accelerations
        gravity = [[0.0] * 3] * len(motion.tree.links)
        joint_accelerations = motion.of_joints(ydd)
    torques, _ = _newton_euler(motion, a, gravity, joint_accelerations, motion.external_forces)
    for k, torque in passive_torques(motion).items():
        torques[k] = torques[k] - torque
    return torques


def momentum_rate(motion: ClusterMotion, a: list[Vector], joint_accelerations: Vector) -> Vector:
    """Return the rate of the momentum (6,) of the robot, a force at its free link or the world.

    Parameters
    ----------
    a : accelerations of the links; those of gravity are forces.
    joint_accelerations : of the links' joints.
    """
    links = motion.tree.links
    _, f = _newton_euler(motion, a, [[0.0] * 3] * len(links), joint_accelerations, {})
    total: Vector = [0.0] * 6
    for i, link in enumerate(links):
        if link.motion == "free":
            total = plus(total, f[i])
        elif link.parent == WORLD:
            total = plus(total, motion.transforms[i].force_to_parent(f[i]))
    return total


def _newton_euler(
    motion: ClusterMotion,
    a: list[Vector],
    gravity: list[Vector],
    joint_accelerations: Vector,
    external: Mapping[int, Vector],
) -> tuple[Vector, list[Vector]]:
    """Return the independent torques (n,), and per link the force that its joint transmits.

    Parameters
    ----------
    a, gravity : accelerations of the links, and of gravity in their axes, which is subtracted.
    joint_accelerations : of the links' joints.
    external : external forces by link.
    """
    links = motion.tree.links
    between_joints = _armature_between_joints(motion.tree, joint_accelerations)
    f = [motion.inertia_force(i, *pair) for i, pair in enumerate(zip(a, gravity, strict=True))]
    for i, force in external.items():
        f[i] = minus(f[i], force)
    torques: Vector = [0.0] * len(motion.problem.velocities)
    for i in reversed(range(len(links))):
        link = links[i]
        if link.motion == "free":
            first = motion.velocities.first[i]
            for k, value in enumerate(force_on_body(link, f[i]), start=first):
                torques[k] = torques[k] + value
            continue
        acceleration = joint_accelerations[i]
        torque = f[i][link.freedom] + link.armature * acceleration + between_joints.get(i, 0.0)
        if link.parent != WORLD:
            torque = torque + dot(list(link.couple), a[link.parent][:3])
            f[link.parent] = plus(f[link.parent], motion.transforms[i].force_to_parent(f[i]))
            f[link.parent] = plus(f[link.parent], motion.spin_force(i, acceleration))
        for k, factor in motion.rows[i].items():
            torques[k] = torques[k] + factor * torque
    return torques, f


def c_aba(
    motion: ClusterMotion, known: Vector, accelerated: frozenset[int] = frozenset()
) -> Accelerations:
    """Return the accelerations that torques cause: C-ABA, algorithm 1.

    Articulated inertias and bias forces go to the carrier by (55) and (56), with the quantities
    (49) in :class:`~delassus.rbda.cluster_propagation.ClusterPropagator`; the last pass is
    (52).

    Joints of known acceleration carry all of the links beyond them: R. Featherstone, Rigid Body
    Dynamics Algorithms, 2008, section 9.2.

    Parameters
    ----------
    known : (n,) independent torques [N·m, N]; of a floating base, the wrench on the root link,
        linear first; of columns in `accelerated`, ÿ [rad/s², m/s²].
    accelerated : columns of independent velocities whose accelerations are known; all of a
        cluster's or none, all of a floating base's or none.

    Raises
    ------
    NumericalError
        On numbers, if the mass matrix is not positive definite there.
    """
    tree, rows, gravity, ground = motion.tree, motion.rows, motion.gravity, motion.ground
    p = [motion.gyroscopic_force(i) for i in range(len(tree.links))]
    for i, link in enumerate(tree.links):
        if link.parent != WORLD and link.motion != "free":
            p[link.parent] = plus(p[link.parent], motion.spin_force(i, 0.0))
    for i, force in motion.external_forces.items():
        p[i] = minus(p[i], force)
    torques = list(known)
    for k, torque in passive_torques(motion).items():
        if k not in accelerated:
            torques[k] = torques[k] + torque
    for cluster in tree.clusters:
        if cluster.freedoms:
            continue
        # Rotors whose spin belongs to the links that they turn; the inertia of a rotor that is
        # not round acts on these links, too.
        for i in cluster.links:
            felt = p[i][tree.links[i].freedom]
            for k, factor in rows[i].items():
                if k not in accelerated:
                    torques[k] = torques[k] - factor * felt
    carried = frozenset(
        joint.i
        for joint in tree.joints
        if motion.velocities.columns[joint.i]
        and accelerated.issuperset(motion.velocities.columns[joint.i])
    )
    # Per joint: torques and loads in terms of the joint's acceleration, D⁻¹ u in a first form.
    joints: list[tuple[Propagator | ClusterPropagator | CarriedJoint | FreeBody, Vector]] = []
    for joint in articulated_joints(tree, motion.x, carried):
        i = joint.i
        if isinstance(joint, FreeBody):
            joints.append((joint, []))
            continue
        if isinstance(joint, CarriedJoint):
            load = _carried_load(motion, joint, p, known)
            joints.append((joint, []))
        elif isinstance(joint, Propagator):
            u, load = _driven_load(
                motion.transforms[i], joint.H, joint.HSD, joint.S, p[i], motion.c[i],
                _torque_of_joint(motion, torques, i),
            )  # fmt: skip
            joints.append((joint, [u * joint.D_inverse]))
        else:
            f, held = _held_cluster(motion, joint, p, ground)
            applied = _torques_of_cluster(motion, torques, joint)
            load, z = joint.loads_to_parent(f, minus(applied, held))
            joints.append((joint, z))
        if joint.parent != WORLD:
            p[joint.parent] = plus(p[joint.parent], load)
    a: list[Vector] = [[] for _ in tree.links]
    found: Vector = [known[k] if k in accelerated else 0.0 for k in range(len(known))]
    in_clusters: dict[int, Scalar] = {}
    for joint, z in reversed(joints):
        i, link = joint.i, tree.links[joint.i]
        if isinstance(joint, FreeBody):
            wrench = force_of_link(link, motion.base(i, torques))
            a[i] = joint.solve(minus(wrench, p[i]))
            twist = motion_of_body(link, plus(a[i], [0.0] * 3 + gravity[i]))
            for k, value in enumerate(twist, start=motion.velocities.first[i]):
                found[k] = value
            continue
        if link.motion == "free":
            a[i] = motion.base_acceleration(i, known)
            continue
        a_carrier = ground if joint.parent == WORLD else a[joint.parent]
        if isinstance(joint, Propagator):
            rate, a[i] = _accelerated(
                motion.transforms[i], a_carrier, motion.c[i], joint.HSD, joint.S, z[0]
            )
            if i in motion.velocities.single:
                found[motion.velocities.single[i]] = link.sign * rate
            else:
                in_clusters[i] = rate
            continue
        if isinstance(joint, CarriedJoint):
            rates = {k: motion.of_joint(k, known) for k in joint.links}
        else:
            rates = joint.rates(a_carrier, z)
            in_clusters.update(rates)
        for k in reversed(joint.links):
            parent = tree.links[k].parent
            a_parent = a_carrier if parent == joint.parent else a[parent]
            a[k] = motion.acceleration(k, a_parent, rates[k])
    for k, value in motion.velocities.of_clusters(in_clusters).items():
        found[k] = value
    return Accelerations(a, found)


def hybrid(motion: ClusterMotion, known: Vector, accelerated: frozenset[int]) -> Vector:
    """Return (n,) torques of columns with known acceleration, accelerations of the rest.

    Parameters
    ----------
    known, accelerated : as for :func:`c_aba`.
    """
    accelerations = c_aba(motion, known, accelerated)
    torques, ydd = c_rnea(motion, accelerations), accelerations.independent
    return [torques[k] if k in accelerated else ydd[k] for k in range(len(known))]


def _armature_between_joints(tree: Tree, accelerations: Vector) -> dict[int, Scalar]:
    """Return the torques of the inertia between the joints of clusters, by link."""
    return {
        i: dot(row, [accelerations[j] for j in cluster.links])
        for cluster in tree.clusters
        for i, row in zip(cluster.links, cluster.armature, strict=True)
    }


def _torque_of_joint(motion: ClusterMotion, torques: Vector, i: int) -> Scalar:
    """Return the torque at link i's joint that is equivalent to the independent torques."""
    single = motion.velocities.single
    if i in single:
        return motion.tree.links[i].sign * torques[single[i]]
    factors = motion.velocities.of_clusters({i: 1.0})
    return dot(list(factors.values()), [torques[k] for k in factors])


def _torques_of_cluster(
    motion: ClusterMotion, torques: Vector, cluster: ClusterPropagator
) -> Vector:
    """Return the torques at a cluster's independent rates that are equivalent to those at ẏ."""
    found = []
    for column in transpose(cluster.E):
        rates = dict(zip(reversed(cluster.links), column, strict=True))
        factors = motion.velocities.of_clusters(rates)
        found.append(dot(list(factors.values()), [torques[k] for k in factors]))
    return found


def _held_cluster(
    motion: ClusterMotion, cluster: ClusterPropagator, p: list[Vector], ground: Vector
) -> tuple[Vector, Vector]:
    """Return force on the carrier and independent torques of a cluster held at ÿ = 0.

    These are the bias terms of (49) and (56): the motion subspace's part of torques, and the
    force with the acceleration (26) of a cluster joint at rest.

    Parameters
    ----------
    ground : acceleration of the carrier if that is the ground; a link that carries the cluster
        does not accelerate.
    """
    links, gamma = motion.tree.links, motion.gamma
    between_joints = _armature_between_joints(motion.tree, gamma)
    a: dict[int, Vector] = {}
    for i in reversed(cluster.links):
        a[i], parent = list(motion.c[i]), links[i].parent
        if parent in a or parent == WORLD:
            a_parent = ground if parent == WORLD else a[parent]
            a[i] = plus(motion.transforms[i].motion_to_child(a_parent), a[i])
    forces = {i: plus(p[i], cluster.H[i].times(a[i])) for i in cluster.links}
    total: Vector = [0.0] * 6
    torques: dict[int, Scalar] = {}
    for i in cluster.links:
        link, f = links[i], forces[i]
        torques[i] = f[link.freedom] + link.armature * gamma[i] + between_joints.get(i, 0.0)
        if link.parent in a:
            torques[i] = torques[i] + dot(list(link.couple), a[link.parent][:3])
        if link.parent == WORLD:
            continue
        f = motion.transforms[i].force_to_parent(f)
        f = [b + k * gamma[i] for b, k in zip(f[:3], link.couple, strict=True)] + f[3:]
        if link.parent == cluster.parent:
            total = plus(total, f)
        else:
            forces[link.parent] = plus(forces[link.parent], f)
    in_order = [torques[i] for i in reversed(cluster.links)]
    return total, [dot(in_order, column) for column in transpose(cluster.E)]


def _carried_load(
    motion: ClusterMotion, joint: CarriedJoint, p: list[Vector], known: Vector
) -> Vector:
    """Return the force on a carrier at rest by a joint of known acceleration."""
    total: Vector = [0.0] * 6
    forces = {i: p[i] for i in joint.links}
    for i in joint.links:
        link, rate = motion.tree.links[i], motion.of_joint(i, known)
        if link.parent == WORLD:
            continue
        a = list(motion.c[i])
        a[link.freedom] = a[link.freedom] + rate
        f = motion.transforms[i].force_to_parent(plus(forces[i], joint.H[i].times(a)))
        acceleration = rate + motion.gamma[i]
        f = [b + k * acceleration for b, k in zip(f[:3], link.couple, strict=True)] + f[3:]
        if link.parent == joint.parent:
            total = plus(total, f)
        else:
            forces[link.parent] = plus(forces[link.parent], f)
    return total


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
    """Return u of a joint, and the force that the joint passes to its parent."""
    f = plus(p, H.times(c))
    u = torque - f[S]
    return u, transform.force_to_parent([b + h * u for b, h in zip(f, HSD, strict=True)])


@step
def _accelerated(
    transform: JointTransform, a_parent: Vector, c: Vector, HSD: Vector, S: int, z: Scalar
) -> tuple[Scalar, Vector]:
    """Return the accelerations of a joint and its link from the parent's; z is D⁻¹ u."""
    moved = transform.motion_to_child(a_parent)
    rate = z - dot(HSD, moved)
    a = plus(moved, c)
    a[S] = a[S] + rate
    return rate, a
