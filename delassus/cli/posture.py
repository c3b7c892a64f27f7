"""The posture of the command line: joint positions of an option, with closed loops."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delassus.cli.options import (
    NEUTRAL,
    POSE,
    given_joints,
    is_word,
    numbers_of,
    warn,
    way_out,
)
from delassus.closure import Closure
from delassus.contacts import Contact
from delassus.errors import InputError, RobotError, unknown
from delassus.model.ranges import PlausibleRanges, angles
from delassus.model.robot import Robot
from delassus.model.spatial import Array
from delassus.problem import Problem
from delassus.robots.pose import (
    Posture,
    computed_posture,
    default_posture,
    measured_positions,
    named_posture,
    outside_limits,
)
from delassus.visible import visible

_CLOSED = 1e-9
"""Change of a position below which the loops count as closed by the user's value [rad or m]."""


def closure_of(options: argparse.Namespace, robot: Robot) -> Closure | None:
    """Return the closure of a robot's loops, with the reference of the options; None without.

    Raises
    ------
    InputError
        If a loop does not close at the reference or is singular there; names it. If the options
        have a reference, and the robot neither loops nor couplings.
    """
    if not robot.clustered.is_closed:
        if options.reference is not None:
            raise InputError(
                f"--reference is given, but robot {robot.name!r} has no loops or couplings; leave "
                "it out, or say with --loops what closes"
            )
        return None
    values = {} if options.reference is None else given_joints("--reference", options.reference)
    try:
        return Closure(robot, values)
    except RobotError as error:
        raise InputError(f"{error}; here: --reference joint=position,…") from error


def posture_of(options: argparse.Namespace, problem: Problem) -> tuple[Array, dict[str, str]]:
    """Return q (nq,) of --q with closed loops, and lines about the posture and the loops.

    Unnamed joints are as in the default posture. Positions outside of limits that the user did not
    choose, and implausible positions, are reported on standard error.

    Raises
    ------
    InputError
        If a loop does not close at the positions, or is not determined by them; names the loop. If
        no pose has the name that --q is.
    """
    robot, contacts = problem.robot, tuple(problem.contacts)
    closure, facts = closure_of(options, robot), dict[str, str]()
    posture = stated_posture(robot, closure, "--q", options.q, contacts)
    if posture is None:
        q = positions_of(options, robot, "--q", default_posture(robot, closure, contacts).q)
    else:
        q = posture.q
        warn(options, posture.outside)
        if options.q != NEUTRAL:
            facts["posture"] = posture.why
    if closure is None:
        return q, facts
    measured: Mapping[str, Any] | Array = q
    if posture is not None:
        measured = measured_positions(closure.robot, posture.named, q)
    elif "=" in options.q:
        measured = measured_positions(closure.robot, given_joints("--q", options.q), q)
    result = closure.solve(measured)
    if not result.status.is_valid:
        raise InputError(
            f"--q: the loops cannot be closed: {result.status.name.lower().replace('_', ' ')}: "
            f"{result.about}"
        )
    facts["loops"] = _what_was_done(
        closure.robot, measured, result.q, result.residual, result.about
    )  # fmt: skip
    return result.q, facts


def stated_posture(
    robot: Robot,
    closure: Closure | None,
    option: str,
    text: str | None,
    contacts: Sequence[Contact] = (),
) -> Posture | None:
    """Return the posture that an option names, or the default one; None where it has positions.

    Parameters
    ----------
    closure : closure of the robot's loops and couplings; None for a robot without these.
    text : of the option: ``pose``, ``neutral``, the name of a pose of the robot, or positions;
        None without the option.
    contacts : as for :func:`~delassus.robots.pose.default_posture`.

    Raises
    ------
    InputError
        If no pose has this name, or loops do not close at the pose.
    """
    if text is None:
        return default_posture(robot, closure, contacts)
    if text == POSE:
        return computed_posture(robot, closure)
    if text == NEUTRAL:
        q = robot.neutral() if closure is None else closure.reference
        why = "joints at 0" if closure is None else "the reference of the loops"
        outside = [f"{option} {NEUTRAL}: {words}" for words in outside_limits(robot, q)]
        return Posture(q, why, outside)
    if text in robot.named_poses:
        return named_posture(robot, text, closure)
    if is_word(text) and text not in robot.joint_names:
        raise InputError(f"{option}: {unknown('pose', text, (*robot.named_poses, POSE, NEUTRAL))}")
    return None


def positions_of(options: argparse.Namespace, robot: Robot, option: str, start: Array) -> Array:
    """Return q (nq,) of an option [rad, m]; loops stay open.

    Implausible positions are reported on standard error.

    Parameters
    ----------
    start : (nq,) positions of unnamed joints [rad, m].
    """
    text = getattr(options, option.removeprefix("--"))
    if "=" not in text:
        names = [joint.name for joint in robot.joints for _ in range(joint.kind.nq)]
        q = numbers_of(option, text, names)
        named = np.ones(robot.nq, dtype=np.bool_)
    else:
        q, named = _by_name(robot, option, text, start)
    turned = angles(robot) & named
    if options.degrees:
        q[turned] = np.deg2rad(q[turned])
    ranges = PlausibleRanges(robot)
    warn(options, [
        f"{option}: {ranges.words(k, q[k])}{way_out(ranges.is_angle(k), options.degrees)}"
        for k in ranges.all_outside(q).tolist()
        if named[k]
    ])  # fmt: skip
    return q


def _by_name(
    robot: Robot, option: str, text: str, start: Array
) -> tuple[Array, NDArray[np.bool_]]:
    """Return q (nq,) with the joints of an option, in its units, and a mask of these joints."""
    q, named = start.copy(), np.zeros(robot.nq, dtype=np.bool_)
    offsets = {
        joint.name: (offset, joint.kind.nq)
        for joint, offset in zip(robot.joints, robot.q_offsets, strict=True)
        if joint.kind.nq
    }
    for name, value in given_joints(option, text).items():
        if name not in offsets:
            raise InputError(f"{option}: {robot.unknown_joint(name)}")
        first, size = offsets[name]
        if size > 1:
            raise InputError(
                f"{option}: joint {name!r} has {size} entries in q; give all of q, or leave it out"
            )
        q[first], named[first] = value, True
    return q, named


def _what_was_done(
    robot: Robot, measured: Mapping[str, Array] | Array, q: Array, residual: float, about: str
) -> str:
    moved = []
    for i, (joint, offset) in enumerate(zip(robot.joints, robot.q_offsets, strict=True)):
        if joint.kind.nq != 1:
            continue
        if isinstance(measured, Mapping):
            position = measured.get(joint.name)
            known = None if position is None else float(position[0])
        else:
            known = float(measured[offset])
        if known is None or abs(known - q[offset]) > _CLOSED:
            moved.append(f"{visible(robot.joints[i].name)}={q[offset]:.6g}")
    done = f"solved for {', '.join(moved)}" if moved else "closed as given"
    return f"{done}; residual {residual:.1e}" + (f"; warning: {about}" if about else "")
