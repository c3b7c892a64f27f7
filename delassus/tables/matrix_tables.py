"""Tables in Parquet: columns, effective masses, and files that are whole or absent.

Knows no ROS. Readers of Parquet (polars, duckdb, pandas, loaders of LeRobot's data sets) read
lists of a fixed size as arrays. The file has the meaning and units of its columns.
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

from delassus.contacts import ContactSet
from delassus.drawing.ellipsoids import effective_masses, linear_blocks
from delassus.model.spatial import Array
from delassus.problem import Problem
from delassus.tables.partial import PartialFile


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes
    ----------
    about : meaning with units.
    kind : numpy's name of the number type, or ``"bool"``; or a type of Arrow.
    size : count of numbers per row; None for a column without lists.
    """

    name: str
    about: str
    kind: Any = "float64"
    size: int | None = None


def episode_of(name: str) -> int:
    """Return the number of an episode: 53 bits of a digest of its name.

    The number does not depend on further episodes, and is unique in a data set.
    """
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") >> 11


class Table:
    """A table that is written in groups of rows; the file has its name only once it is whole.

    Parameters
    ----------
    about : description of the table, under the key ``delassus`` of the file's metadata.
    """

    def __init__(self, path: Path, columns: Sequence[Column], about: Mapping[str, Any]) -> None:
        import pyarrow
        from pyarrow import parquet

        self._arrow = pyarrow
        fields = [
            pyarrow.field(column.name, self._type(column), metadata={"about": column.about})
            for column in columns
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
            # Writing the buffered rest may fail: the disk may be full.
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
        "frames": [contact.frame_names for contact in contacts],
        "kinds": [contact.kind_name for contact in contacts],
        "row_offsets": list(contacts.row_offsets),
        "joints": list(robot.joint_names),
        "units": "SI: G in 1/kg, 1/(kg m), 1/(kg m2); linear rows first",
        **more,
    }


def said_of(path: Path) -> dict[str, Any]:
    """Return the description of a table, see :func:`about`; empty for a file that is no table."""
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
    """Return the effective masses (N, 3 k) of k contacts [kg], per contact in ascending order.

    NaN if a contact has no rows in a matrix, or not three linear rows.

    Parameters
    ----------
    matrices : (N, m, m) matrices of all contacts; NaN in rows of inactive contacts.
    """
    kinds = tuple(contact.kind_name for contact in contacts)
    found = np.full((len(matrices), len(contacts), 3), np.nan)
    for number, rows in linear_blocks(matrices[0], contacts.row_offsets, kinds).items():
        blocks = matrices[:, rows, rows]
        there = np.isfinite(blocks).all(axis=(1, 2))
        found[there, number] = effective_masses(blocks[there])
    return found.reshape(len(matrices), -1)
