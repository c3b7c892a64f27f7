"""``delassus view``: a robot in the browser, whose joints and contacts one moves."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from delassus_ros.cli.commands import closure_of, refuse_reference
from delassus_ros.cli.description import BUILT_IN
from delassus_ros.cli.options import (
    add_contacts,
    add_reference,
    add_robot,
    described,
    problem_with,
)
from delassus_ros.cli.page import (
    add_page,
    announce,
    dials,
    end_of,
    first_pose,
    q_at,
    refuse_without_viser,
    shapes_of,
)
from delassus_ros.cli.report import Report, about, compiling, headline, waiting
from delassus_ros.cli.run import view_node
from delassus_ros.closure import Closure
from delassus_ros.command_line import positive
from delassus_ros.errors import InputError
from delassus_ros.problem import Problem
from delassus_ros.solver.solver import DelassusSolver
from delassus_ros.stopping import StopRequest

if TYPE_CHECKING:
    from delassus_ros.drawing.snapshot import Photographer
    from delassus_ros.drawing.viewer import Viewer


def add_view(parser: argparse.ArgumentParser) -> None:
    """Add the robot, its contacts and first pose, and the page."""
    add_robot(parser, required=False)
    parser.add_argument(
        "--node",
        nargs="?",
        const="delassus_node",
        metavar="NAME",
        help="show the matrices of a running node, on its topics and robot description; ROBOT "
        "then only says where meshes are (default: %(const)s)",
    )
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


def view(options: argparse.Namespace) -> Report:
    """Show a robot in the browser until a stop is requested."""
    if options.node is not None:
        return view_node(options)
    if options.robot is None:
        raise InputError(
            f"name a robot: the path of a URDF or MJCF file, or one of {', '.join(BUILT_IN)}; or "
            "--node for a running node"
        )
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
            viewer.run(draw, end_of(options, stop))
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


def compiled(problem: Problem) -> DelassusSolver:
    """Return the solver of a problem; a line on standard error says that it is compiled."""
    print(f"{compiling(problem)} ...", file=sys.stderr, flush=True)
    began = time.monotonic()
    with waiting(compiling(problem)):
        solver = DelassusSolver(problem, "auto")
    print(f"ready after {time.monotonic() - began:.1f} s", file=sys.stderr, flush=True)
    return solver
