"""``delassus view``: a robot in the browser, whose joints and contacts one moves."""

from __future__ import annotations

import argparse
import sys
import time
import webbrowser
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from delassus_ros.cli.commands import closure_of, refuse_reference
from delassus_ros.cli.description import Description
from delassus_ros.cli.options import (
    add_contacts,
    add_reference,
    add_robot,
    described,
    given_joints,
    problem_with,
)
from delassus_ros.cli.proposals import pose_of
from delassus_ros.cli.report import Report, about, headline
from delassus_ros.closure import Closure
from delassus_ros.command_line import duration, positive
from delassus_ros.errors import InputError, unknown
from delassus_ros.model.joint import JointKind
from delassus_ros.model.robot import Robot
from delassus_ros.model.spatial import Array
from delassus_ros.needs import missing
from delassus_ros.problem import Problem
from delassus_ros.solver.solver import DelassusSolver
from delassus_ros.stopping import StopRequest

if TYPE_CHECKING:
    from delassus_ros.drawing.snapshot import Photographer
    from delassus_ros.drawing.viewer import Viewer

_PORT = 8080
_TURN, _SLIDE = np.pi, 1.0
"""Half the range of the slider of a joint without limits [rad, m]."""


def add_view(parser: argparse.ArgumentParser) -> None:
    """Add the robot, its contacts and first pose, and the page."""
    add_robot(parser)
    add_contacts(parser, required=False, more=" (default: the ends of its limbs)")
    add_reference(parser)
    parser.set_defaults(axes="contact")
    parser.add_argument(
        "--q",
        metavar="JOINT=VALUE,…",
        help="first positions of some joints, in rad and m (default: 0, or the middle of limits "
        "that exclude 0)",
    )
    parser.add_argument(
        "--forces",
        nargs="?",
        type=positive,
        const=0.7,
        metavar="FRICTION",
        help="show contact forces in friction cones, of a robot that holds its pose on level "
        "ground (default: coefficient %(const)s)",
    )
    add_page(parser)


def add_page(parser: argparse.ArgumentParser) -> None:
    """Add the page of the viewer, and how long it is served."""
    parser.add_argument(
        "--port", type=int, default=_PORT, help="port of the page (default: %(default)s)"
    )
    parser.add_argument(
        "--no-browser", action="store_true", help="print the address, but open no browser"
    )
    parser.add_argument(
        "--seconds", type=duration, metavar="S", help="how long (default: until Ctrl-C)"
    )


def view(options: argparse.Namespace) -> Report:
    """Show a robot in the browser until a stop is requested."""
    refuse_without_viser("delassus view")
    from delassus_ros.drawing.snapshot import Photographer, force_problem
    from delassus_ros.drawing.viewer import Viewer

    description = described(options)
    problem = problem_with(options, description)
    robot = problem.robot
    closure = closure_of(options, robot) if robot.is_closed else None
    if closure is None:
        refuse_reference(options, robot)
    start = first_pose(robot, closure, options.q)
    shapes = shapes_of(description, robot)
    if options.forces is not None:
        problem = force_problem(problem)
    solver = compiled(problem)
    with StopRequest() as stop:
        viewer = Viewer(robot, shapes, problem.contacts.names, options.port)
        try:
            photographer = Photographer(solver, options.forces, viewer.soles(problem.contacts))
            viewer.add_dials(dials(robot, start))
            viewer.activate(photographer.standing(q_at(robot, closure, start)))
            draw = drawing(viewer, photographer, closure, start)
            draw()
            announce(viewer.address, options)
            end = np.inf if options.seconds is None else time.monotonic() + options.seconds
            viewer.run(draw, lambda: stop.requested or time.monotonic() > end)
        finally:
            viewer.close()
    data = {**about(problem), "address": viewer.address, "shapes": len(shapes.shapes),
            "unread": list(shapes.unread)}  # fmt: skip
    return Report(headline(problem), data)


def drawing(
    viewer: Viewer, photographer: Photographer, closure: Closure | None, start: Mapping[str, float]
) -> Callable[[], None]:
    """Return a function that draws the robot as the sliders and boxes of a viewer say.

    Parameters
    ----------
    start : first positions of the moved joints, at which loops close.
    """
    robot = photographer.robot
    latest = [q_at(robot, closure, start)]

    def draw() -> None:
        warning = ""
        try:
            latest[0] = q_at(robot, closure, {**start, **viewer.positions})
        except InputError as error:
            warning = str(error)
        viewer.show(photographer.snapshot(latest[0], viewer.active), warning)

    return draw


def refuse_without_viser(program: str) -> None:
    """Refuse to show a page without the packages that do.

    Raises
    ------
    InputError
        If a package is missing; names the command that installs it.
    """
    lacking = missing(program, "viser")
    if lacking is not None:
        raise InputError(lacking)


def shapes_of(description: Description, robot: Robot) -> Any:
    """Return the visual shapes of a robot; a line on standard error names what is not read."""
    from delassus_ros.drawing.shapes import Shapes

    if description.model is not None:
        shapes = Shapes.of_mujoco(robot, description.model)
    else:
        shapes = Shapes.of_urdf(robot, description.document, description.folder)
    if shapes.unread:
        more = f", and {len(shapes.unread) - 1} more" if len(shapes.unread) > 1 else ""
        print(f"warning: not drawn: {shapes.unread[0]}{more}", file=sys.stderr)
    return shapes


def compiled(problem: Problem) -> DelassusSolver:
    """Return the solver of a problem; a line on standard error says that it is compiled."""
    rows = problem.contacts.rows
    print(f"compiling {rows} rows of {problem.robot.name} ...", file=sys.stderr, flush=True)
    began = time.monotonic()
    solver = DelassusSolver(problem, "auto")
    print(f"ready after {time.monotonic() - began:.1f} s", file=sys.stderr, flush=True)
    return solver


def first_pose(robot: Robot, closure: Closure | None, text: str | None) -> dict[str, float]:
    """Return the first positions of the joints that are moved, by name [rad, m].

    Raises
    ------
    InputError
        If a joint is unknown or has no slider.
    """
    moved = {joint.name for joint in robot.joints if joint.kind.nq == 1}
    start = {name: value for name, value in pose_of(robot).items() if name in moved}
    if closure is not None:
        moved &= set(closure.independent)
        entries = dict(zip((joint.name for joint in robot.joints), robot.q_offsets, strict=True))
        start = {name: float(closure.reference[entries[name]]) for name in start if name in moved}
    for name, value in {} if text is None else given_joints("--q", text).items():
        if name not in start:
            raise InputError(f"--q: {unknown('joint', name, start)}")
        start[name] = value
    return start


def q_at(robot: Robot, closure: Closure | None, positions: Mapping[str, float]) -> Array:
    """Return q (nq,) at the positions of moved joints.

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
            measured[joint.name] = closure.reference[offset : offset + joint.kind.nq]
    result = closure.solve(measured)
    if not result.status.is_valid:
        raise InputError(f"the loops do not close: {result.about}")
    return result.q


def dials(robot: Robot, start: Mapping[str, float]) -> dict[str, list[Any]]:
    """Return the sliders of joints, in groups by limb."""
    from delassus_ros.drawing.viewer import Dial

    groups: dict[str, list[Dial]] = {}
    children: dict[int, int] = {}
    for joint in robot.joints:
        children[joint.parent] = children.get(joint.parent, 0) + 1
    label: dict[int, str] = {}
    for i, joint in enumerate(robot.joints):
        alone = joint.parent in label and children[joint.parent] == 1
        label[i] = label[joint.parent] if alone else joint.name
        if joint.kind is JointKind.ROOT:
            del label[i]
        if joint.name not in start:
            continue
        angle = joint.kind is JointKind.REVOLUTE
        reach = _TURN if angle else _SLIDE
        low = joint.lower if np.isfinite(joint.lower) else start[joint.name] - reach
        high = joint.upper if np.isfinite(joint.upper) else start[joint.name] + reach
        if low < high:
            dial = Dial(joint.name, "rad" if angle else "m", low, high, start[joint.name])
            groups.setdefault(label[i], []).append(dial)
    return groups


def announce(address: str, options: argparse.Namespace) -> None:
    """Print the address of the page, and open it in a browser if there is one."""
    print(f"{address}  (Ctrl-C ends it)", file=sys.stderr, flush=True)
    if not options.no_browser:
        webbrowser.open(address)
