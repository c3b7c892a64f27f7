"""Reading tables of joint positions: NumPy files, CSV or Parquet. Knows no ROS.

A table is a file or a folder, with a column per joint or a column of lists, as in LeRobot's data
sets.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError
from typing import Any
from zipfile import BadZipFile

import numpy as np

from delassus.arguments import numbers
from delassus.errors import InputError
from delassus.model.reading.xml import read_regular_file
from delassus.model.spatial import Array

_KEPT = ("episode_index", "frame_index", "timestamp", "index", "task_index")
"""Columns that are copied if a table has them, as LeRobot's tables do."""
_STATE = "observation.state"
_LARGEST_INFO = 1 << 20
"""Size of the largest meta/info.json that is read [bytes]; published ones have 20 KiB."""
_UNREADABLE = (
    OSError, EOFError, ValueError, TypeError, OverflowError, MemoryError, RuntimeError, KeyError,
    struct.error, zlib.error, TokenError, BadZipFile,
)  # fmt: skip
"""Errors of NumPy and of archives for files that are damaged, encrypted or no arrays."""


@dataclass(frozen=True)
class Source:
    """Source of joint positions.

    Attributes
    ----------
    path : an ``.npy`` file (N, nq), an ``.npz`` file with an array (N, nq) or one (N,) per joint,
        a ``.csv`` file whose first line names the columns, a ``.parquet`` file, or a folder of
        Parquet files.
    state : column of lists with the positions, or array (N, nq) of an ``.npz`` file; without such
        a column, there is one per joint.
    names : joints of the list, in order; if empty, those in the data set's ``meta/info.json``, or
        else those of the robot.
    degrees : whether angles are in degrees.
    others : positions of joints that the table lacks, and that no loop determines [rad, m].
    """

    path: Path
    state: str = _STATE
    names: tuple[str, ...] = ()
    degrees: bool = False
    others: Mapping[str, float] | None = None


Columns = tuple[Array, Sequence[str], str, dict[str, Any]]
"""Columns (N, joints), their joints, the name of their list or empty, and the copied columns."""


def columns_of(source: Source, joints: tuple[str, ...], rows: int) -> Iterator[Columns]:
    """Yield the columns of a table, for at most so many rows at a time.

    Parameters
    ----------
    joints : joints of the robot, in order.
    """
    if source.path.exists() and not (source.path.is_file() or source.path.is_dir()):
        raise InputError(f"{source.path}: expected a regular file, or a folder of files")
    read = _from_numpy if source.path.suffix in (".npy", ".npz") else _from_table
    return read(source, joints, rows)


def _from_numpy(source: Source, joints: tuple[str, ...], rows: int) -> Iterator[Columns]:
    suffix, of = source.path.suffix, source.path.name
    names = source.names or joints
    try:
        values: Array
        if suffix == ".npy":
            values = np.lib.format.open_memmap(source.path, mode="r")
        else:
            with np.load(source.path, allow_pickle=False) as arrays:
                values, names, of = _of_archive(dict(arrays), source, names)
    except _UNREADABLE as error:
        raise InputError(f"{source.path} cannot be read as NumPy's {suffix}: {error}") from error
    if values.dtype.kind not in "fiu":
        raise InputError(
            f"{source.path}: values of type {values.dtype}; expected numbers, such as float64"
        )
    if values.ndim != 2 or values.shape[1] != len(names):
        raise InputError(
            f"{source.path}: shape {values.shape}; expected (N, {len(names)}): {_meant(names)}"
        )
    for start in range(0, len(values), rows):
        part = numbers(str(source.path), np.array(values[start : start + rows]))
        yield part, names, of, {}


def _of_archive(
    arrays: Mapping[str, Array], source: Source, names: tuple[str, ...]
) -> tuple[Array, tuple[str, ...], str]:
    """Return columns (N, joints) of an archive, their joints, and the name of their array.

    This is the array of the name `source.state`, or those of the joints, or the only array.
    """
    by_joint = tuple(name for name in names if name in arrays)
    if source.state not in arrays and by_joint:
        columns = [arrays[name] for name in by_joint]
        if {column.shape for column in columns} != {(len(columns[0]),)}:
            shapes = ", ".join(f"{name} {arrays[name].shape}" for name in by_joint)
            raise InputError(f"{source.path}: expected one shape (N,) per joint; it has {shapes}")
        return np.stack(columns, axis=1), by_joint, ""
    name = source.state if source.state in arrays else next(iter(arrays), "")
    if name not in arrays or (len(arrays) > 1 and name != source.state):
        raise InputError(
            f"{source.path}: neither an array {source.state!r} nor one for a joint; arrays: "
            f"{', '.join(arrays) or 'none'}; joints: {', '.join(names)}; --state names an array"
        )
    return arrays[name], names, name


def _opened(source: Source, joints: Sequence[str]) -> Any:
    """Return the data set of a CSV file, a Parquet file or a folder of those."""
    import pyarrow
    from pyarrow import csv, dataset

    folder = source.path / "data" if (source.path / "data").is_dir() else source.path
    kind: Any = "parquet"
    if source.path.suffix == ".csv":
        # Without stated types Arrow infers them from the first block, where a joint may rest.
        types = dict.fromkeys([*joints, "timestamp"], pyarrow.float64())
        kind = dataset.CsvFileFormat(convert_options=csv.ConvertOptions(column_types=types))
    try:
        return dataset.dataset(folder, format=kind)
    except (OSError, pyarrow.ArrowInvalid) as error:
        name = "CSV" if source.path.suffix == ".csv" else "Parquet"
        raise InputError(f"{source.path} cannot be read as {name}: {error}") from error


def _record_batches(data: Any, columns: list[str], rows: int, source: Source) -> Iterator[Any]:
    """Yield batches of rows; broken values of a CSV file are found here."""
    import pyarrow

    try:
        for batch in data.to_batches(columns=columns, batch_size=rows):
            if batch.num_rows:
                yield batch
    except pyarrow.ArrowInvalid as error:
        raise InputError(f"{source.path} cannot be read: {error}") from error


def _from_table(source: Source, joints: tuple[str, ...], rows: int) -> Iterator[Columns]:
    data = _opened(source, joints)
    there = data.schema.names
    if source.state in there:
        names = source.names or _named(source) or joints
        wanted = [source.state]
    else:
        names = tuple(name for name in joints if name in there)
        wanted = list(names)
        if not names:
            raise InputError(
                f"{source.path}: neither a column {source.state!r} nor one for a joint; columns: "
                f"{', '.join(there)}; joints: {', '.join(joints)}; --state "
                "names a column of lists, and --names its joints"
            )
    kept = [name for name in _KEPT if name in there]
    for batch in _record_batches(data, wanted + kept, rows, source):
        if wanted == [source.state]:
            values = _listed(batch.column(source.state), names, source)
        else:
            values = np.array([_numbers(batch.column(name), name, source) for name in wanted]).T
        of = source.state if wanted == [source.state] else ""
        yield values, names, of, {name: batch.column(name) for name in kept}


def _listed(lists: Any, names: Sequence[str], source: Source) -> Array:
    """Return the lists of a column as rows; NaN for missing lists."""
    from pyarrow import compute, types

    known = (types.is_list, types.is_fixed_size_list, types.is_large_list)
    if not any(is_one(lists.type) for is_one in known):
        raise InputError(
            f"{source.path}: {source.state!r} is of type {lists.type}; expected lists of numbers"
        )
    lengths = compute.list_value_length(lists).drop_null().to_numpy()
    wrong = lengths[lengths != len(names)]
    if wrong.size:
        raise InputError(
            f"{source.path}: {source.state!r} has {wrong[0]} numbers; expected {len(names)}: "
            f"{_meant(names)}"
        )
    rows = np.full((len(lists), len(names)), np.nan)
    there = lists.is_valid().to_numpy(zero_copy_only=False)
    flat = _numbers(lists.drop_null().flatten(), source.state, source)
    rows[there] = flat.reshape(-1, len(names))
    return rows


def _meant(names: Sequence[str]) -> str:
    return f"positions of {', '.join(names)}; --names says which joints they are of"


def _numbers(column: Any, name: str, source: Source) -> Array:
    """Return a column (N,) of numbers; NaN for missing numbers."""
    from pyarrow import types

    if not (types.is_floating(column.type) or types.is_integer(column.type)):
        raise InputError(
            f"{source.path}: {name!r} has values of type {column.type}; expected numbers"
        )
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=float)


def _named(source: Source) -> tuple[str, ...]:
    """Return the names of the numbers in the states of a LeRobot data set."""
    for folder in (source.path, *source.path.parents):
        file = folder / "meta" / "info.json"
        if file.is_file():
            try:
                text = read_regular_file(file, _LARGEST_INFO)
                names = json.loads(text)["features"][source.state]["names"]
            except (OSError, ValueError, KeyError, TypeError, RecursionError):
                return ()
            if isinstance(names, dict):
                names = next(iter(names.values()), ())
            return tuple(str(name).removesuffix(".pos") for name in names or ())
    return ()
