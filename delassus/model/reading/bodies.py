"""Refusal of impossible bodies: inertias must be positive, and every motion must move inertia."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from delassus.errors import RobotError
from delassus.model.clusters import groups_of, null_motions
from delassus.model.joint import WORLD, JointKind
from delassus.model.joint_group import JointGroup
from delassus.model.mechanism import Frame, Mechanism
from delassus.model.reading.link_tree import listed
from delassus.model.spatial import Array, Inertia, skew

_log = logging.getLogger(__name__)

PSD_TOLERANCE = 1e-6
"""Largest negative principal inertia of a body, relative to the largest principal inertia:
published inertias are rounded to a few digits."""
TRIANGLE_TOLERANCE = 0.01
"""Excess of the largest principal inertia over the sum of the others, relative to the largest,
that is accepted without a warning: published inertias of rods and plates are rounded."""
INERTIA_NOISE = 1e-12
"""Rotational inertia [kg·m²] taken for rounding, per kg and per kg·m² about the body's origin:
point masses come with noise of either sign."""
SMALLEST_INERTIA_RATIO = 1e-12
"""Inertia of a cluster's least inert motion, relative to its most inert one."""


def to_lock_it(joint: str) -> str:
    """Return how a joint is locked when a robot is read, for messages."""
    return f"lock={{{joint!r}: 0.0}}, on the command line --lock {joint}=0"


def links_of_bodies(
    frames: Iterable[Frame], links: Mapping[str, Inertia], count: int
) -> list[list[tuple[str, Inertia]]]:
    """Return for each of `count` bodies its links, with their inertias in the body's frame.

    Parameters
    ----------
    links : inertias of links by name, in the frames of the links.
    """
    found: list[list[tuple[str, Inertia]]] = [[] for _ in range(count)]
    for frame in frames:
        if frame.body != WORLD:
            inertia = links[frame.name].in_parent(frame.placement)
            found[frame.body].append((frame.name, inertia))
    return found


def check_bodies(robot: Mechanism, links: Mapping[str, Inertia], on_root: Sequence[str]) -> None:
    """Refuse impossible bodies.

    Every body must have a positive semidefinite inertia; where it breaks the triangle inequality,
    as in some published models, there is a warning. The floating base and bodies that carry none
    must have some inertia, or, but for the base, their joint an armature. A body that a coupling
    or loop ties to others need not, if every motion that the constraints of its cluster leave
    moves inertia, armatures included; what the cluster carries counts as being fixed to it.

    Parameters
    ----------
    robot : the robot.
    links : inertias of its links by name, in the frames of the links.
    on_root : names of the joints that move on the base, for messages.

    Raises
    ------
    RobotError
        Names the link, or the constraints of the cluster.
    """
    carrying = {joint.parent for joint in robot.joints}
    massless = []
    lumped = links_of_bodies(robot.frames.values(), links, len(robot.joints))
    for i, parts in enumerate(lumped):
        inertia = robot.bodies[i].inertia
        if not parts:
            continue  # a rotor, or between the joints of a chain
        if not (inertia.mass or inertia.rotational.any()):
            if robot.joints[i].kind is JointKind.ROOT:
                raise RobotError(_no_base(robot.bodies[i].name, on_root))
            if i not in carrying:
                massless.append(i)
        _check_semidefinite(robot.joints[i].name, inertia, parts)
    if massless:
        for group in groups_of(robot):
            _check_massless(group, sorted(set(massless).intersection(group.joints)))


def _no_base(link: str, on_root: Sequence[str]) -> str:
    return (
        f"link {link!r}: the base floats but has no inertia, nor has any link fixed to it "
        f"(joints that move on it: {listed(list(on_root)) or 'none'}); give it an <inertial> or "
        "have it fixed: base='fixed', on the command line --base fixed"
    )


def _check_massless(group: JointGroup, massless: list[int]) -> None:
    """Refuse bodies without inertia that carry none, where the mass matrix would be singular."""
    if not massless:
        return
    robot, first = group.robot, massless[0]
    if group.is_ordinary:
        if robot.joints[first].armature > 0.0:
            return
        raise RobotError(
            f"link {robot.bodies[first].name!r}: no inertia on the last link that joint "
            f"{robot.joints[first].name!r} moves, nor on links fixed to it; give it an "
            "<inertial>, or the joint an armature, or lock the joint: "
            f"{to_lock_it(robot.joints[first].name)}"
        )
    closure, q, motions = null_motions(group)
    inertia = motions.T @ closure.inertia(q) @ motions
    values = np.linalg.eigvalsh(inertia)
    if not values[0] > SMALLEST_INERTIA_RATIO * values[-1]:
        joint = robot.joints[group.joints[0]].name
        raise RobotError(
            f"{group.described()}: some motion of joints {group.names(group.joints)} moves "
            f"no inertia; give link {robot.bodies[first].name!r} an <inertial>, or joint "
            f"{joint!r} an armature, or lock the joints: {to_lock_it(joint)}"
        )


def _check_semidefinite(
    joint: str, inertia: Inertia, lumped: Sequence[tuple[str, Inertia]]
) -> None:
    """Refuse a body that some rotation about its centre of mass would not resist.

    Single links are not judged: those on fixed joints act through their body alone.
    """
    if _is_semidefinite(inertia):
        _warn_of_triangle(joint, inertia, lumped)
        return
    link, worst = min(lumped, key=lambda part: float(_principal(part[1])[0]))
    shown = ", ".join(f"{value:.3g}" for value in _principal(worst))
    raise RobotError(
        f"link {link!r}: the inertia of the body that joint {joint!r} moves must be "
        f"positive semidefinite, or some motion would have negative energy; principal inertias "
        f"of this link: {shown} kg m^2"
    )


def _warn_of_triangle(joint: str, inertia: Inertia, lumped: Sequence[tuple[str, Inertia]]) -> None:
    """Warn of a body that no mass can have: principal inertias with a + b < c."""
    a, b, c = _principal(inertia)
    noise = INERTIA_NOISE * (inertia.mass + np.abs(inertia.rotational).max())
    if a + b >= c * (1.0 - TRIANGLE_TOLERANCE) - noise:
        return
    link, worst = min(lumped, key=lambda part: _spread(part[1]))
    shown = ", ".join(f"{value:.3g}" for value in _principal(worst))
    _log.warning(
        "link %r: no body has the inertia of what joint %r moves: the largest principal inertia "
        "is more than the sum of the others; of this link they are %s kg m^2",
        link, joint, shown,
    )  # fmt: skip


def _spread(inertia: Inertia) -> float:
    a, b, c = _principal(inertia)
    return float(a + b - c)


def _principal(inertia: Inertia) -> Array:
    """Return the principal inertias (3,) [kg·m²] about the centre of mass, smallest first."""
    h = skew(inertia.moment)
    about_com = inertia.rotational + (h @ h / inertia.mass if inertia.mass else 0.0)
    return np.asarray(np.linalg.eigvalsh(about_com), dtype=np.float64)


def _is_semidefinite(inertia: Inertia) -> bool:
    principal = _principal(inertia)
    noise = INERTIA_NOISE * (inertia.mass + np.abs(inertia.rotational).max())
    return bool(principal[0] >= -PSD_TOLERANCE * np.abs(principal).max() - noise)
