"""Constraints that close the tree: from names of links and joints to joints and bodies."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence, Set

from delassus.errors import RobotError, unknown
from delassus.model.clusters import groups_of, independent_joints
from delassus.model.constraints import Coupling, FunctionConstraint, Loop
from delassus.model.joint import Joint
from delassus.model.mechanism import Frame, Mechanism, MechanismT
from delassus.model.reading.bodies import to_lock_it
from delassus.model.reading.description import (
    Description,
    JointDescription,
    LinkCoupling,
    LinkLoop,
    Mimic,
)
from delassus.model.reading.link_tree import listed
from delassus.model.reading.transmissions import rotors
from delassus.model.reading.yaml import SideFile

_log = logging.getLogger(__name__)


def closed(
    robot: MechanismT,
    description: Description,
    side: SideFile,
    functions: Sequence[FunctionConstraint],
    lock: Mapping[str, float],
) -> MechanismT:
    """Return the tree `robot` with the constraints of the URDF, the side file and `functions`.

    Rotors come after all other joints and have inertia about their axis alone: their mass is
    part of the link that carries them.

    Parameters
    ----------
    lock : joints that are locked afterwards, which may mimic a joint that does not move.

    Raises
    ------
    RobotError
        If a link or joint is unknown, a loop is between links of one body, a coupling is not
        between two branches, mimic joints follow each other in a circle, or a transmission
        with rotors cannot be read.
    """
    joints, bodies, frames = list(robot.joints), list(robot.bodies), list(robot.frames.values())
    couplings = [_coupling(robot, each) for each in description.couplings.values()]
    couplings += _mimics(robot, description.joints, lock)
    for rotor in rotors(robot, description.transmissions, side.rotors):
        joints.append(rotor.joint)
        bodies.append(rotor.body)
        couplings.append(rotor.coupling)
    loops = [_loop(robot.frames, each) for each in (*description.loops.values(), *side.loops)]
    couplings += side.couplings
    for name in side.motors:
        if name not in {joint.name for joint in joints}:
            raise RobotError(f"name_mot: {unknown('joint', name, robot.joint_names)}")
    return robot.replaced(
        joints=joints,
        bodies=bodies,
        frames=frames,
        couplings=couplings,
        loops=loops,
        independent=side.independent,
        functions=functions,
    )


def with_independents(
    robot: MechanismT,
    described: Mapping[str, JointDescription],
    motors: Sequence[str],
    held: Set[str],
) -> MechanismT:
    """Return the closed robot with all joints that are stated to be independent.

    Parameters
    ----------
    robot : the robot, with the names of the side file.
    motors : joints with motors, of the side file.
    held : joints that are locked.

    Raises
    ------
    RobotError
        If all joints of a cluster are stated to be dependent, or nothing determines one.
    """
    named = robot.independent
    _check_determined(robot, described, {*named, *held})
    independent = (*named, *_stated(robot, described, named), *_led(robot, motors))
    return robot.with_constraints(independent=independent)


def _stated(
    robot: Mechanism, described: Mapping[str, JointDescription], named: Sequence[str]
) -> list[str]:
    """Return the joints that URDF+ states to be independent.

    Names of the side file count before them. URDF+'s default, true, counts only beside a
    joint of the same cluster that says something.
    """
    independent = []
    for group in groups_of(robot):
        names = [robot.joints[joint].name for joint in group.joints]
        stated = {name: described[name].independent for name in names if name in described}
        is_stated = any(value is not None for value in stated.values())
        if not group.is_ordinary and is_stated and not set(names) & set(named):
            others = [name for name, value in stated.items() if value is not False]
            if not others:
                raise RobotError(
                    f"{group.described()}: all joints of the description in it, "
                    f'{listed(list(stated))}, are independent="false"; say so of fewer, or name '
                    "the independent ones in the loops file"
                )
            independent += others
    return independent


def _check_determined(
    robot: Mechanism, described: Mapping[str, JointDescription], known: Set[str]
) -> None:
    """Refuse joints that are stated to be dependent but that no constraint ties.

    The constraint is misspelt or was removed; without it the robot would be open.

    Parameters
    ----------
    known : joints that are locked, or that the side file states to be independent.
    """
    tied = {
        robot.joints[joint].name
        for group in groups_of(robot)
        if not group.is_ordinary
        for joint in group.joints
    }
    for joint in described.values():
        # On a fixed joint the statement means nothing; names of the side file count before it.
        if joint.independent is not False or joint.kind is None or joint.name in known:
            continue
        names = {f"{joint.name}_{letter}" for letter in joint.chain} or {joint.name}
        if not names <= tied | known:
            raise RobotError(
                f'joint {joint.name!r} is independent="false", but no loop, coupling or mimic '
                "determines it, and no function given to Robot.from_urdf; add what does, or take "
                "the statement away"
            )


def _led(robot: Mechanism, motors: Sequence[str]) -> list[str]:
    """Return the independent joints of clusters with motors; motors are preferred."""
    led = {i for i, joint in enumerate(robot.joints) if joint.name in motors}
    return [
        robot.joints[joint].name
        for group in groups_of(robot)
        if not group.is_ordinary and led.intersection(group.joints)
        for joint in independent_joints(group, led)
    ]


def _coupling(robot: Mechanism, described: LinkCoupling) -> Coupling:
    what = f"coupling {described.name!r}"
    paths = [
        robot.path(_frame(robot.frames, link, what).body)
        for link in (described.predecessor, described.successor)
    ]
    common = set(paths[0]) & set(paths[1])
    branches = [[robot.joints[body] for body in path if body not in common] for path in paths]
    if not (branches[0] and branches[1]):
        raise RobotError(
            f"{what}: no joint moves {described.predecessor!r} against {described.successor!r} "
            "on either side of what carries both; a coupling is between two branches"
        )
    # The successor's joints first: where nothing is stated, rotors are to be dependent.
    ratios = [(joint.name, -1.0) for joint in branches[1]]
    ratios += [(joint.name, described.ratio) for joint in branches[0]]
    return Coupling(described.name, tuple(ratios))


def _mimics(
    robot: Mechanism, described: Mapping[str, JointDescription], lock: Mapping[str, float]
) -> list[Coupling]:
    single = [joint.name for joint in robot.joints if joint.kind.nv == 1]
    mimics = {
        name: joint.mimic
        for name, joint in described.items()
        if joint.mimic is not None and (joint.mimic.joint in single or name not in lock)
    }
    for name, mimic in mimics.items():
        what = f"joint {name!r}: <mimic>"
        if name not in single:
            raise RobotError(f"{what}: only revolute and prismatic joints can follow another")
        if mimic.joint in described and mimic.joint not in single:
            raise RobotError(f"{what}: joint {mimic.joint!r} is not revolute or prismatic")
        if mimic.joint not in single:
            raise RobotError(
                f"{what}: {unknown('joint', mimic.joint, single)}; or lock it: {to_lock_it(name)}"
            )
        _check_ends(name, mimics)
    for name in mimics:
        _warn_of_limits(name, mimics, {joint.name: joint for joint in robot.joints}, lock)
    return [
        Coupling(
            f"{name} mimics {mimic.joint}",
            ((name, 1.0), (mimic.joint, -mimic.multiplier)),
            -mimic.offset,
        )
        for name, mimic in mimics.items()
    ]


def _check_ends(name: str, mimics: Mapping[str, Mimic]) -> None:
    """Refuse a joint that follows itself, directly or by way of other joints."""
    chain = [name]
    while chain[-1] in mimics:
        chain.append(mimics[chain[-1]].joint)
        if chain[-1] in chain[:-1]:
            shown = " -> ".join(repr(each) for each in chain[chain.index(chain[-1]) :])
            raise RobotError(f"joint {name!r}: <mimic>: joints follow each other: {shown}")


LIMIT_TOLERANCE = 1e-6
"""Largest distance [rad or m] by which a followed joint may move a joint beyond its limits
without a warning."""


def _warn_of_limits(
    name: str, mimics: Mapping[str, Mimic], joints: Mapping[str, Joint], lock: Collection[str]
) -> None:
    """Warn of a follower that the limits of the joint that it follows put outside its own.

    Published grippers have followers that turn the other way, with the limits of their leader.
    Locked joints, and followers of locked joints, stay where they are.
    """
    own, multiplier, offset = joints[name], 1.0, 0.0
    while name in mimics:
        offset += multiplier * mimics[name].offset
        multiplier *= mimics[name].multiplier
        name = mimics[name].joint
    leader = joints[name]
    if not {own.name, leader.name}.isdisjoint(lock):
        return
    low, high = sorted(multiplier * end + offset for end in (leader.lower, leader.upper))
    if max(own.lower - low, high - own.upper) > LIMIT_TOLERANCE:
        _log.warning(
            "joint %r: limits [%g, %g] are not kept: it follows joint %r, whose limits put it in "
            "[%g, %g]",
            own.name, own.lower, own.upper, leader.name, low, high,
        )  # fmt: skip


def _loop(frames: Mapping[str, Frame], described: LinkLoop) -> Loop:
    what = f"loop {described.name!r}"
    ends = [_frame(frames, link, what) for link in (described.predecessor, described.successor)]
    if ends[0].body == ends[1].body:
        first, second = described.predecessor, described.successor
        links = f"link {first!r}" if first == second else f"links {first!r} and {second!r}"
        raise RobotError(f"{what} is between a body and itself: {links} cannot move apart")
    return Loop(
        described.name,
        described.kind,
        ends[0].body,
        ends[1].body,
        ends[0].placement @ described.predecessor_placement,
        ends[1].placement @ described.successor_placement,
        described.axis,
    )


def _frame(frames: Mapping[str, Frame], link: str, what: str) -> Frame:
    if link not in frames:
        raise RobotError(f"{what}: {unknown('link', link, frames)}")
    return frames[link]
