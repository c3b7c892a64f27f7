"""C-RNEA and C-ABA: inverse and forward dynamics of robots with couplings and loops.

M. Chignoli, N. Adrian, S. Kim, P. Wensing, "Recursive Rigid-Body Dynamics Algorithms for Systems
with Kinematic Loops"; with one-joint clusters they are the recursive Newton-Euler and the
articulated-body algorithm (R. Featherstone, Rigid Body Dynamics Algorithms, 2008, ch. 5 and 7).
Joint rates are q̇ = E ẏ and joint accelerations q̈ = E ÿ + γ, γ = Ė ẏ, with the loop Jacobian E.
Everything is written over scalars, in the frames of :mod:`delassus_ros.algorithms.tree`.
"""

from __future__ import annotations

from delassus_ros.algorithms.base import Inputs
from delassus_ros.algorithms.cluster_motion import (
    ClusterMotion,
    Moving,
    base_of,
    force_of_link,
    motion_of_link,
)
from delassus_ros.algorithms.cluster_propagation import ClusterPropagator
from delassus_ros.algorithms.outputs import force_on_body, motion_of_body
from delassus_ros.algorithms.propagation import FreeBody, Propagator, propagator
from delassus_ros.algorithms.scalars import Scalar, Vector, dot, transpose
from delassus_ros.algorithms.spatial import SpatialInertia
from delassus_ros.model.robot import WORLD


def c_rnea(motion: ClusterMotion, x: Inputs) -> Vector:
    """Return the independent torques (ny,) [N·m, N] that a motion needs.

    Parameters
    ----------
    motion : of the robot.
    x : ``q`` (nq,) of the spanning tree, closed; ``rates`` ẏ and ``accelerations`` ÿ (ny,), of
        a floating base the spatial acceleration; ``gravity`` (3,) [m/s²] in the world's axes, of
        a floating base in those of its root link.
    """
    links, moving = motion.tree.links, motion.at(x)
    a: list[Vector] = []
    forces: list[Vector] = []
    for i, link in enumerate(links):
        if link.motion == "free":
            a.append(motion_of_link(link, base_of(x["accelerations"])))
        else:
            a.append(list(moving.c[i]))
            if link.parent != WORLD:
                a[i] = _plus(moving.transforms[i].motion_to_child(a[link.parent]), a[i])
            rate = moving.of_joint(i, x["accelerations"])
            a[i][link.freedom] = a[i][link.freedom] + rate
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


def c_aba(motion: ClusterMotion, x: Inputs) -> Vector:
    """Return the independent accelerations ÿ (ny,) that torques cause.

    Parameters
    ----------
    motion : of the robot.
    x : as for :func:`c_rnea`, with ``torques`` (ny,) in place of ``accelerations``.

    Raises
    ------
    NumericalError
        On numbers, if the mass matrix is not positive definite there.
    """
    tree, moving = motion.tree, motion.at(x)
    H = [SpatialInertia.of(link) for link in tree.links]
    p = [moving.bias(i, inertia) for i, inertia in enumerate(H)]
    # Per joint, what its own torques and loads are to its acceleration: D⁻¹ u in a first form.
    passed: list[tuple[Propagator | ClusterPropagator | FreeBody, Vector]] = []
    for joint in reversed(tree.joints):
        i, link = joint.i, tree.links[joint.i]
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
            columns = motion.columns[i]
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
    passed: list[tuple[Propagator | ClusterPropagator | FreeBody, Vector]],
    p: list[Vector],
    x: Inputs,
) -> Vector:
    """Return ÿ by the last sweep of the articulated-body algorithm, from the roots."""
    links = motion.tree.links
    found: Vector = [0.0] * motion.size
    a: list[Vector] = [[] for _ in links]
    for joint, z in reversed(passed):
        i, link = joint.i, links[joint.i]
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


def _plus(u: Vector, v: Vector) -> Vector:
    return [a + b for a, b in zip(u, v, strict=True)]
