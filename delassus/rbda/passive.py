"""Passive torques at the independent joints: springs, dampers and gravity compensation.

A spring and damper at a joint of the spanning tree, of position q and rate q̇ = E ẏ, have the
torque τ = −k (q − q₀) − d q̇, at the independent joints Eᵀ τ. Gravity compensation is a force −m g
at the centre of mass of the compensated part of a body. Bias forces and free accelerations have
these torques in addition to those of motors; G, J and J̇ ẏ do not depend on them.
"""

from __future__ import annotations

from delassus.model.clusters import clusters_of, velocity_offsets
from delassus.model.joint import JointKind
from delassus.model.robot import WORLD
from delassus.problem import Problem
from delassus.rbda.cluster_motion import ClusterMotion
from delassus.rbda.constraints import loop_jacobian
from delassus.rbda.spatial import cross
from delassus.rbda.tangents import with_all_slopes, with_slopes
from delassus.rbda.unknown_constants import constants
from delassus.rbda.velocities import force_on_body
from delassus.scalars.duals import Dual
from delassus.scalars.functions import Matrix, Scalar, Vector, dot, identity, plus, zeros
from delassus.scalars.ports import Inputs


def passive_torques(motion: ClusterMotion) -> dict[int, Scalar]:
    """Return the passive torques by column of the independent velocities [N·m, N].

    Columns without springs, dampers and compensated bodies are missing; of a floating base the six
    are a wrench on the root link, linear first.
    """
    total = joint_torques(motion.problem, motion.x)
    for k, torque in _compensation(motion).items():
        total[k] = total.get(k, 0.0) + torque
    return total


def joint_torques(problem: Problem, x: Inputs) -> dict[int, Scalar]:
    """Return the torques of springs and dampers by column of the independent velocities."""
    robot, offsets = problem.robot, velocity_offsets(problem.robot)
    total: dict[int, Scalar] = {}
    for cluster in clusters_of(robot):
        if not any(robot.joints[i].is_passive for i in cluster.joints):
            continue
        columns = [offsets[i] for i in cluster.independent]
        rates = [x["rates"][k] for k in columns]
        for i, row in zip(cluster.joints, loop_jacobian(cluster, x["q"]), strict=True):
            joint = robot.joints[i]
            if not joint.is_passive:
                continue
            law = [joint.stiffness, joint.spring_reference, joint.damping]
            ((stiffness, reference, damping),) = constants((robot, i, "passive"))([law])
            stretched = x["q"][robot.q_offsets[i]] - reference
            torque = -(stiffness * stretched + damping * dot(row, rates))
            for k, factor in zip(columns, row, strict=True):
                total[k] = total.get(k, 0.0) + factor * torque
    return total


def compensation_forces(motion: ClusterMotion) -> dict[int, Vector]:
    """Return the forces of gravity compensation by link, angular first, in the link's axes."""
    return {
        i: [-value for value in cross(list(link.compensated[1:]), motion.gravity[i])]
        + [-link.compensated[0] * value for value in motion.gravity[i]]
        for i, link in enumerate(motion.tree.links)
        if link.compensated
    }


def _compensation(motion: ClusterMotion) -> dict[int, Scalar]:
    """Return the torques of gravity compensation by column of the independent velocities."""
    forces = compensation_forces(motion)
    total: dict[int, Scalar] = {}
    for i in reversed(range(len(motion.tree.links))):
        if i not in forces:
            continue
        link, force = motion.tree.links[i], forces[i]
        if link.motion == "free":
            torques = dict(enumerate(force_on_body(link, force), start=motion.velocities.first[i]))
        else:
            torques = {k: factor * force[link.freedom] for k, factor in motion.rows[i].items()}
            if link.parent != WORLD:
                passed = motion.transforms[i].force_to_parent(force)
                above = forces.get(link.parent)
                forces[link.parent] = passed if above is None else plus(above, passed)
        for k, torque in torques.items():
            total[k] = total.get(k, 0.0) + torque
    return total


def passive_slopes(motion: ClusterMotion) -> tuple[Matrix, Matrix]:
    """Return the derivatives (n, n) of the passive torques along y and ẏ.

    Gravity is constant in the axes of the world: where it is given in those of a floating base, it
    turns with the base.
    """
    problem, tree, x = motion.problem, motion.tree, motion.x
    n = len(problem.velocities)
    moved = with_all_slopes(problem, x)
    if problem.robot.joints[0].kind is JointKind.ROOT and "base_orientation" not in x:
        turned = [cross(list(x["gravity"]), axis) for axis in identity(3)]
        entries = {
            ("gravity", r): [0.0] * 3 + [column[r] for column in turned] + [0.0] * (n - 6)
            for r in range(3)
        }
        moved = with_slopes(moved, entries)
    at_rest = ClusterMotion(problem, tree, {**moved, "rates": [0.0] * n})
    faster = with_slopes(x, {("rates", k): row for k, row in enumerate(identity(n))})
    by_q, by_rates = zeros(n, n), zeros(n, n)
    for matrix, torques in (
        (by_q, joint_torques(problem, moved)),
        (by_q, _compensation(at_rest)),
        (by_rates, joint_torques(problem, faster)),
    ):
        for k, torque in torques.items():
            # Torques that do not depend on the variables are no duals.
            if isinstance(torque, Dual):
                matrix[k] = plus(matrix[k], torque.slopes)
    return by_q, by_rates
