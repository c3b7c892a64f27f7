"""``delassus list`` and ``delassus compare``: the algorithms, and how they do on a problem."""

from __future__ import annotations

import argparse
import inspect
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from delassus import algorithms
from delassus.algorithms.dense import definition
from delassus.algorithms.registry import TracedAlgorithm
from delassus.cli import report as text
from delassus.cli.imports import add_import
from delassus.cli.options import add_problem, problem_of
from delassus.cli.parsing import Verb
from delassus.cli.posture import closure_of
from delassus.cli.report import Report, about, compiling, progress, waiting
from delassus.cli.tables import compare_tables, is_table
from delassus.closure.samples import closed_inputs
from delassus.errors import DelassusError, InputError
from delassus.model.spatial import Array
from delassus.problem import Problem
from delassus.programs.command_line import Whole
from delassus.programs.needs import require
from delassus.samples import random_inputs
from delassus.solver.solver import DelassusSolver

_REFERENCE = "dense"
_COMPARED = 10
"""Number of configurations at which algorithms are compared with the reference."""
_POOL = 64
"""Number of configurations with closed loops that timed calls cycle through."""
_BLOCK = 50
"""Number of timed calls of an algorithm before those of the next algorithm."""
_DISCARDED = 5
"""Number of untimed calls before a block: caches have the code of another algorithm."""
_MOST_CALLS = 1_000_000
"""Largest number of timed calls: their configurations and times are in memory."""


def list_algorithms(_: argparse.Namespace) -> Report:
    """Return all registered algorithms with a line of description, then the unavailable ones."""
    found = []
    for name in algorithms.names():
        algorithm = algorithms.get(name)
        line = (inspect.getdoc(algorithm.definition) or "").partition("\n")[0]
        found.append({
            "name": name,
            "kind": "compiled" if isinstance(algorithm, TracedAlgorithm) else "back end",
            "about": line.replace("``", ""),
            "also": [alias for alias, known in algorithms.aliases().items() if known == name],
        })  # fmt: skip
    rows = []
    for entry in found:
        also = f" Also called {', '.join(entry['also'])}." if entry["also"] else ""
        rows.append((entry["name"], entry["kind"], f"{entry['about']}{also}"))
    parts = [text.table(rows)]
    absent = sorted(algorithms.unavailable().items())
    if absent:
        parts += ["", "Not available:", text.table(absent, indent="  ")]
    return Report("\n".join(parts), {"algorithms": found, "unavailable": dict(absent)})


LIST = Verb("list", "list the algorithms", "", list_algorithms, add_import)


def _add_compare(parser: argparse.ArgumentParser) -> None:
    add_problem(parser)
    parser.add_argument(
        "other",
        nargs="?",
        metavar="OTHER.parquet",
        help="second table, if ROBOT is a table: the matrices of both are compared",
    )
    parser.add_argument(
        "--calls",
        type=Whole(1, _MOST_CALLS),
        default=1000,
        metavar="N",
        help="number of timed calls (default: %(default)s)",
    )
    parser.add_argument(
        "--plot",
        metavar="FIGURE.svg",
        help="figure of operations and times that is written, .svg, .png or .pdf",
    )
    add_import(parser)


def compare(options: argparse.Namespace) -> Report:
    """Return a table of all algorithms, operations, time and agreement; or compare two tables."""
    if is_table(options.robot):
        return compare_tables(options)
    if options.other is not None:
        raise InputError(f"{options.robot} is no table of matrices, as {options.other} after it")
    if options.plot is not None:
        require("delassus compare --plot", "matplotlib")
    problem = problem_of(options)
    closure = closure_of(options, problem.robot)
    closed = closure is not None
    if closure is not None:
        samples = closed_inputs(problem, min(_POOL, options.calls), closure=closure)
        compared, reference = samples[:_COMPARED], "the definition"
        expected = [definition(problem, inputs) for inputs in compared]
    else:
        samples = [random_inputs(problem, seed) for seed in range(_COMPARED)]
        compared, reference = samples, _REFERENCE
        with waiting(compiling(problem)):
            expected = _matrices(DelassusSolver(problem, _REFERENCE), compared)
    rows: list[tuple[object, ...]] = [
        ("algorithm", "operations", "sin/cos", "min µs", "median µs", f"error to {reference}")
    ]
    refused, solvers, matrices, measured = [], [], [], []
    for name in progress("compiling", algorithms.names()):
        reason = algorithms.get(name).supports(problem)
        if reason is not None:
            refused.append((name, reason))
            continue
        try:
            solver = DelassusSolver(problem, name)
            matrices.append(_matrices(solver, compared))
        except DelassusError as error:
            # The row of this algorithm has the text, in one line; the comparison goes on.
            refused.append((name, " ".join(str(error).split())))
            continue
        solvers.append(solver)
    pool = np.array([values["q"] for values in samples]) if closed else None
    times_of = _times(problem, solvers, options.calls, pool)
    for solver, found, times in zip(solvers, matrices, times_of, strict=True):
        errors = [
            np.linalg.norm(G - exact) / np.linalg.norm(exact)
            for G, exact in zip(found, expected, strict=True)
        ]
        count = solver.operations
        measured.append({
            "name": solver.algorithm,
            "operations": None if count is None else count.total,
            "sines_cosines": None if count is None else count.sines_cosines,
            "min_us": times.min() * 1e6,
            "median_us": np.median(times) * 1e6,
            "error": np.max(errors),
        })  # fmt: skip
    for entry in measured:
        counts = ("-" if entry[n] is None else entry[n] for n in ("operations", "sines_cosines"))
        lasting = (f"{entry[n]:.2f}" for n in ("min_us", "median_us"))
        rows.append((entry["name"], *counts, *lasting, f"{entry['error']:.1e}"))
    refused += sorted(algorithms.unavailable().items())
    parts = [
        text.headline(problem),
        "",
        text.table(rows, numeric=range(1, 6)),
        "",
        f"Times are for one call from Python, over {options.calls} random configurations"
        + (" that close the loops" if closed else "")
        + ";\ndifferences below some 20 % are the machine's. The error is the largest ‖ΔG‖/‖G‖"
        f"\nof {len(compared)} configurations.",
    ]
    if refused:
        parts += ["", "Not compared:", text.table(refused, indent="  ")]
    data = {**about(problem), "algorithms": measured, "not_compared": dict(refused)}
    if options.plot is not None:
        _plot_comparison(options.plot, text.headline(problem), measured)
        parts += ["", f"wrote {options.plot}"]
    return Report("\n".join(parts), data)


COMPARE = Verb(
    "compare",
    "compare all algorithms: operations, time per call, agreement",
    "quadruped.urdf --contact LF_FOOT --contact RH_FOOT",
    compare,
    _add_compare,
)


def _plot_comparison(path: str, title: str, measured: Sequence[Mapping[str, Any]]) -> None:
    """Write a figure of the operations and times of algorithms."""
    from delassus.drawing import figures

    figure, (counts, times) = figures.new_figure(2, solid=False)
    operations = {e["name"]: e["operations"] for e in measured if e["operations"] is not None}
    figures.draw_bars(counts, operations, "operations of the kernel")
    medians = {e["name"]: e["median_us"] for e in measured}
    figures.draw_bars(times, medians, "median time of a call from Python [µs]")
    figure.suptitle(title)
    figures.save(figure, Path(path))


def _matrices(solver: DelassusSolver, samples: list[dict[str, Array]]) -> list[Array]:
    return [
        solver.solve(values["q"], base_orientation=values.get("base_orientation")).matrix
        for values in samples
    ]


def _times(
    problem: Problem, solvers: Sequence[DelassusSolver], calls: int, pool: Array | None
) -> list[Array]:
    """Return per solver the durations of its calls [s], all at different configurations.

    The solvers run alternately, so that further load of the machine affects all of them. `pool`
    has configurations (count, nq) to cycle through; they are random if it is None.
    """
    bounds = [solver.bind() for solver in solvers]
    for name, values in random_inputs(problem, 0).items():
        for bound in bounds:
            bound.inputs[name][...] = values
    # Quaternions inside q do not change: they must keep their unit norm.
    robot = problem.robot
    joints = zip(robot.joints, robot.q_offsets, strict=True)
    turned = [offset for joint, offset in joints if joint.kind.nq == 1]
    angles = np.random.default_rng(0).uniform(-np.pi, np.pi, (calls, len(turned)))
    if pool is not None:
        angles = np.resize(pool[:, turned], (calls, len(turned)))
    times = [np.empty(calls) for _ in solvers]
    for first in range(0, calls, _BLOCK):
        for bound, found in zip(bounds, times, strict=True):
            q = bound.inputs["q"]
            q[turned] = angles[first]
            for _ in range(_DISCARDED):
                bound.solve()
            for k in range(first, min(first + _BLOCK, calls)):
                q[turned] = angles[k]
                start = time.perf_counter()
                bound.solve()
                found[k] = time.perf_counter() - start
    return times
