"""``delassus trajectory``: matrices of a table of joint positions."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from delassus.cli.imports import add_import
from delassus.cli.options import (
    add_algorithm,
    add_degrees,
    add_problem,
    given_joints,
    names_in,
    problem_of,
    warn,
    way_out,
)
from delassus.cli.parsing import Verb
from delassus.cli.report import Report, about, headline
from delassus.programs.needs import require


def _add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a table of joint positions, and of its outputs."""
    add_problem(parser)
    parser.add_argument(
        "--data",
        required=True,
        metavar="TABLE",
        help="joint positions: a .parquet file with a column per joint or a column of lists, a "
        "folder of such files (as of LeRobot), a .csv file whose first line names the columns, or "
        "an .npy or .npz file",
    )
    parser.add_argument(
        "-o", "--output", required=True, metavar="OUT.parquet", help="table that is written"
    )
    parser.add_argument(
        "--columns",
        default="matrix,effective_mass",
        metavar="NAMES",
        help="columns of OUT besides q, status and condition: any of matrix, effective_mass, J, "
        "MinvJT and M (default: %(default)s)",
    )
    parser.add_argument(
        "--state",
        default="observation.state",
        metavar="COLUMN",
        help="column of lists, or array of an .npz file (default: %(default)s)",
    )
    parser.add_argument(
        "--names", metavar="JOINTS", help="joints of the lists, in their order, as hip,knee"
    )
    add_degrees(parser, "the table")
    parser.add_argument(
        "--others",
        metavar="VALUES",
        help="positions of joints without a column [rad, m], as hip=0.1",
    )
    add_algorithm(parser)
    add_import(parser)


def trajectory(options: argparse.Namespace) -> Report:
    """Write a table of matrices for a table of joint positions."""
    require("delassus trajectory", "pyarrow")
    from delassus.tables.joint_tables import Source
    from delassus.tables.trajectory import map_trajectory

    columns = names_in(options.columns)
    outputs = ["G", *(name for name in columns if name in ("J", "MinvJT", "M"))]
    problem = problem_of(options, outputs)
    source = Source(
        Path(options.data), options.state, names_in(options.names or ""), options.degrees,
        given_joints("--others", options.others) if options.others else None,
    )  # fmt: skip
    reference = None
    if options.reference is not None:
        reference = given_joints("--reference", options.reference)
    began = time.perf_counter()
    written = map_trajectory(
        source, Path(options.output), problem, options.algorithm, columns, reference=reference
    )
    took = time.perf_counter() - began
    order = ""
    if written.of:
        order = f"columns of {written.of}, in order: {', '.join(written.joints)}\n"
    words = (
        f"{headline(problem)}\n{order}{written.rows} configurations, {written.failed} without a "
        f"matrix, in {took:.2f} s\nwrote {options.output}"
    )
    warn(options, [
        f"{found.words}{way_out(found.is_angle, options.degrees)}" for found in written.implausible
    ])  # fmt: skip
    data = {**about(problem), "rows": written.rows, "failed": written.failed, "took": took}
    data |= {"table_joints": written.joints, "warnings": options.warnings}
    return Report(words, {**data, "output": options.output})


TRAJECTORY = Verb(
    "trajectory",
    "compute matrices of a table of positions (NumPy, CSV, Parquet)",
    "quadruped.urdf --contact LF_FOOT --data walk.parquet -o matrices.parquet",
    trajectory,
    _add_options,
)
