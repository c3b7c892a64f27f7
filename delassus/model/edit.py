"""Robots made of robots: with some joints locked, or the subtree of one joint alone."""

from __future__ import annotations

import fnmatch
import warnings
from collections.abc import Mapping, Set
from dataclasses import replace

import numpy as np

from delassus import arguments
from delassus.errors import DelassusWarning, RobotError
from delassus.model.constraint_rows import loop_gap
from delassus.model.constraints import Coupling, FunctionConstraint, Loop
from delassus.model.joint import SINGLE, WORLD, Joint, JointKind
from delassus.model.loops import CLOSED_GAP
from delassus.model.mechanism import Body, Frame, Mechanism, MechanismT
from delassus.model.ranges import PlausibleRanges
from delassus.model.spatial import Transform

HELD_COUPLING_TOLERANCE = 1e-9
"""Largest residual of a coupling whose joints are all locked [units of its joints]."""


def _warn(robot: Mechanism, given: Mapping[str, float]) -> None:
    """Warn of implausible positions; not in robots with loops, where dependent joints may be."""
    if robot.is_closed:
        return
    names, values = list(given), np.array(list(given.values()))
    ranges = PlausibleRanges(robot, names)
    for k in ranges.all_outside(values).tolist():
        hint = "; angles are in rad: np.deg2rad(…)" if ranges.is_angle(k) else ""
        # The warning names the line that called Robot.lock or Robot.from_urdf.
        warnings.warn(f"lock: {ranges.words(k, values[k])}{hint}", DelassusWarning, stacklevel=5)


def to_lock(robot: Mechanism, positions: Mapping[str, float]) -> dict[str, float]:
    """Return positions by joint, of names and patterns of joints; see :meth:`Robot.lock`."""
    given = arguments.by_joint("positions to lock", positions, RobotError)
    names = [joint.name for joint in robot.joints]
    single = [joint.name for joint in robot.joints if joint.kind.nq == joint.kind.nv == 1]
    found: dict[str, float] = {}
    for name, value in given.items():
        matching = [name] if name in names else fnmatch.filter(single, name)
        if not matching:
            raise RobotError(f"lock: {robot.unknown_joint(name)}")
        found |= dict.fromkeys(matching, value)
    return found


def _with_followers(robot: Mechanism, held: Mapping[str, float]) -> dict[str, float]:
    """Return the locked joints and all that couplings leave in one position then."""
    found, before = dict(held), -1
    while before != len(found):
        before = len(found)
        for coupling in robot.couplings:
            left = [(name, ratio) for name, ratio in coupling.ratios if name not in found]
            if len(left) == 1 < len(coupling.ratios):
                ((follower, ratio),) = left
                found[follower] = -_moved(coupling, found) / ratio
    return found


def _moved(coupling: Coupling, held: Mapping[str, float]) -> float:
    """Return the part of a coupling's residual that is of locked joints."""
    return coupling.offset + sum(r * held[name] for name, r in coupling.ratios if name in held)


def locked(robot: MechanismT, positions: Mapping[str, float]) -> MechanismT:
    """Return a robot with some joints locked; see :meth:`Robot.lock`."""
    given = to_lock(robot, positions)
    by_name = {joint.name: joint for joint in robot.joints}
    for name, value in given.items():
        if by_name[name].kind not in SINGLE:
            raise RobotError(
                f"lock: joint {name!r} is {by_name[name].kind.label}; expected revolute or "
                "prismatic ones"
            )
        if not np.isfinite(value):
            raise RobotError(f"lock: the position of joint {name!r} is {value}")
    _warn(robot, given)
    given = _with_followers(robot, given)
    # Per body, the body that it is lumped into, and its pose in that body.
    place: dict[int, tuple[int, Transform]] = {WORLD: (WORLD, Transform())}
    joints: list[Joint] = []
    bodies: list[Body] = []
    for i, (joint, body) in enumerate(zip(robot.joints, robot.bodies, strict=True)):
        above, pose = place[joint.parent]
        placement = pose @ joint.placement
        if joint.name in given:
            held = placement @ joint.motion(given[joint.name])
            place[i] = above, held
            if above != WORLD:
                bodies[above] = bodies[above].lumped(body, held)
            continue
        place[i] = len(joints), Transform()
        joints.append(replace(joint, parent=above, placement=placement))
        bodies.append(body)
    frames = [
        Frame(f.name, place[f.body][0], place[f.body][1] @ f.placement)
        for f in robot.frames.values()
    ]
    couplings = [_with_held(each, given) for each in robot.couplings]
    loops = [_carried(each, place) for each in robot.loops]
    return robot.replaced(
        joints=joints,
        bodies=bodies,
        frames=frames,
        couplings=[each for each in couplings if each is not None],
        loops=[each for each in loops if each is not None],
        functions=[_without_held(each, given) for each in robot.functions],
        independent=[name for name in robot.independent if name not in given],
        locked={**robot.locked, **given},
    )


def subtree(robot: MechanismT, joint: str) -> MechanismT:
    """Return the part of a robot that a joint carries; see :meth:`Robot.subtree`."""
    arguments.text("subtree: the joint", joint, "robot.subtree('LF_HAA')", RobotError)
    numbers = {each.name: i for i, each in enumerate(robot.joints)}
    if joint not in numbers or robot.joints[numbers[joint]].kind is JointKind.ROOT:
        raise RobotError(f"subtree: {robot.unknown_joint(joint)}")
    kept = [i for i in range(len(robot.joints)) if numbers[joint] in robot.path(i)]
    place = {WORLD: WORLD, **{i: k for k, i in enumerate(kept)}}
    joints = [
        replace(robot.joints[i], parent=place.get(robot.joints[i].parent, WORLD)) for i in kept
    ]
    names = {each.name for each in joints}
    constraints: list[Coupling | Loop | FunctionConstraint] = [
        *robot.couplings, *robot.loops, *robot.functions
    ]  # fmt: skip
    for constraint in constraints:
        inside = _inside(constraint, names, place)
        if 0 < sum(inside) < len(inside):
            raise RobotError(
                f"subtree: {constraint.name!r} is between what joint {joint!r} carries and "
                "the rest of the robot"
            )
    return robot.replaced(
        joints=joints,
        bodies=[robot.bodies[i] for i in kept],
        frames=[
            Frame(f.name, place[f.body], f.placement)
            for f in robot.frames.values()
            if f.body in kept
        ],
        couplings=[c for c in robot.couplings if all(_inside(c, names, place))],
        loops=[
            replace(c, predecessor=place[c.predecessor], successor=place[c.successor])
            for c in robot.loops
            if all(_inside(c, names, place))
        ],
        functions=[c for c in robot.functions if all(_inside(c, names, place))],
        independent=[name for name in robot.independent if name in names],
    )


def _with_held(coupling: Coupling, held: Mapping[str, float]) -> Coupling | None:
    """Return the coupling between the joints that still move; None if no joint of it moves."""
    left = tuple((name, ratio) for name, ratio in coupling.ratios if name not in held)
    moved = _moved(coupling, held)
    if len(left) == len(coupling.ratios):
        return coupling
    if left:
        return Coupling(coupling.name, left, moved)
    if abs(moved) > HELD_COUPLING_TOLERANCE:
        raise RobotError(
            f"lock: coupling {coupling.name!r} is off by {moved:.3g} at the positions given"
        )
    return None


def _carried(loop: Loop, place: Mapping[int, tuple[int, Transform]]) -> Loop | None:
    """Return the loop between the lumped bodies; None if both ends are on one body."""
    (first, at), (second, there) = place[loop.predecessor], place[loop.successor]
    ends = at @ loop.predecessor_placement, there @ loop.successor_placement
    if first == second:
        off = float(np.abs(loop_gap(loop, *ends)).max())
        if off > CLOSED_GAP:
            raise RobotError(
                f"lock: loop {loop.name!r} is off by {off:.3g} [rad, m] at the positions given; "
                "expected those of a closed configuration, as Closure finds them"
            )
        return None
    return replace(
        loop,
        predecessor=first,
        successor=second,
        predecessor_placement=ends[0],
        successor_placement=ends[1],
    )


def _without_held(constraint: FunctionConstraint, held: Mapping[str, float]) -> FunctionConstraint:
    touched = [name for name in (*constraint.joints, *constraint.dependent) if name in held]
    if touched:
        raise RobotError(
            f"lock: constraint {constraint.name!r} is a function of joint {touched[0]!r}, which "
            "cannot be held apart from it"
        )
    return constraint


def _inside(
    constraint: Coupling | Loop | FunctionConstraint, names: Set[str], place: Mapping[int, int]
) -> list[bool]:
    """Return per end of a constraint, a joint or body, whether the end is in the subtree."""
    if isinstance(constraint, Loop):
        ends = (constraint.predecessor, constraint.successor)
        return [end in place and end != WORLD for end in ends]
    if isinstance(constraint, Coupling):
        return [name in names for name, _ in constraint.ratios]
    return [name in names for name in (*constraint.joints, *constraint.dependent)]
