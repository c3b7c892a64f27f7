"""``delassus plot``: a figure of a robot's matrix, its condition and its computing time."""

from __future__ import annotations

import argparse
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from delassus.cli.imports import add_import
from delassus.cli.options import (
    add_algorithm,
    add_configuration,
    add_problem,
    described,
    orientation_of,
    problem_with,
)
from delassus.cli.page import shapes_of
from delassus.cli.parsing import Verb
from delassus.cli.posture import closure_of, positions_of, posture_of, stated_posture
from delassus.cli.report import Report, about, compiling, headline, progress, table, waiting
from delassus.cli.tables import is_table, plot_table
from delassus.closure.samples import closed_inputs
from delassus.conditioning.monitor import ConditionSettings, condition_of, scaled_eigenvalues
from delassus.contacts import row_scales
from delassus.drawing.scene import DrawnRobot
from delassus.drawing.skeleton import Skeleton
from delassus.errors import InputError
from delassus.model.robot import Robot
from delassus.model.spatial import Array, rotation_from_quaternion
from delassus.problem import Problem
from delassus.programs.needs import missing, require
from delassus.robots.description import Description
from delassus.robots.pose import default_posture
from delassus.solver.solver import DelassusSolver

_TITLE = 110
"""Longest line of the title [characters]."""
_STEPS = 200
"""Number of configurations at which conditions are computed."""
_CALLS = 300
_PEER = "ltl"
"""Algorithm whose time is drawn beside that of the chosen algorithm."""


def _add_options(parser: argparse.ArgumentParser) -> None:
    """Add the plotted problem, the file, and the configuration to which the robot moves."""
    add_problem(parser)
    add_configuration(parser, " and --to")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FIGURE.svg",
        help="figure that is written, .svg, .png or .pdf (default: the name of the robot "
        "description with .svg, in the present folder)",
    )
    parser.add_argument(
        "--to",
        metavar="VALUES",
        help="end of the straight line from --q along which condition numbers are plotted, in the "
        "forms of --q; without --to, condition numbers are plotted for "
        f"{_STEPS} random configurations, sorted",
    )
    add_algorithm(parser)
    add_import(parser)


def plot(options: argparse.Namespace) -> Report:
    """Write a figure of four panels: robot, matrix, condition and time; or one of a table."""
    if is_table(options.robot):
        return plot_table(options)
    require("delassus plot", "matplotlib")
    from delassus.drawing import figures

    description = described(options)
    problem = problem_with(options, description)
    robot, contacts = problem.robot, problem.contacts
    q, about_q = posture_of(options, problem)
    orientation = orientation_of(options, problem)
    with waiting(compiling(problem)):
        solver = DelassusSolver(problem, options.algorithm)
    G = solver.solve(q, base_orientation=orientation).matrix
    skeleton = Skeleton(robot)
    kinds = tuple(contact.kind_name for contact in contacts)
    scene = DrawnRobot.of(problem).scene(
        q, contacts.names, contacts.row_offsets, kinds, G, _world(problem, orientation)
    )
    figure, (body, matrix, condition, times) = figures.new_figure(4)
    poses = skeleton.poses(q)
    figures.draw_robot(body, skeleton.bones(poses), scene, _outlines(description, robot, poses))
    figures.draw_matrix(matrix, G, contacts.names, contacts.row_offsets)
    conditions, along = _conditions(options, solver, q, orientation)
    figures.draw_condition(condition, conditions, along)
    lasting = _times(problem, solver.algorithm)
    figures.draw_times(times, lasting)
    figure.suptitle(textwrap.fill(headline(problem), _TITLE))
    output = options.output or f"{Path(options.robot).stem}.svg"
    figures.save(figure, Path(output))
    facts = [
        ("figure", output),
        *about_q.items(),
        ("condition", _range(conditions, along)),
        ("time", f"{1e6 * lasting[solver.algorithm][-1][1]:.2f} µs with all contacts"),
    ]
    data = {
        **about(problem),
        "figure": output,
        "masses": {contact.name: contact.mass.masses for contact in scene.contacts},
        "conditions": conditions,
        "seconds": lasting,
        "warnings": options.warnings,
    }
    return Report("\n".join([headline(problem), "", table(facts)]), data)


PLOT = Verb(
    "plot",
    "draw a robot, its ellipsoids, matrix, condition numbers and times",
    "quadruped.urdf --contact LF_FOOT --contact RH_FOOT --to LF_KFE=-2.0 -o quadruped.svg",
    plot,
    _add_options,
)


def _outlines(description: Description, robot: Robot, poses: Array) -> list[Array]:
    """Return the farthest points (n, 3) of the robot's shapes; none without their packages."""
    if missing("delassus plot", "trimesh", "scipy") is not None:
        return []
    return shapes_of(description, robot).points(poses)


def _range(conditions: Array, along: str) -> str:
    """Return a text about the range of condition numbers, with the configurations."""
    singular = np.isinf(conditions)
    if singular.all():
        return f"singular everywhere, {along}"
    most = "infinite (singular)" if singular.any() else f"{conditions.max():.4g}"
    return f"{conditions.min():.4g} to {most}, {along}"


def _world(problem: Problem, orientation: Array | None) -> Array | None:
    """Return the axes of the rows in the root link; None with contact axes."""
    if problem.axes == "contact":
        return None
    turn: Array = np.eye(3) if orientation is None else rotation_from_quaternion(orientation).T
    return turn


def _conditions(
    options: argparse.Namespace, solver: DelassusSolver, q: Array, orientation: Array | None
) -> tuple[Array, str]:
    """Return condition numbers, and a label of their configurations."""
    problem, robot = solver.problem, solver.problem.robot
    if options.to is not None:
        closure = closure_of(options, robot)
        posture = stated_posture(robot, closure, "--to", options.to, tuple(problem.contacts))
        if posture is None:
            start = default_posture(robot, closure, tuple(problem.contacts)).q
            there = positions_of(options, robot, "--to", start)
        else:
            there = posture.q
        way = np.linspace(q, there, _STEPS)
        along = "from --q to --to"
        if closure is not None:
            names = [robot.joint_names.index(name) for name in closure.independent]
            results = [closure.solve(dict(zip(closure.independent, p[names], strict=True)))
                       for p in way]  # fmt: skip
            way = np.array([r.q for r in results if r.status.is_valid])
            if not len(way):
                raise InputError("--to: nowhere on the way there do the loops close")
        else:
            # Refused by name, as --q has been: positions between the two are smaller.
            solver.solve(there, base_orientation=orientation)
    else:
        along = "share of random configurations"
        way = np.array([inputs["q"] for inputs in closed_inputs(problem, _STEPS)])
    scales = row_scales(problem.contacts, ConditionSettings().characteristic_length)
    turn = None if orientation is None else np.tile(orientation, (len(way), 1))
    matrices = solver.solve_batch(way, base_orientation=turn).matrix
    found = condition_of(scaled_eigenvalues(matrices, scales))
    return (found if options.to is not None else np.sort(found)), along


def _times(problem: Problem, algorithm: str) -> dict[str, list[tuple[int, float]]]:
    """Return per algorithm the median time of a call with the first contact, two, and so on."""
    found: dict[str, list[tuple[int, float]]] = {}
    cases = [(name, k + 1) for name in dict.fromkeys((algorithm, _PEER))
             for k in range(len(problem.contacts))]  # fmt: skip
    labels = [f"{name} with {count} contacts" for name, count in cases]
    for name, count in progress("timing", cases, labels):
        contacts = list(problem.contacts)[:count]
        smaller = Problem(problem.robot, contacts, problem.axes)
        bound = DelassusSolver(smaller, name).bind()
        for port, values in closed_inputs(smaller, 1)[0].items():
            bound.inputs[port][...] = values
        found.setdefault(name, []).append((count, _median(bound.solve)))
    return found


def _median(call: Callable[[], object]) -> float:
    times = np.empty(_CALLS)
    for k in range(_CALLS):
        start = time.perf_counter()
        call()
        times[k] = time.perf_counter() - start
    return float(np.median(times))
