"""The page of a robot in the browser: its options, shapes, sliders and first pose."""

from __future__ import annotations

import argparse
import re
import sys
import time
import webbrowser
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from delassus.cli.options import DEFAULT_POSTURE, add_seconds, given_joints, tell
from delassus.cli.posture import stated_posture
from delassus.closure import Closure
from delassus.contacts import Contact
from delassus.errors import InputError, unknown
from delassus.model.joint import JointKind
from delassus.model.robot import Robot
from delassus.model.spatial import Array
from delassus.programs.command_line import Whole
from delassus.programs.stopping import StopRequest
from delassus.robots.description import Description
from delassus.robots.pose import default_posture, named_posture

if TYPE_CHECKING:
    from delassus.drawing.shapes import Shapes
    from delassus.drawing.viewer import JointSlider, Viewer

_TURN, _SLIDE = np.pi, 1.0
"""Half the range of the slider of a joint without limits [rad, m]."""


def add_first_pose(parser: argparse.ArgumentParser) -> None:
    """Add the first posture of the page."""
    parser.add_argument(
        "--q",
        metavar="VALUES",
        help="first posture: the name of a pose of the robot description, as 'home'; 'pose'; "
        "'neutral'; or positions of some joints [rad, m] as hip=0.1,knee=-0.2 (default: "
        f"{DEFAULT_POSTURE})",
    )


def add_page(parser: argparse.ArgumentParser) -> None:
    """Add the page of the viewer, and how long it is served."""
    parser.add_argument(
        "--port",
        type=Whole(0, 65535),
        metavar="N",
        help="TCP port of the page; 0 for any free port (default: 8080, or any free port if 8080 "
        "is in use)",
    )
    parser.add_argument(
        "--no-browser", action="store_true", help="print the address, but open no browser"
    )
    add_seconds(parser)


def end_of(options: argparse.Namespace, stop: StopRequest) -> Callable[[], bool]:
    """Return a function that returns whether to end: on request, or after the options' time."""
    end = np.inf if options.seconds is None else time.monotonic() + options.seconds
    return lambda: stop.requested or time.monotonic() > end


def shapes_of(description: Description, robot: Robot) -> Shapes:
    """Return the visual shapes of a robot; a line on standard error names unreadable shapes."""
    from delassus.drawing.shapes import Shapes

    if description.model is not None:
        shapes = Shapes.of_mujoco(robot, description.model)
    else:
        shapes = Shapes.of_urdf(robot, description.document, description.folder)
    if shapes.unread:
        more = f", and {len(shapes.unread) - 1} more" if len(shapes.unread) > 1 else ""
        print(f"warning: not drawn: {shapes.unread[0]}{more}", file=sys.stderr)
    return shapes


def first_pose(
    options: argparse.Namespace,
    robot: Robot,
    closure: Closure | None,
    contacts: Sequence[Contact] = (),
) -> dict[str, Any]:
    """Return the first positions of joints by name [rad, m]: of those with sliders, as numbers.

    Joints with several entries in q have lists. The positions are those of the posture that --q
    names, or of the default posture and the joints of --q. The choice of the posture and the
    joints outside their limits are written to standard error.

    Raises
    ------
    InputError
        If a joint is unknown or has no slider, or no pose has the name that --q is.
    """
    moved = [joint.name for joint in robot.joints if joint.kind.nq == 1]
    if closure is not None:
        moved = [name for name in moved if name in closure.independent]
    posture = stated_posture(robot, closure, "--q", options.q, contacts)
    named = {} if posture is not None else given_joints("--q", options.q)
    posture = posture or default_posture(robot, closure, contacts)
    start: dict[str, Any] = {}
    for joint, offset in zip(robot.joints, robot.q_offsets, strict=True):
        if joint.name in moved:
            start[joint.name] = float(posture.q[offset])
        elif joint.kind.nq > 1:
            start[joint.name] = posture.q[offset : offset + joint.kind.nq].tolist()
    for name, value in named.items():
        if name not in moved:
            raise InputError(f"--q: {unknown('joint', name, moved)}")
        start[name] = value
    print(f"posture: {posture.why}", file=sys.stderr)
    tell(posture.outside)
    return start


def q_at(robot: Robot, closure: Closure | None, positions: Mapping[str, Any]) -> Array:
    """Return q (nq,) at positions by joint, as those of :func:`first_pose`.

    Raises
    ------
    InputError
        If loops do not close there.
    """
    if closure is None:
        return robot.q(dict(positions))
    measured: dict[str, Any] = dict(positions)
    for joint, offset in zip(robot.joints, robot.q_offsets, strict=True):
        if joint.kind.nq > 1:
            entries = closure.reference[offset : offset + joint.kind.nq]
            measured.setdefault(joint.name, entries)
    result = closure.solve(measured)
    if not result.status.is_valid:
        raise InputError(f"the loops do not close: {result.about}")
    return result.q


def dials(robot: Robot, start: Mapping[str, Any]) -> dict[str, list[JointSlider]]:
    """Return the sliders of joints, in groups by limb, as ``FL, 3 joints``."""
    from delassus.drawing.viewer import JointSlider

    groups: dict[int, list[JointSlider]] = {}
    children: dict[int, int] = {}
    for joint in robot.joints:
        children[joint.parent] = children.get(joint.parent, 0) + 1
    first: dict[int, int] = {}
    for i, joint in enumerate(robot.joints):
        alone = joint.parent in first and children[joint.parent] == 1
        first[i] = first[joint.parent] if alone else i
        if joint.kind is JointKind.ROOT:
            del first[i]
        if joint.name not in start or joint.kind.nq > 1:
            continue
        angle = joint.kind is JointKind.REVOLUTE
        reach = _TURN if angle else _SLIDE
        low = joint.lower if np.isfinite(joint.lower) else start[joint.name] - reach
        high = joint.upper if np.isfinite(joint.upper) else start[joint.name] + reach
        if low < high:
            dial = JointSlider(joint.name, "rad" if angle else "m", low, high, start[joint.name])
            groups.setdefault(first[i], []).append(dial)
    limbs = list(groups.values())
    return dict(zip(labels([[dial.joint for dial in limb] for limb in limbs]), limbs, strict=True))


def named_positions(robot: Robot, closure: Closure | None) -> dict[str, dict[str, float]]:
    """Return the positions of joints at the named poses of a robot, by pose and joint [rad, m].

    Poses at which loops do not close are left out, and so are joints with several entries in q.
    """
    found: dict[str, dict[str, float]] = {}
    for name in robot.named_poses:
        try:
            q = named_posture(robot, name, closure).q
        except InputError:
            continue
        found[name] = {
            joint.name: float(q[offset])
            for joint, offset in zip(robot.joints, robot.q_offsets, strict=True)
            if joint.kind.nq == 1
        }
    return found


def labels(limbs: Sequence[Sequence[str]]) -> list[str]:
    """Return names of limbs from the names of their joints.

    A limb of several joints is called by the words with which all of their names begin, if no
    other limb has these words, and else by its first joint.
    """
    prefixes = [_prefix(joints) for joints in limbs]
    taken = ["", *prefixes, *(joints[0] for joints in limbs)]
    found = []
    for joints, prefix in zip(limbs, prefixes, strict=True):
        name = prefix if taken.count(prefix) == 1 else joints[0]
        found.append(name if len(joints) == 1 else f"{name}, {len(joints)} joints")
    return found


def _prefix(joints: Sequence[str]) -> str:
    """Return the words with which all names begin; the name of a joint alone."""
    words = [re.findall(r"[^\W_]+|[\W_]+", name) for name in joints]
    shared = 0
    while all(len(each) > shared and each[shared] == words[0][shared] for each in words):
        shared += 1
    return "".join(words[0][:shared]).rstrip("_-./: ")


def announce(viewer: Viewer, options: argparse.Namespace) -> None:
    """Print the address of the page, and open the page in a browser if one is installed."""
    print(f"{viewer.address}  (Ctrl-C ends it)", file=sys.stderr, flush=True)
    if not options.no_browser:
        webbrowser.open(viewer.address_once)
