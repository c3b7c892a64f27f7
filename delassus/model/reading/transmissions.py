"""Rotors of ``<transmission>`` elements: joints, bodies and couplings of the cluster they make.

The equations are those of the ROS packages ``transmission_interface`` (ROS 1 and ROS 2), with
actuator positions a, joint positions x, offsets o and reductions n of actuators and joints:

- simple: a = n (x − o).
- differential: a₁ = n_a1 [n_1 (x₁ − o₁) + n_2 (x₂ − o₂)] and
  a₂ = n_a2 [n_1 (x₁ − o₁) − n_2 (x₂ − o₂)].
- four-bar linkage: a₁ = n_a1 n_1 (x₁ − o₁), a₂ = n_a2 [(x₁ − o₁) + n_2 (x₂ − o₂)].

The descriptions do not tell where the motors are. Their place follows from the equations: the
rotors sit on the body that carries the joints, about the axis of the first joint on this body.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from delassus.errors import RobotError, listed, unknown
from delassus.model.constraints import Coupling
from delassus.model.joint import WORLD, Joint, JointKind
from delassus.model.mechanism import Body, Mechanism
from delassus.model.reading.description import Transmission, TransmissionEnd
from delassus.model.reading.numbers import floats
from delassus.model.spatial import Inertia

SIMPLE = "SimpleTransmission"
DIFFERENTIAL = "DifferentialTransmission"
FOUR_BAR = "FourBarLinkageTransmission"
_SIZES = {SIMPLE: 1, DIFFERENTIAL: 2, FOUR_BAR: 2}
"""Number of joints, and of actuators, by the type of the transmission."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Rotor:
    """A rotor: joint i of the robot that is extended, its body, and the coupling that turns it."""

    joint: Joint
    body: Body
    coupling: Coupling


def rotors(
    robot: Mechanism,
    transmissions: Sequence[Transmission],
    inertias: Mapping[str, float | Mapping[str, float]],
) -> list[Rotor]:
    """Return the rotors of the transmissions that have rotor inertias.

    Parameters
    ----------
    robot : the tree without rotors.
    transmissions : all transmissions of the description.
    inertias : by name of the transmission, the inertia of each of its rotors about its axis
        [kg·m²], or an inertia by name of the actuator.

    Raises
    ------
    RobotError
        If a transmission or actuator is unknown, has a type whose equations are not known, another
        number of joints or actuators than its type, an unknown joint, or no sound reduction.
    """
    found: list[Rotor] = []
    taken = {joint.name for joint in robot.joints}
    for name, inertia in inertias.items():
        transmission = _named(name, transmissions)
        for rotor in _rotors(robot, transmission, inertia, taken):
            taken.add(rotor.joint.name)
            found.append(rotor)
    return found


def warn_of_unknown_rotors(
    robot: Mechanism, transmissions: Sequence[Transmission], known: Iterable[str]
) -> None:
    """Warn of transmissions that reduce, without inertia of their rotors.

    Parameters
    ----------
    robot : the complete robot; joints with an armature have the inertia of their rotors there.
    transmissions : all transmissions of the description.
    known : names of the transmissions with rotor inertias.
    """
    bare = {joint.name for joint in robot.joints if not joint.armature}
    names = []
    for each in dict.fromkeys(transmissions):
        driven = bare.intersection(joint.name for joint in each.joints)
        if driven and each.name not in known and _reduces(each):
            names.append(each.name)
    if names:
        _log.warning(
            "%s with a reduction, but without the inertia of a rotor: G misses n²J at the joints; "
            "add 'rotors: {%s: J [kg m^2]}' to the loops file, or the armature of the joints",
            listed("transmission", names), names[0],
        )  # fmt: skip


def _reduces(transmission: Transmission) -> bool:
    """Return whether a readable reduction other than ±1 is written."""
    for end in (*transmission.joints, *transmission.actuators, transmission.direct):
        for text in end.reductions:
            try:
                if abs(float(text)) not in (0.0, 1.0):
                    return True
            except ValueError:
                continue  # reported only where the transmission is used
    return False


def _named(name: str, transmissions: Sequence[Transmission]) -> Transmission:
    """Return the transmission that rotors belong to; several that are equal count as one."""
    found = list(dict.fromkeys(each for each in transmissions if each.name == name))
    if not found:
        names = [each.name for each in transmissions]
        raise RobotError(f"rotors: {unknown('transmission', name, names)}")
    if len(found) > 1:
        raise RobotError(f"transmission {name!r} appears {len(found)} times; one is meant")
    return found[0]


def _rotors(
    robot: Mechanism,
    transmission: Transmission,
    inertia: float | Mapping[str, float],
    taken: Iterable[str],
) -> list[Rotor]:
    what = f"transmission {transmission.name!r}"
    kind = _kind(transmission, what)
    joints = _in_order(transmission.joints, "joint", _SIZES[kind], transmission, what)
    actuators = transmission.actuators
    if kind == SIMPLE and transmission.in_ros2_control and not actuators:
        actuators = (TransmissionEnd(""),)  # ros2_control adds one, too
    actuators = _in_order(actuators, "actuator", _SIZES[kind], transmission, what)
    single = {joint.name: joint for joint in robot.joints if joint.kind.nv == 1}
    for end in joints:
        if end.name not in single:
            raise RobotError(f"{what}: {unknown('joint', end.name, single)} (of one freedom)")
    driven = [single[end.name] for end in joints]
    factors = _factors(kind, joints, actuators, transmission, what)
    offsets = [_number(end.offsets, 0.0, f"{what}: joint {end.name!r}: offset") for end in joints]
    by_actuator = _inertias(inertia, actuators, what)
    mount = _mount(robot, driven, what)
    found, names = [], set(taken)
    for actuator, row in zip(actuators, factors, strict=True):
        name = _free_name(actuator.name, transmission.name, names, what)
        names.add(name)
        about_axis = by_actuator[actuator.name] * np.outer(mount.axis, mount.axis)
        ratios = [(end.name, factor) for end, factor in zip(joints, row, strict=True) if factor]
        offset = -sum(factor * o for factor, o in zip(row, offsets, strict=True))
        alone = len(actuators) == 1
        found.append(
            Rotor(
                Joint(name, JointKind.REVOLUTE, mount.parent, mount.placement, mount.axis),
                Body(name, Inertia(rotational=about_axis)),
                Coupling(
                    transmission.name if alone else f"{transmission.name}/{actuator.name}",
                    ((name, -1.0), *ratios),
                    offset,
                ),
            )
        )
    return found


def _kind(transmission: Transmission, what: str) -> str:
    """Return the type of a transmission; of one joint and no known type, it is a simple one."""
    kind = transmission.kind.rpartition("/")[2].rpartition("::")[2]
    if kind in _SIZES:
        return kind
    if len(transmission.joints) > 1 or len(transmission.actuators) > 1:
        raise RobotError(
            f"{what} has {len(transmission.joints)} <joint> and {len(transmission.actuators)} "
            f"<actuator>, but an {unknown('type', kind or 'none', _SIZES)}; write its equations "
            "as couplings, with the rotors as links"
        )
    return SIMPLE


def _in_order(
    ends: Sequence[TransmissionEnd], tag: str, size: int, transmission: Transmission, what: str
) -> tuple[TransmissionEnd, ...]:
    """Return the joints or actuators in the order of their roles; without roles, as written."""
    if len(ends) != size:
        raise RobotError(
            f"{what} has {len(ends)} <{tag}>; its type has {size}: write other transmissions as "
            "couplings, with the rotors as links"
        )
    if len({end.name for end in ends}) < size:
        raise RobotError(f"{what}: <{tag} name={ends[0].name!r}> appears twice")
    roles = [f"{tag}{i + 1}" for i in range(size)]
    stated = [end.role for end in ends]
    if size == 1 or not any(stated):
        return tuple(ends)
    if sorted(stated) != roles:
        raise RobotError(f"{what}: the roles of its <{tag}> are {stated}, expected {roles}")
    if transmission.in_ros2_control and stated != roles:
        raise RobotError(
            f"{what}: the roles of its <{tag}> are {stated}, but ros2_control reads reductions in "
            f"the order of the document; write {roles[0]!r} first"
        )
    return tuple(sorted(ends, key=lambda end: end.role))


def _factors(
    kind: str,
    joints: Sequence[TransmissionEnd],
    actuators: Sequence[TransmissionEnd],
    transmission: Transmission,
    what: str,
) -> list[list[float]]:
    """Return, for each actuator, the factor of each joint."""
    if kind == SIMPLE:
        return [[_simple_reduction(joints[0], actuators[0], transmission, what)]]
    # ROS 1 refuses an actuator without a reduction, ROS 2 takes 1.
    default = 1.0 if transmission.in_ros2_control else None
    n1, n2 = (_reduction(end, 1.0, f"{what}: joint {end.name!r}") for end in joints)
    a1, a2 = (_reduction(end, default, f"{what}: actuator {end.name!r}") for end in actuators)
    if kind == DIFFERENTIAL:
        return [[a1 * n1, a1 * n2], [a2 * n1, -a2 * n2]]
    return [[a1 * n1, 0.0], [a2, a2 * n2]]


def _simple_reduction(
    joint: TransmissionEnd, actuator: TransmissionEnd, transmission: Transmission, what: str
) -> float:
    """Return the reduction, wherever it is written.

    ROS 1 has it in the actuator, ROS 2 in the joint, older descriptions in the transmission.
    """
    texts = (*joint.reductions, *actuator.reductions, *transmission.direct.reductions)
    values = [_checked_reduction(text, what) for text in texts]
    if not values and transmission.in_ros2_control:
        return 1.0
    apart = [value for value in values if value != 1.0]
    if not values or len(apart) > 1:
        raise RobotError(
            f"{what} has {len(values)} <mechanicalReduction>: a rotor is geared to one joint by "
            "one actuator with one reduction; write others as couplings"
        )
    return apart[0] if apart else 1.0


def _reduction(end: TransmissionEnd, default: float | None, what: str) -> float:
    if len(end.reductions) == 1:
        return _checked_reduction(end.reductions[0], what)
    if end.reductions or default is None:
        raise RobotError(f"{what} has {len(end.reductions)} <mechanicalReduction>, expected one")
    return default


def _checked_reduction(text: str, what: str) -> float:
    value = float(floats(text, 1, f"{what}: mechanicalReduction")[0])
    if value == 0.0:
        raise RobotError(f"{what}: mechanicalReduction is 0.0; expected a number other than 0")
    return value


def _number(texts: Sequence[str], default: float, what: str) -> float:
    if len(texts) > 1:
        raise RobotError(f"{what} appears {len(texts)} times; one is meant")
    return float(floats(texts[0], 1, what)[0]) if texts else default


def _inertias(
    inertia: float | Mapping[str, float], actuators: Sequence[TransmissionEnd], what: str
) -> Mapping[str, float]:
    """Return the inertia [kg·m²] of each actuator's rotor."""
    names = [each.name for each in actuators]
    if not isinstance(inertia, Mapping):
        return dict.fromkeys(names, inertia)
    for name in inertia:
        if name not in names:
            raise RobotError(f"rotors: {what}: {unknown('actuator', name, names)}")
    for name in names:
        if name not in inertia:
            raise RobotError(f"rotors: {what}: the inertia of actuator {name!r} is missing")
    return inertia


def _mount(robot: Mechanism, driven: Sequence[Joint], what: str) -> Joint:
    """Return the joint on whose parent the rotors sit, with its axis.

    The parent is the nearest body that carries all driven joints.
    """
    paths = [[*robot.path(joint.parent), WORLD] for joint in driven]
    common = next(body for body in paths[0] if all(body in path for path in paths))
    for joint in driven:
        if joint.parent == common:
            return joint
    names = [joint.name for joint in driven]
    raise RobotError(
        f"{what}: {listed('joint', names)} are on bodies that other joints move, so the place of "
        "the rotors is not known; write the rotors as links, with couplings"
    )


def _free_name(actuator: str, transmission: str, taken: Iterable[str], what: str) -> str:
    """Return the name of a rotor: of its actuator, with the transmission's where that is taken."""
    taken = set(taken)
    for name in (actuator, f"{transmission}/{actuator}" if actuator else transmission):
        if name and name not in taken:
            return name
    raise RobotError(
        f"{what}: the rotor takes the name of the actuator, {actuator!r}; it must be that of "
        "no joint"
    )
