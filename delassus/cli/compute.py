"""``delassus compute``: the matrix and further outputs at one configuration."""

from __future__ import annotations

import argparse
from collections.abc import Collection

import numpy as np

from delassus.cli import report as text
from delassus.cli.imports import add_import
from delassus.cli.options import (
    add_algorithm,
    add_configuration,
    add_forces,
    add_outputs,
    add_problem,
    forces_of,
    motion_of,
    orientation_of,
    outputs_of,
    problem_of,
)
from delassus.cli.parsing import Verb
from delassus.cli.posture import posture_of
from delassus.cli.report import Report, about, compiling, waiting
from delassus.conditioning.monitor import ConditionSettings, condition_of, scaled_eigenvalues
from delassus.contact_forces import ContactForces, ForceStatus
from delassus.outputs import needed_outputs, row_of
from delassus.problem import Problem
from delassus.solver.friction import active_solver
from delassus.solver.solution import Solution
from delassus.solver.solver import DelassusSolver


def _add_options(parser: argparse.ArgumentParser) -> None:
    add_problem(parser)
    add_configuration(parser)
    add_outputs(parser)
    add_forces(parser)
    add_algorithm(parser, default="pv_osimr")
    add_import(parser)


def compute(options: argparse.Namespace) -> Report:
    """Return the matrix at one configuration."""
    problem = problem_of(options, needed_outputs(outputs_of(options)))
    q, about_q = posture_of(options, problem)
    orientation = orientation_of(options, problem)
    motion = motion_of(options, problem)
    friction = forces_of(options)
    if friction is not None:
        # Refuses contacts without friction before the compilation.
        active_solver(problem, problem.contacts.names, *friction)
    # Last: the compilation takes long.
    with waiting(compiling(problem)):
        solver = DelassusSolver(problem, options.algorithm)
    solution = solver.solve(
        q,
        base_orientation=orientation,
        rates=motion.get("rates"),
        torques=motion.get("torques"),
        gravity=motion.get("gravity"),
    )
    forces = None if friction is None else solution.contact_forces(friction[0], **friction[1])
    labels = _row_labels(problem)
    length = ConditionSettings().characteristic_length
    scales = solution.scales(length)
    eigenvalues = scaled_eigenvalues(solution.matrix, scales)
    condition = float(condition_of(eigenvalues))
    singular = np.isinf(condition)
    smallest = 0.0 if singular else eigenvalues[0]
    weighed = "" if (scales == 1.0).all() else f"; angular rows weighed by {length:g} m"
    facts = [
        ("condition number", ("infinite (G is singular)" if singular
                              else f"{condition:.6g}")
         + (weighed and f"{weighed}, as the node does by default")),
        ("eigenvalues", f"{smallest:.6g} to {eigenvalues[-1]:.6g}{weighed}"),
        ("algorithm", solver.algorithm),
        ("kernel", solver.operations or "not counted for a back end"),
        *about_q.items(),
        *([("forces", _words_of(forces))] if forces is not None else []),
    ]  # fmt: skip
    asked = [name for name in outputs_of(options) if name not in ("G", "forces")]
    lines = [
        text.headline(problem), "", text.matrix(solution.matrix, labels), "",
        *_other_outputs(problem, solution, labels, asked),
    ]  # fmt: skip
    if forces is not None and forces.is_start:
        lines += ["forces", text.matrix(forces.forces.reshape(-1, 1), labels), ""]
    lines.append(text.table(facts))
    data = {
        **about(problem),
        "joints": problem.robot.joint_names,
        "q": q,
        "rows": labels,
        **{port.name: solution.output(port.name) for port in problem.outputs},
        "condition": condition,
        "eigenvalues": eigenvalues,
        "algorithm": solver.algorithm,
        "operations": None if solver.operations is None else solver.operations.total,
        "warnings": options.warnings,
    }
    if forces is None:
        return Report("\n".join(lines), data)
    data |= {
        "forces": forces.forces if forces.is_start else None,
        "forces_status": forces.status.name,
        "forces_residual": forces.residual,
        "forces_law": forces.law,
        "contradiction": [forces.contacts[i] for i in forces.contradiction],
    }
    return Report("\n".join(lines), data, int(forces.status is not ForceStatus.SOLVED))


COMPUTE = Verb(
    "compute",
    "print the matrix at one configuration",
    "arm.urdf --base fixed --contact tool0:surface --q elbow=1.2",
    compute,
    _add_options,
)


def _words_of(forces: ContactForces) -> str:
    """Return status, residual and law of contact forces."""
    more = f": {forces.fault}" if forces.fault else ""
    return f"{forces.status.name}{more}, residual {forces.residual:.2g}, law {forces.law}"


def _other_outputs(
    problem: Problem, solution: Solution, labels: list[str], asked: Collection[str]
) -> list[str]:
    """Return the secondary outputs that were asked for, under their names."""
    lines: list[str] = []
    twist = ("x", "y", "z", "about x", "about y", "about z")
    names = [
        f"{name} {twist[k]}" if k < 6 and problem.robot.base == "floating" else name
        for k, name in enumerate(problem.velocities if len(problem.outputs) > 1 else ())
    ]
    for port in problem.outputs:
        if port.name in asked:
            values = solution.output(port.name)
            rows = labels if row_of(port.name).row_axes[:1] == (0,) else names
            lines += [port.name, text.matrix(values.reshape(len(rows), -1), rows), ""]
    return lines


def _row_labels(problem: Problem) -> list[str]:
    names = ("x", "y", "z", "about x", "about y", "about z")
    return [
        f"{contact.name} {names[row]}"
        for contact in problem.contacts
        for row in range(contact.rows)
    ]
