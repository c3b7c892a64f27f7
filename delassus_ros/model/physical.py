"""Whether the bodies of a robot can be: their inertia, and that every motion moves some."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from delassus_ros.errors import RobotError
from delassus_ros.model.clusters import groups_of
from delassus_ros.model.independents import null_motions
from delassus_ros.model.members import Members
from delassus_ros.model.robot import JointKind, Robot
from delassus_ros.model.spatial import Array, Inertia, skew
from delassus_ros.model.tree import listed

PSD_TOLERANCE = 1e-6
"""How negative a body's principal inertia may be, relative to the largest one: published
inertias are rounded to a few digits."""
NOISE = 1e-12
"""Rotational inertia [kg·m²] taken for rounding, per kg and per kg·m² about the body's origin:
point masses come with noise of either sign."""
SMALLEST = 1e-12
"""Inertia of a cluster's least inert motion, relative to its most inert one."""


def check_bodies(
    robot: Robot, lumped: Sequence[Sequence[tuple[str, Inertia]]], on_root: Sequence[str]
) -> None:
    """Refuse bodies that cannot be.

    Every body must have a positive semidefinite inertia; the triangle inequality is not asked
    for, as published models break it. The floating base and bodies that carry none must have
    some inertia, or, but for the base, their joint an armature. A body that a coupling or loop
    ties to others need not, if every motion that the constraints of its cluster leave moves
    inertia, armatures included; what the cluster carries counts as being fixed to it.

    Parameters
    ----------
    robot : the robot.
    lumped : for each of its first bodies, its links with their inertias in the body's frame.
    on_root : names of the joints that move on the base, for messages.

    Raises
    ------
    RobotError
        Names the link, or the constraints of the cluster.
    """
    carrying = {joint.parent for joint in robot.joints}
    massless = []
    for i, parts in enumerate(lumped):
        inertia = robot.bodies[i].inertia
        if not (inertia.mass or inertia.rotational.any()):
            if robot.joints[i].kind is JointKind.ROOT:
                raise RobotError(_no_base(robot.bodies[i].name, on_root))
            if i not in carrying:
                massless.append(i)
        _check_semidefinite(robot.joints[i].name, inertia, parts)
    if massless:
        for members in groups_of(robot):
            _check_massless(members, sorted(set(massless).intersection(members.joints)))


def _no_base(link: str, on_root: Sequence[str]) -> str:
    return (
        f"link {link!r}: the base floats but has no inertia, nor has any link fixed to it "
        f"(joints that move on it: {listed(list(on_root)) or 'none'}); give it an <inertial> or "
        "read the robot with base='fixed'"
    )


def _check_massless(members: Members, massless: list[int]) -> None:
    """Refuse bodies without inertia that carry none, where the mass matrix would be singular."""
    if not massless:
        return
    robot, first = members.robot, massless[0]
    if members.is_ordinary:
        if robot.joints[first].armature > 0.0:
            return
        raise RobotError(
            f"link {robot.bodies[first].name!r}: no inertia on the last link that joint "
            f"{robot.joints[first].name!r} moves, nor on links fixed to it; give it an "
            "<inertial>, or the joint an armature, or make the joint fixed"
        )
    closure, q, motions = null_motions(members)
    inertia = motions.T @ closure.inertia(q) @ motions
    values = np.linalg.eigvalsh(inertia)
    if not values[0] > SMALLEST * values[-1]:
        raise RobotError(
            f"{members.described()}: some motion of joints {members.names(members.joints)} moves "
            f"no inertia; give link {robot.bodies[first].name!r} an <inertial>"
        )


def _check_semidefinite(
    joint: str, inertia: Inertia, lumped: Sequence[tuple[str, Inertia]]
) -> None:
    """Refuse a body that some rotation about its centre of mass would not resist.

    Single links are not judged: those on fixed joints act through their body alone.
    """
    if _is_semidefinite(inertia):
        return
    link, worst = min(lumped, key=lambda part: float(_principal(part[1])[0]))
    shown = ", ".join(f"{value:.3g}" for value in _principal(worst))
    raise RobotError(
        f"link {link!r}: the inertia of the body that joint {joint!r} moves must be "
        f"positive semidefinite; principal inertias of this link: {shown} kg m^2"
    )


def _principal(inertia: Inertia) -> Array:
    """Return the principal inertias (3,) [kg·m²] about the centre of mass, smallest first."""
    h = skew(inertia.moment)
    about_com = inertia.rotational + (h @ h / inertia.mass if inertia.mass else 0.0)
    return np.asarray(np.linalg.eigvalsh(about_com), dtype=np.float64)


def _is_semidefinite(inertia: Inertia) -> bool:
    principal = _principal(inertia)
    noise = NOISE * (inertia.mass + np.abs(inertia.rotational).max())
    return bool(principal[0] >= -PSD_TOLERANCE * np.abs(principal).max() - noise)
