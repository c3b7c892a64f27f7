"""The usual approximation of geared robots: rotors as armatures of the joints that they turn."""

from __future__ import annotations

from collections.abc import Container

from delassus_ros.algorithms.constraints import loop_jacobian
from delassus_ros.algorithms.rotors import Redistribution, pruned
from delassus_ros.errors import RobotError
from delassus_ros.model.clusters import Cluster, clusters_of
from delassus_ros.model.robot import JointKind, Robot


def reflect(robot: Robot, held: Container[int] = frozenset()) -> Redistribution:
    """Return the tree of a robot's independent joints, with g²J of the others as armatures.

    Parameters
    ----------
    held : bodies with contacts.

    Raises
    ------
    RobotError
        If what is left out is more than rotors: it carries other bodies or contacts, or its
        rate depends on the configuration. Names the joint.
    """
    armatures = [joint.armature for joint in robot.joints]
    left_out: set[int] = set()
    for cluster in clusters_of(robot):
        if cluster.is_ordinary:
            continue
        _check(robot, cluster, held)
        E = loop_jacobian(robot, cluster, robot.neutral().tolist())
        for i in cluster.dependent:
            joint, inertia = robot.joints[i], robot.bodies[i].inertia
            spin = inertia.mass
            if joint.kind is JointKind.REVOLUTE:
                spin = float(joint.axis @ inertia.rotational @ joint.axis)
            ratios = E[cluster.joints.index(i)]
            for k, ratio in zip(cluster.independent, ratios, strict=True):
                armatures[k] += float(ratio) ** 2 * (spin + armatures[i])
            left_out.add(i)
    inertias = [body.inertia for body in robot.bodies]
    tree, kept = pruned(robot, left_out, inertias, armatures)
    return Redistribution(tree, kept, ())


def _check(robot: Robot, cluster: Cluster, held: Container[int]) -> None:
    """Refuse clusters whose dependent joints are not rotors."""
    carriers = {joint.parent for joint in robot.joints}
    for i in cluster.dependent:
        name = robot.joints[i].name
        if not cluster.is_constant:
            reason = "its rate depends on the configuration"
        elif i in carriers:
            reason = "it carries other bodies"
        elif i in held:
            reason = "it has a contact"
        else:
            continue
        raise RobotError(
            f"joint {name!r} cannot be approximated by a reflected inertia: it depends on other "
            f"joints by {', '.join(map(repr, cluster.constraint_names))}, and {reason}"
        )
