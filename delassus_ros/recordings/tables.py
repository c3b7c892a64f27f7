"""Tables in Parquet: columns, what follows from matrices, and files that are whole or absent.

Knows no ROS. Readers of Parquet (polars, duckdb, pandas, loaders of LeRobot's data sets) take
lists of a fixed size as arrays. What columns mean, with units, stands in the file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from delassus_ros.contacts import ContactSet
from delassus_ros.drawing.ellipsoids import effective_masses, linear_blocks
from delassus_ros.model.spatial import Array
from delassus_ros.problem import Problem
from delassus_ros.recordings.partial import PartialFile


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes
    ----------
    name, about : what it is called, and what it says, with units.
    kind : of a number, as numpy calls it, or ``"bool"``; or a type of Arrow.
    size : numbers of each row; None for one that is no list.
    """

    name: str
    about: str
    kind: Any = "float64"
    size: int | None = None


def episode_of(name: str) -> int:
    """Return the number of an episode: it follows from its name alone, 53 bits of a digest.

    So it is the same whichever others are done with it, and no two of a data set have the same.
    """
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") >> 11


class Table:
    """A table that is written in groups of rows; the file has its name only once it is whole.

    Parameters
    ----------
    path : file to write.
    columns : of it.
    about : description of the table, under the key ``delassus`` of the file's metadata.
    """

    def __init__(self, path: Path, columns: Sequence[Column], about: Mapping[str, Any]) -> None:
        import pyarrow
        from pyarrow import parquet

        self._arrow = pyarrow
        fields = [
            pyarrow.field(each.name, self._type(each), metadata={"about": each.about})
            for each in columns
        ]
        self._schema = pyarrow.schema(fields, {"delassus": json.dumps(about)})
        self._partial = PartialFile(path)
        self._writer = parquet.ParquetWriter(self._partial.file, self._schema)

    def _type(self, column: Column) -> Any:
        if isinstance(column.kind, self._arrow.DataType):
            return column.kind
        kind = self._arrow.from_numpy_dtype(np.dtype(column.kind))
        return kind if column.size is None else self._arrow.list_(kind, column.size)

    def write(self, rows: Mapping[str, npt.ArrayLike]) -> None:
        """Write rows as one group: per column (N,), or (N, size) for lists, or Arrow's array."""
        arrays = []
        for field in self._schema:
            if isinstance(rows[field.name], self._arrow.Array):
                arrays.append(rows[field.name])
                continue
            values = np.asarray(rows[field.name])
            if self._arrow.types.is_fixed_size_list(field.type):
                flat = self._arrow.array(values.ravel(), field.type.value_type)
                arrays.append(self._arrow.FixedSizeListArray.from_arrays(flat, type=field.type))
            else:
                arrays.append(self._arrow.array(values, field.type))
        self._writer.write_batch(self._arrow.record_batch(arrays, schema=self._schema))

    def close(self) -> None:
        """Give the file its name."""
        self._writer.close()
        self._partial.finish()

    def discard(self) -> None:
        """Leave no file behind."""
        try:
            # What is still to be written may not be: the disk may be full.
            with suppress(OSError):
                self._writer.close()
        finally:
            self._partial.discard()


def about(problem: Problem, **more: Any) -> dict[str, Any]:
    """Return the description of a table of a problem: the robot, and the rows of its matrices."""
    robot, contacts = problem.robot, problem.contacts
    return {
        "robot": robot.name,
        "base": robot.base,
        "axes": problem.axes,
        "contacts": list(contacts.names),
        "frames": [contact.frame for contact in contacts],
        "kinds": [contact.kind_name for contact in contacts],
        "row_offsets": list(contacts.row_offsets),
        "joints": list(robot.joint_names),
        "units": "SI: G in 1/kg, 1/(kg m), 1/(kg m2); linear rows first",
        **more,
    }


def said_of(path: Path) -> dict[str, Any]:
    """Return what is said of a table, see :func:`about`; nothing of a file that is none."""
    import pyarrow
    from pyarrow import parquet

    try:
        metadata = parquet.read_schema(path).metadata or {}
    except (OSError, pyarrow.ArrowInvalid):
        return {}
    try:
        found = json.loads(metadata.get(b"delassus", b"{}"))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def masses(matrices: Array, contacts: ContactSet) -> Array:
    """Return the effective masses (N, 3 k) of each contact [kg], lightest first.

    NaN where a contact has no rows in a matrix, or not three linear ones.

    Parameters
    ----------
    matrices : (N, m, m) of all contacts, NaN where one has no rows.
    """
    kinds = tuple(contact.kind_name for contact in contacts)
    found = np.full((len(matrices), len(contacts), 3), np.nan)
    for number, rows in linear_blocks(matrices[0], contacts.row_offsets, kinds).items():
        blocks = matrices[:, rows, rows]
        there = np.isfinite(blocks).all(axis=(1, 2))
        found[there, number] = effective_masses(blocks[there])
    return found.reshape(len(matrices), -1)
