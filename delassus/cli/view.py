"""``delassus view``: a robot in the browser, whose joints and contacts one moves."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from delassus.cli.component import Played, component_of
from delassus.cli.options import (
    add_contacts,
    add_reference,
    add_robot,
    described,
    given_joints,
    problem_with,
    warn,
)
from delassus.cli.page import (
    add_first_pose,
    add_page,
    announce,
    dials,
    end_of,
    first_pose,
    named_positions,
    q_at,
    shapes_of,
)
from delassus.cli.parsing import Verb
from delassus.cli.posture import closure_of
from delassus.cli.report import Report, about, compiling, headline, waiting
from delassus.closure import Closure
from delassus.errors import InputError
from delassus.model.robot import Robot
from delassus.model.spatial import Array
from delassus.problem import Problem
from delassus.programs.command_line import positive
from delassus.programs.needs import require
from delassus.programs.stopping import StopRequest
from delassus.robots.description import BUILT_IN
from delassus.robots.wheels import lowest_points
from delassus.solver.friction import ForceSettings
from delassus.solver.solver import DelassusSolver

if TYPE_CHECKING:
    from delassus.drawing.algorithm_choice import AlgorithmChoice
    from delassus.drawing.contact_drag import ContactDrag
    from delassus.drawing.snapshot import Moment, SnapshotSolver
    from delassus.drawing.viewer import Viewer
    from delassus.robots.description import Description

_RECORDING = "a recording (--data)"


def _add_options(parser: argparse.ArgumentParser) -> None:
    """Add the robot, its contacts and first pose, and the page."""
    add_robot(parser, required=False)
    parser.add_argument(
        "--node",
        nargs="?",
        const="delassus_node",
        metavar="NAME",
        help="show the matrices of a running node, on its topics and robot description; ROBOT "
        "then only tells the place of the meshes (default: %(const)s)",
    )
    add_contacts(parser)
    add_reference(parser)
    parser.set_defaults(axes="contact")
    add_first_pose(parser)
    parser.add_argument(
        "--data",
        metavar="FILE",
        help="show the robot over the time of a recording (.mcap, a folder of rosbag2, .db3), or "
        "over the rows of a table of joint positions, in the forms of `delassus trajectory`",
    )
    parser.add_argument(
        "--forces",
        nargs="?",
        type=positive,
        const=ForceSettings.friction,
        metavar="FRICTION",
        help="show contact forces in friction cones, of a robot that holds its pose on level "
        "ground; FRICTION is the coefficient of friction (default: %(const)s)",
    )
    add_page(parser)


def view(options: argparse.Namespace) -> Report:
    """Show a robot in the browser until a stop is requested."""
    if options.node is not None:
        return component_of(options, "a running node (--node)").view_node(options)
    if options.robot is None:
        raise InputError(
            f"name a robot: the path of a URDF or MJCF file, or one of {', '.join(BUILT_IN)}; or "
            "--node for a running node"
        )
    require("delassus view", "viser")
    # trimesh takes an import that is interrupted for a missing package, and goes on.
    with StopRequest() as early:
        from delassus.drawing.algorithm_choice import AlgorithmChoice
        from delassus.drawing.contact_drag import ContactDrag
        from delassus.drawing.reach import Reach
        from delassus.drawing.snapshot import Moment, SnapshotSolver, force_problem
        from delassus.drawing.viewer import Viewer
    if early.requested:
        raise KeyboardInterrupt
    description = described(options)
    recorded, closure, start = replayed(options, description), None, dict[str, Any]()
    drag: ContactDrag | None = None
    if recorded is not None:
        solver, seconds, moments = recorded.solver, recorded.seconds, recorded.moments
    else:
        problem = problem_with(options, description)
        closure = closure_of(options, problem.robot)
        if options.data is None:
            start = first_pose(options, problem.robot, closure, tuple(problem.contacts))
        else:
            seconds, Q = timeline(options, problem)
            moments = [Moment(q) for q in Q]
        solver = compiled(problem if options.forces is None else force_problem(problem))
    problem, robot = solver.problem, solver.problem.robot
    shapes = shapes_of(description, robot)
    with StopRequest() as stop:
        viewer = Viewer(robot, shapes, problem.contacts.names, options.port)
        try:
            snapshots = SnapshotSolver(
                solver, options.forces, viewer.meshes.soles(problem.contacts),
                partial(lowest_points, robot, problem.contacts),
            )  # fmt: skip
            if options.data is None:
                viewer.add_dials(dials(robot, start), named_positions(robot, closure))
                at = by_sliders(viewer, robot, closure, start)

                def reach() -> Reach:
                    return Reach(
                        problem, viewer.ranges,
                        lambda moved: q_at(robot, closure, {**start, **moved}),
                    )  # fmt: skip

                with viewer.sliders:
                    drag = ContactDrag(
                        viewer.server, problem, viewer.size, reach, viewer.changed
                    )
            else:
                at = by_time(viewer, robot, closure, seconds, moments)
            viewer.activate(snapshots.standing(at().q))
            with viewer.picture.folder:
                choice = AlgorithmChoice(viewer.server.gui, snapshots, viewer.changed.set)
            draw = drawing(viewer, snapshots, at, choice, drag)
            draw()
            announce(viewer, options)
            viewer.run(draw, end_of(options, stop))
        finally:
            viewer.close()
    data = {**about(problem), "address": viewer.address, "shapes": len(shapes.shapes),
            "unread": list(shapes.unread), "warnings": options.warnings}  # fmt: skip
    return Report(headline(problem), data, int(bool(options.warnings)))


VIEW = Verb(
    "view",
    "show a robot in the browser, with sliders and live ellipsoids",
    "my_robot.urdf --forces",
    view,
    _add_options,
)


def drawing(
    viewer: Viewer,
    snapshots: SnapshotSolver,
    at: Callable[[], Moment],
    choice: AlgorithmChoice | None = None,
    drag: ContactDrag | None = None,
) -> Callable[[], None]:
    """Return a function that draws the robot at the moment that `at` returns.

    The matrix is that of the chosen algorithm, and sliders follow a contact that is dragged. The
    boxes of contacts follow a moment that knows its active contacts. Where `at` raises an
    InputError, the robot stays where it is, and the page has the message.
    """
    latest = [at()]

    def draw() -> None:
        warning = ""
        if drag is not None:
            moved = drag.follow(viewer.positions)
            viewer.is_held = drag.is_dragged
            if moved:
                viewer.move(moved)
        try:
            latest[0] = at()
        except InputError as error:
            warning = str(error)
        moment = latest[0]
        if moment.active is not None and list(moment.active) != viewer.active:
            viewer.activate(moment.active)
        if choice is not None:
            choice.follow(moment)
        viewer.show(snapshots.snapshot(moment, viewer.active), warning or moment.warning)

    return draw


def by_sliders(
    viewer: Viewer, robot: Robot, closure: Closure | None, start: Mapping[str, Any]
) -> Callable[[], Moment]:
    """Return a function that returns the posture at the sliders of joints.

    Parameters
    ----------
    start : first positions of joints, at which loops close.
    """
    from delassus.drawing.snapshot import Moment

    return lambda: Moment(q_at(robot, closure, {**start, **viewer.positions}))


def by_time(
    viewer: Viewer,
    robot: Robot,
    closure: Closure | None,
    seconds: Array,
    moments: Sequence[Moment],
) -> Callable[[], Moment]:
    """Return a function that returns the moment at a slider over times (N,) [s].

    Parameters
    ----------
    closure : closes loops from the independent joints, where the remaining joints may be missing.
    moments : N states of the robot.
    """
    timeline = viewer.add_timeline(seconds)
    entries = dict(zip((joint.name for joint in robot.joints), robot.q_offsets, strict=True))

    def at() -> Moment:
        k = int(np.searchsorted(seconds, timeline.slider.value, side="right")) - 1
        moment = moments[max(k, 0)]
        if closure is None:
            return moment
        moved = {name: float(moment.q[entries[name]]) for name in closure.independent}
        return replace(moment, q=q_at(robot, closure, moved))

    return at


def replayed(options: argparse.Namespace, description: Description) -> Played | None:
    """Return the states of a recording; None of a table, and where positions alone are read."""
    if options.data is None or not _is_recording(Path(options.data)):
        return None
    return component_of(options, _RECORDING).played(options, description)


def _is_recording(path: Path) -> bool:
    files = path.iterdir() if path.is_dir() else (path,)
    return any({".mcap", ".db3"} & set(file.suffixes) for file in files)


def timeline(options: argparse.Namespace, problem: Problem) -> tuple[Array, Array]:
    """Return times (N,) [s] and configurations (N, nq) of a recording or table."""
    path = Path(options.data)
    if _is_recording(path):
        component = component_of(options, _RECORDING)
        return component.positions(path, problem.robot, partial(warn, options))
    if path.suffix not in (".npy", ".npz", ".csv"):
        require("delassus view", "pyarrow")
    from delassus.tables.joint_tables import Source
    from delassus.tables.trajectory import configurations

    reference = given_joints("--reference", options.reference) if options.reference else None
    return configurations(Source(path), problem, reference)


def compiled(problem: Problem) -> DelassusSolver:
    """Return the solver of a problem; a line on standard error announces the compilation."""
    print(f"{compiling(problem)} ...", file=sys.stderr, flush=True)
    began = time.monotonic()
    with waiting(compiling(problem)):
        solver = DelassusSolver(problem, "auto")
    print(f"ready after {time.monotonic() - began:.1f} s", file=sys.stderr, flush=True)
    return solver
