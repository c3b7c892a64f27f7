"""Outputs of a recording: messages in MCAP, which ``ros2 bag play`` plays, and Parquet.

A file has its name only once it is whole: until then it ends in ``.partial``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from delassus_msgs.msg import ContactDynamics, DelassusMatrix, Layout
from delassus_msgs_py import DynamicsReader, MatrixReader, ReceivedMatrix

from delassus.errors import InputError
from delassus.model.spatial import Array
from delassus.tables.matrix_tables import Column, Table, about, episode_of, masses, said_of
from delassus_ros.node.computation import Computation
from delassus_ros.recordings.recorded_file import RecordingError
from delassus_ros.recordings.recording import Recording
from delassus_ros.recordings.replay import Answer
from delassus_ros.recordings.writer import RecordingWriter, type_name

NODE = "/delassus_node"
_MATRIX, _DYNAMICS = type_name(DelassusMatrix), type_name(ContactDynamics)
COLUMNS = ("matrix", "effective_mass", "impulse", "estimated_force", "forces")
"""Optional columns of a table, besides those that every table has, e.g. condition and rank."""
_ROWS = 2048
"""Number of rows that are written as one group."""
_ALWAYS = (
    Column("episode_index", "of the recording; follows from its name", "int64"),
    Column("frame_index", "number of the row in it", "int64"),
    Column("timestamp", "time of the recording since the first row [s]"),
    Column("time", "time of the recording [ns]", "int64"),
    Column("stamp", "of the joint state [ns]; 0 where none is answered", "int64"),
    Column("sequence", "of the message", "uint64"),
    Column("validity", "0 INVALID, 1 DEGRADED, 2 OK", "uint8"),
    Column("reasons", "bits of DelassusMatrix.REASON_*", "uint64"),
    Column("rank", "of the matrix; -1 unknown", "int32"),
    Column("condition", "condition number; -1 unknown"),
)
"""Columns of every table of a recording, in the order in which rows are filled."""

_OF_FORCES = (
    Column("forces_residual", "residual of the law of friction; -1 without forces"),
    Column("forces_validity", "of the forces: 0 INVALID, 1 DEGRADED, 2 OK", "uint8"),
    Column("forces_status", "ContactDynamics.FORCES_*", "uint8"),
    Column("forces_law", "ContactDynamics.LAW_*", "uint8"),
)
"""Columns beside the column ``forces``, named as the fields of the message."""


class Output(Protocol):
    """Output file for answers."""

    def write(self, answer: Answer) -> None:
        """Write the messages of an instant."""

    def close(self) -> None:
        """Give the file its name."""

    def discard(self) -> None:
        """Leave no file behind."""


class McapOutput:
    """Layout, matrices and secondary outputs, as messages on the topics of the node."""

    def __init__(self, path: Path, computation: Computation) -> None:
        self._writer = RecordingWriter(path, {f"{NODE}/layout"})
        self._layout: Layout | None = computation.layout

    def write(self, answer: Answer) -> None:
        """Write the messages of an instant."""
        write = self._writer.write_bytes
        if self._layout is not None:
            self._writer.write(f"{NODE}/layout", answer.time, self._layout)
            self._layout = None
        write(f"{NODE}/delassus", answer.time, answer.matrix, _MATRIX)
        if answer.secondary is not None:
            write(f"{NODE}/dynamics", answer.time, answer.secondary, _DYNAMICS)

    def close(self) -> None:
        """Give the file its name."""
        self._writer.close()

    def discard(self) -> None:
        """Leave no file behind."""
        self._writer.discard()


class ParquetOutput:
    """Table with a row per matrix; rows have room for all contacts, NaN for inactive ones.

    Parameters
    ----------
    columns : optional columns, of :data:`COLUMNS`.
    said : further description of the table: recording, parameters.

    Raises
    ------
    InputError
        If a column needs an output that is not computed.
    """

    def __init__(
        self, path: Path, computation: Computation, columns: Sequence[str], said: Mapping[str, Any]
    ) -> None:
        check_columns(columns, computation)
        self._computation, self._episode = computation, episode_of(said["recording"])
        self._chosen = tuple(columns)
        self._contacts = computation.problem.contacts
        self._reader = MatrixReader()
        self._rows: list[tuple[Any, ...]] = []
        self._matrices: list[Array] = []
        self._impulses: list[Array] = []
        self._estimated: list[Array] = []
        self._dynamics = DynamicsReader()
        self._forces: list[Array] = []
        self._of_forces: list[tuple[Any, ...]] = []
        self._first: int | None = None
        self._count = 0
        layout = computation.layout
        more = {"layout_id": layout.layout_id, "frame": layout.header.frame_id, **said}
        self._table = Table(path, self._columns(), about(computation.problem, **more))

    def _columns(self) -> list[Column]:
        m, k = self._contacts.rows, len(self._contacts)
        chosen = {
            "matrix": Column("matrix", f"G ({m}, {m}), NaN beside active", size=m * m),
            "effective_mass": Column("effective_mass", "lightest to heaviest [kg]", size=3 * k),
            "impulse": Column("impulse", "that stops the contacts [N s], [N m s]", size=m),
            "estimated_force": Column("estimated_force", "wrenches [N], [N m]", size=6 * k),
            "forces": Column("forces", "with friction, in rows of G [N], [N m]", size=m),
        }
        found = [*_ALWAYS, Column("active", "which contacts have rows", "bool", k)]
        found += [chosen[name] for name in self._chosen]
        return found + list(_OF_FORCES if "forces" in self._chosen else ())

    def write(self, answer: Answer) -> None:
        """Add a row."""
        seen = self._reader.read(answer.matrix)
        places = [self._contacts.names.index(name) for name in seen.contacts]
        self._first = answer.time if self._first is None else self._first
        self._rows.append((
            self._episode, self._count, 1e-9 * (answer.time - self._first), answer.time,
            seen.stamp, seen.sequence, seen.validity, seen.reasons, seen.rank, seen.condition,
        ))  # fmt: skip
        self._matrices.append(self._filled(seen, places))
        if "impulse" in self._chosen:
            self._impulses.append(self._impulse(seen, places))
        if "estimated_force" in self._chosen:
            self._estimated.append(self._estimated_forces())
        if "forces" in self._chosen and answer.secondary is not None:
            self._add_forces(answer.secondary)
        self._count += 1
        if len(self._rows) >= _ROWS:
            self._flush()

    def _filled(self, seen: ReceivedMatrix, places: list[int]) -> Array:
        """Return the matrix with rows for all contacts."""
        m = self._contacts.rows
        if len(seen.matrix) == m:
            return np.array(seen.matrix)
        full = np.full((m, m), np.nan)
        if seen.matrix.size:
            rows = self._rows_of(places)
            full[np.ix_(rows, rows)] = seen.matrix
        return full

    def _impulse(self, seen: ReceivedMatrix, places: list[int]) -> Array:
        impulse = np.full(self._contacts.rows, np.nan)
        moving = self._computation.tick.latest_motion
        if moving is not None and seen.matrix.size:
            solution, rates = moving
            # Redundant contacts share the impulse by the smallest sum of squares.
            wanted = -(solution.output("J") @ rates)
            impulse[self._rows_of(places)] = np.linalg.lstsq(seen.matrix, wanted, rcond=1e-10)[0]
        return impulse

    def _add_forces(self, secondary: bytes) -> None:
        """Add the contact forces of a message of the secondary outputs, NaN where INVALID."""
        forces = np.full(self._contacts.rows, np.nan)
        found = self._dynamics.read(secondary)
        if found.forces is not None:
            places = [self._contacts.names.index(name) for name in found.contacts]
            forces[self._rows_of(places)] = found.forces
        self._forces.append(forces)
        self._of_forces.append(tuple(getattr(found, column.name) for column in _OF_FORCES))

    def _estimated_forces(self) -> Array:
        estimator = self._computation.tick.estimator
        forces = np.full((len(self._contacts), 6), np.nan)
        if estimator is not None and estimator.stamp:
            for name, wrench in zip(estimator.contacts.names, estimator.wrenches(), strict=True):
                forces[self._contacts.names.index(name)] = wrench
        return forces.ravel()

    def _rows_of(self, places: list[int]) -> npt.NDArray[np.int64]:
        offsets = self._contacts.row_offsets
        return np.concatenate([np.arange(offsets[i], offsets[i + 1]) for i in places])

    def _flush(self) -> None:
        if not self._rows:
            return
        columns = zip(*self._rows, strict=True)
        rows: dict[str, Any] = dict(zip([c.name for c in _ALWAYS], columns, strict=True))
        matrices = np.array(self._matrices)
        n = len(matrices)
        first_rows = list(self._contacts.row_offsets[:-1])
        rows["active"] = np.isfinite(matrices[:, first_rows, first_rows])
        rows["matrix"] = matrices.reshape(n, -1)
        if "effective_mass" in self._chosen:
            rows["effective_mass"] = masses(matrices, self._contacts)
        rows["impulse"], rows["estimated_force"] = self._impulses, self._estimated
        rows["forces"] = self._forces
        for column, values in zip(_OF_FORCES, zip(*self._of_forces, strict=True), strict=False):
            rows[column.name] = values
        self._table.write(rows)
        for kept in (
            self._rows, self._matrices, self._impulses, self._estimated, self._forces,
            self._of_forces,
        ):  # fmt: skip
            kept.clear()

    def close(self) -> None:
        """Give the file its name."""
        self._flush()
        self._table.close()

    def discard(self) -> None:
        """Leave no file behind."""
        self._table.discard()


def is_output(path: Path, recording: str) -> bool:
    """Whether a file is an output of a recording of that name."""
    if path.suffix == ".parquet":
        return said_of(path).get("recording") == recording
    try:
        topics = Recording(path).scan()
    except RecordingError:
        return False
    return all(topic.startswith(f"{NODE}/") for topic in topics)


def check_columns(columns: Sequence[str], computation: Computation) -> None:
    """Refuse columns that need an output that is not computed."""
    problem = computation.problem
    ports = {port.name for port in (*problem.inputs, *problem.outputs)}
    if "impulse" in columns and not {"rates", "J"} <= ports:
        raise InputError(
            "column 'impulse' needs the velocities of the contacts: put J and a0 among the "
            "parameter 'outputs'"
        )
    if "estimated_force" in columns and computation.tick.estimator is None:
        raise InputError("column 'estimated_force' needs the parameter contacts.source: force")
    if "forces" in columns and "forces" not in computation.secondary:
        raise InputError("column 'forces' needs forces among the parameter 'outputs'")
