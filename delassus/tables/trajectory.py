"""Tables of joint positions to tables of matrices: data sets without messages. Knows no ROS.

A batch kernel computes some thousand rows at a time, so that a table may be larger than memory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from delassus.closure import Closure
from delassus.conditioning.monitor import ConditionSettings, condition_of, scaled_eigenvalues
from delassus.contacts import row_scales
from delassus.errors import InputError, RobotError, unknown
from delassus.model.positions import q_of
from delassus.model.ranges import PlausibleRanges, angles
from delassus.model.robot import Robot
from delassus.model.spatial import Array
from delassus.problem import Problem
from delassus.solver.solver import DelassusSolver
from delassus.tables.joint_tables import Source, columns_of
from delassus.tables.matrix_tables import Column, Table, about, masses

ROWS = 4096
"""Default number of configurations that are computed at once."""
COLUMNS = ("matrix", "effective_mass", "J", "MinvJT", "M")
"""Optional columns of a table besides status and condition; none of them needs velocities."""


@dataclass
class Implausible:
    """A column with positions that its joint cannot have.

    Attributes
    ----------
    column : name of the column in messages.
    is_angle : whether the column has angles, which may be in degrees.
    rows : number of rows with such a position.
    first : text about the first such position, with the joint and its limits.
    """

    column: str
    is_angle: bool
    rows: int
    first: str

    @property
    def words(self) -> str:
        """Text about the column, without a remedy."""
        rows = "1 row" if self.rows == 1 else f"{self.rows} rows"
        return f"{self.column}: positions that cannot be in {rows}; first, {self.first}"


@dataclass(frozen=True)
class Written:
    """Outcome of a table.

    Attributes
    ----------
    rows : number of configurations.
    failed : number of configurations without a matrix.
    implausible : columns with positions that their joints cannot have.
    joints : joints of the columns that were read, in order.
    of : name of the list or array whose columns have no names of their own; else empty.
    """

    rows: int
    failed: int
    implausible: tuple[Implausible, ...] = ()
    joints: tuple[str, ...] = ()
    of: str = ""


def map_trajectory(
    source: Source,
    target: Path,
    problem: Problem,
    algorithm: str = "auto",
    columns: Sequence[str] = ("matrix", "effective_mass"),
    rows: int = ROWS,
    reference: Mapping[str, float] | None = None,
) -> Written:
    """Write a table of matrices, of all contacts, for a table of joint positions.

    Parameters
    ----------
    problem : problem with contact axes or a fixed base: a table of joints has no orientation.
    columns : optional columns, of :data:`COLUMNS`; outputs among them are outputs of the problem.
    rows : number of configurations that are computed at once.
    reference : reference of :class:`~delassus.closure.Closure` for a robot with loops: missing
        and dependent joints are computed, and rows that do not close have no matrix.

    Raises
    ------
    InputError
        If the table cannot be read or written, lacks joints, or a column cannot be computed; names
        the existing ones. If a joint of ``source.others`` has a column, or follows from loops.
    """
    _check_target(source, target)
    ports = {port.name: port for port in problem.outputs}
    for name in columns:
        if name not in COLUMNS:
            raise InputError(unknown("output", name, COLUMNS))
        if name not in ("matrix", "effective_mass") and name not in ports:
            raise InputError(f"output {name!r} is not among the outputs of the problem")
    if any(port.name != "q" for port in problem.inputs):
        raise InputError(
            "a table of joint positions gives q alone, and the problem has the inputs "
            f"{', '.join(port.name for port in problem.inputs)}: take axes 'contact', contacts "
            "that stay where they are, and outputs without velocities"
        )
    solver = DelassusSolver(problem, algorithm)
    closure = Closure(problem, reference) if problem.robot.clustered.is_closed else None
    judge = _Judge(problem.robot)
    batches = _batches(source, problem, rows, closure, judge)
    first = next(batches, None)
    if first is None:
        raise InputError(f"{source.path}: no rows")
    try:
        count, failed = _write(target, problem, solver, columns, first, batches)
    except OSError as error:
        words = error.strerror or str(error)
        raise InputError(f"{target} cannot be written: {words}") from error
    return Written(count, failed, tuple(judge.found.values()), judge.joints, judge.of)


def configurations(
    source: Source, problem: Problem, reference: Mapping[str, float] | None = None
) -> tuple[Array, Array]:
    """Return times (N,) [s] and configurations (N, nq) of a table of joint positions.

    Times are those of the column ``timestamp``, else numbers of rows. Rows whose loops do not
    close are left out.

    Raises
    ------
    InputError
        As for :func:`map_trajectory`.
    """
    closure = Closure(problem, reference) if problem.robot.clustered.is_closed else None
    times: list[Array] = []
    found: list[Array] = []
    count = 0
    for Q, kept in _batches(source, problem, ROWS, closure, _Judge(problem.robot)):
        stamps = kept.get("timestamp")
        rows = np.arange(count, count + len(Q), dtype=np.float64)
        count += len(Q)
        times.append(rows if stamps is None else np.asarray(stamps, dtype=np.float64))
        found.append(Q)
    if not count:
        raise InputError(f"{source.path}: no rows")
    every = np.concatenate(found)
    closed = np.isfinite(every).all(axis=1)
    if not closed.any():
        raise InputError(f"{source.path}: the loops close in none of {count} rows")
    return np.concatenate(times)[closed], every[closed]


def _write(
    target: Path,
    problem: Problem,
    solver: DelassusSolver,
    columns: Sequence[str],
    first: Batch,
    batches: Iterator[Batch],
) -> tuple[int, int]:
    """Write a table, or leave no file; return the numbers of configurations and of failures."""
    table = Table(target, _columns(problem, columns, first[1]), about(problem))
    scales = row_scales(problem.contacts, ConditionSettings().characteristic_length)
    count = failed = 0
    try:
        for Q, kept in chain([first], batches):
            known = np.isfinite(Q).all(axis=1)
            solved = solver.solve_batch(np.nan_to_num(Q))
            status = np.array(solved.status)
            status[~known] = -1
            matrices = np.array(solved.matrix)
            matrices[status != 0] = np.nan
            found: dict[str, Any] = {**kept, "status": status, "q": Q}
            found["condition"] = _conditions(matrices, scales)
            for name in columns:
                if name == "effective_mass":
                    found[name] = masses(matrices, problem.contacts)
                elif name == "matrix":
                    found[name] = matrices.reshape(len(Q), -1)
                else:
                    found[name] = np.array(getattr(solved, name)).reshape(len(Q), -1)
                    found[name][status != 0] = np.nan
            table.write(found)
            count, failed = count + len(Q), failed + int(np.count_nonzero(status))
        table.close()
    except BaseException:
        table.discard()
        raise
    return count, failed


class _Judge:
    """Finds positions outside the plausible ranges, column by column.

    Attributes
    ----------
    found : the columns with such positions, by joint.
    joints, of : joints of the columns of the latest rows, and the list that has them.
    """

    def __init__(self, robot: Robot) -> None:
        self._robot = robot
        self._ranges: dict[tuple[str, ...], PlausibleRanges] = {}
        self.found: dict[str, Implausible] = {}
        self.joints: tuple[str, ...] = ()
        self.of = ""

    def check(self, values: Array, names: tuple[str, ...], of: str) -> None:
        """Check columns (N, joints) of these joints [rad, m]; `of` is the list that has them."""
        self.joints, self.of = names, of
        ranges = self._ranges.get(names)
        if ranges is None:
            ranges = self._ranges[names] = PlausibleRanges(self._robot, names)
        outside = (values < ranges.lower) | (values > ranges.upper)
        for k in np.flatnonzero(outside.any(axis=0)).tolist():
            rows = np.flatnonzero(outside[:, k])
            known = self.found.get(names[k])
            if known is None:
                column = f"column {names[k]!r}"
                if of:
                    column = f"number {k} of {of!r}, joint {names[k]!r}"
                first = ranges.words(k, float(values[rows[0], k]))
                known = Implausible(column, ranges.is_angle(k), 0, first)
                self.found[names[k]] = known
            known.rows += len(rows)


def _check_target(source: Source, target: Path) -> None:
    """Refuse a target that is no Parquet file in an existing folder, or is the source."""
    if target.suffix != ".parquet":
        raise InputError(f"{target}: expected a name that ends in .parquet")
    if not target.parent.is_dir():
        raise InputError(f"{target}: there is no folder {target.parent}")
    if Path(os.path.realpath(target)).is_relative_to(os.path.realpath(source.path)):
        raise InputError(f"{target} is what is read, or in its folder; name another file")


Batch = tuple[Array, dict[str, Any]]
"""Configurations (N, nq), and the copied columns of their rows."""


def _columns(problem: Problem, chosen: Sequence[str], kept: Mapping[str, Any]) -> list[Column]:
    m, k = problem.contacts.rows, len(problem.contacts)
    sizes = {"matrix": m * m, "effective_mass": 3 * k}
    sizes |= {port.name: port.size for port in problem.outputs if port.name != "G"}
    found = [Column(name, "as it was", values.type) for name, values in kept.items()]
    found += [
        Column("status", "0 good; else there is no matrix", "int32"),
        Column("q", "positions, joints as in the file's metadata", size=problem.robot.nq),
        Column("condition", "condition number of the matrix, rows scaled by 0.1 m"),
    ]
    return found + [Column(name, f"{name}, by rows", size=sizes[name]) for name in chosen]


def _conditions(matrices: Array, scales: Array) -> Array:
    found = np.full(len(matrices), np.nan)
    there = np.isfinite(matrices).all(axis=(1, 2))
    found[there] = condition_of(scaled_eigenvalues(matrices[there], scales))
    return found


def _batches(
    source: Source, problem: Problem, rows: int, closure: Closure | None, judge: _Judge
) -> Iterator[Batch]:
    """Yield configurations, with the copied columns; NaN where loops do not close."""
    for values, names, of, kept in columns_of(source, problem.robot.joint_names, rows):
        yield _arranged(values, names, of, source, problem, closure, judge), kept


def _arranged(
    values: Array,
    names: Sequence[str],
    of: str,
    source: Source,
    problem: Problem,
    closure: Closure | None,
    judge: _Judge,
) -> Array:
    """Return q (N, nq) from columns of joints."""
    robot = problem.robot
    others = source.others or {}
    for name in others:
        ignored = "a column" if name in names else ""
        if closure is not None and name in robot.joint_names and name not in closure.independent:
            ignored = "its position from the loops and couplings"
        if ignored:
            raise InputError(
                f"{source.path}: joint {name!r} has {ignored}; expected no other position of it "
                "for all rows"
            )
    known = {**others, **dict.fromkeys(names, 0.0)}
    needed = robot.joint_names if closure is None else closure.independent
    absent = [name for name in needed if name not in known]
    if absent:
        raise InputError(
            f"{source.path}: no positions of joint {', '.join(absent)}; the table has "
            f"{', '.join(names)}; the others can be given for all rows"
        )
    try:
        base = q_of(robot, known)
    except RobotError as error:
        raise InputError(f"{source.path}: {error}") from error
    offsets = {
        joint.name: offset for joint, offset in zip(robot.joints, robot.q_offsets, strict=True)
    }
    entries = [offsets[name] for name in names]
    if source.degrees:
        values = np.where(angles(robot)[entries], np.deg2rad(values), values)
    judge.check(values, tuple(names), of)
    Q = np.tile(base, (len(values), 1))
    Q[:, entries] = values
    if closure is not None:
        for row in Q:
            positions = {name: float(row[offsets[name]]) for name in closure.independent}
            closed = closure.solve(positions)
            row[:] = closed.q if closed.status.is_valid else np.nan
    return Q
