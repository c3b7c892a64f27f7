"""Positions and velocities by the names of joints: what :meth:`Robot.q` and ``v`` do."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from delassus import arguments
from delassus.errors import DelassusWarning, RobotError, listed
from delassus.model.clusters import clusters_of
from delassus.model.couplings import follow, open_coupling
from delassus.model.joint import JointKind
from delassus.model.loops import CLOSED_GAP, LoopClosure
from delassus.model.mechanism import Mechanism
from delassus.model.ranges import PlausibleRanges
from delassus.model.spatial import Array, check_unit_norm

_PARTS = {
    (JointKind.PLANAR, "q"): "x, y [m], θ [rad]",
    (JointKind.FLOATING, "q"): "x, y, z [m], unit quaternion x, y, z, w",
    (JointKind.PLANAR, "v"): "ẋ, ẏ [m/s], θ̇ [rad/s]",
    (JointKind.FLOATING, "v"): "the twist in the axes of what it carries, linear first",
}
"""Meaning of the numbers of joints with several freedoms, in q and in v."""


def q_of(robot: Mechanism, positions: Mapping[str, ArrayLike], default: float = 0.0) -> Array:
    """Return the q of :meth:`Robot.q`, without warnings.

    Raises
    ------
    RobotError
        As for :meth:`Robot.q`.
    """
    q = robot.neutral()
    named = _write(robot, "positions", positions, q, "q", default)
    follow(robot, q, named)
    return q


def checked_q_of(robot: Mechanism, positions: Mapping[str, ArrayLike], default: float) -> Array:
    """Return the q of :meth:`Robot.q`, with its warnings."""
    q = q_of(robot, positions, default)
    for words in (*_impossible(robot, q, positions), *_open(robot, q, positions)):
        # The warning names the line that called Robot.q.
        warnings.warn(words, DelassusWarning, stacklevel=3)
    return q


def v_of(
    robot: Mechanism,
    rates: Mapping[str, ArrayLike],
    twist: Sequence[float] | Array | None,
    default: float,
) -> Array:
    """Return the v of :meth:`Robot.v`.

    Raises
    ------
    RobotError
        As for :meth:`Robot.v`.
    """
    v = np.zeros(robot.nv)
    _write(robot, "rates", rates, v, "v", default)
    if twist is not None:
        if robot.base == "fixed":
            raise RobotError(f"twist is given, but the base of robot {robot.name!r} is fixed")
        v[:6] = arguments.sized("twist", twist, 6, "a base's", RobotError)
    return v


def _write(
    robot: Mechanism, what: str, given: object, found: Array, order: str, default: float
) -> set[str]:
    """Write numbers by joint to `found`, in the order of q or v; return the joints' names."""
    places = {}
    offsets = robot.q_offsets if order == "q" else robot.v_offsets
    for joint, offset in zip(robot.joints, offsets, strict=True):
        size = joint.kind.nq if order == "q" else joint.kind.nv
        if joint.kind is not JointKind.ROOT:
            places[joint.name] = joint.kind, slice(offset, offset + size)
    fill = arguments.number("default", default, RobotError)
    for _, place in places.values():
        if place.stop - place.start == 1:
            found[place] = fill
    if not isinstance(given, Mapping):
        raise RobotError(_nameless(what, given, found.size, order, tuple(places)))
    for name, value in given.items():
        if name not in places:
            raise RobotError(
                f"{robot.unknown_joint(str(name))}; in the order of {order}: {', '.join(places)}"
            )
        kind, place = places[name]
        own = f"{what} of joint {name!r}"
        size = place.stop - place.start
        if size == 1:
            found[place] = arguments.number(own, value, RobotError)
            continue
        numbers = arguments.sized(own, value, size, _PARTS[kind, order], RobotError)
        if kind is JointKind.FLOATING and order == "q":
            what = f"the quaternion in {own}"
            check_unit_norm(what, numbers[3:], _PARTS[kind, order], RobotError)
        found[place] = numbers
    return set(given)


def _nameless(what: str, given: object, size: int, order: str, names: Sequence[str]) -> str:
    """Return the message for numbers without names: what to write instead."""
    words = f"{what} is {arguments.shown(given)}; expected numbers by joint"
    words += f": write {{{names[0]!r}: 0.1}}" if names else ", and the robot has no joint"
    try:
        count = np.size(arguments.as_numbers(given))
    except (TypeError, ValueError):
        return words
    if count == size:
        return f"{words}; these {size} numbers are {order} itself, in the order {', '.join(names)}"
    return f"{words}; the joints are {', '.join(names)}"


def _impossible(robot: Mechanism, q: Array, named: Mapping[str, ArrayLike]) -> list[str]:
    """Return a warning per implausible position of a named joint."""
    ranges, found = PlausibleRanges(robot), []
    for k in ranges.all_outside(q).tolist():
        if ranges.name(k) in named:
            hint = "; angles are in rad: np.deg2rad(…)" if ranges.is_angle(k) else ""
            found.append(f"{ranges.words(k, q[k])}{hint}")
    return found


def _open(robot: Mechanism, q: Array, named: Mapping[str, ArrayLike]) -> list[str]:
    """Return a warning per coupling or loop of named joints that is open.

    A loop is closed if its gap is rounding of printed descriptions.
    """
    robot = robot.clustered  # Loops closed by rows as well.
    if not robot.is_closed:
        return []
    words = open_coupling(robot, q.tolist())
    found = [f"the positions do not fit: {words}"] if words else []
    for cluster in clusters_of(robot):
        names = [robot.joints[joint].name for joint in cluster.joints]
        if cluster.is_constant or not named.keys() & set(names):
            continue
        closure = LoopClosure(cluster)
        gap = float(np.abs(closure.gap(q[cluster.entries] / closure.units)).max(initial=0.0))
        if not gap <= CLOSED_GAP:
            found.append(
                f"{cluster.described()}: not closed by Robot.q, a gap of {gap:.3g} is left "
                f"between joints {listed('', names)}; Closure(robot).solve(positions by joint) "
                "closes it"
            )
    return found
