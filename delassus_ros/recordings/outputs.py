"""What is written of a recording: messages in MCAP, which ``ros2 bag play`` plays, and Parquet.

A file has its name only once it is whole: until then it ends in ``.partial``.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from delassus_msgs.msg import Layout
from delassus_msgs_py import MatrixReader, ReceivedMatrix
from mcap.writer import Writer
from rclpy.serialization import serialize_message

from delassus_ros.drawing.ellipsoids import EffectiveMass, linear_blocks
from delassus_ros.errors import DelassusError, InputError, unknown
from delassus_ros.node.computation import Computation
from delassus_ros.recordings.replay import Answer

NODE = "/delassus_node"
COLUMNS = ("matrix", "condition", "effective_mass", "impulse", "estimated_force")
"""What a row of a table may have beside what it always has."""
_ROWS = 2048
"""Rows that are held until they are written as one group."""
_LATCHED = """\
- history: 1
  depth: 1
  reliability: 1
  durability: 1
  deadline: {sec: 9223372036, nsec: 854775807}
  lifespan: {sec: 9223372036, nsec: 854775807}
  liveliness: 1
  liveliness_lease_duration: {sec: 9223372036, nsec: 854775807}
  avoid_ros_namespace_conventions: false
"""
"""QoS of a latched topic, as rosbag2 writes it down."""


class Output(Protocol):
    """A file that answers are written to."""

    def write(self, answer: Answer) -> None:
        """Write what was published at an instant."""

    def close(self) -> None:
        """Give the file its name."""

    def discard(self) -> None:
        """Leave no file behind."""


def partial(path: Path) -> Path:
    """Return what a file is called until it is whole."""
    return path.with_name(f"{path.name}.partial")


class McapOutput:
    """Layout, matrices, and what comes beside them, as messages on the topics of the node.

    Parameters
    ----------
    path : file to write.
    computation : of the replay.
    """

    def __init__(self, path: Path, computation: Computation) -> None:
        self._path = path
        self._file = partial(path).open("wb")
        self._writer = Writer(self._file)
        self._writer.start(profile="ros2", library="delassus_ros")
        self._layout: Layout | None = computation.layout
        self._layouts = self._channel("layout", "Layout", {"offered_qos_profiles": _LATCHED})
        self._matrices = self._channel("delassus", "DelassusMatrix", {})
        self._beside = 0
        if computation.beside:
            self._beside = self._channel("dynamics", "ContactDynamics", {})
        self._count = 0

    def _channel(self, topic: str, kind: str, metadata: dict[str, str]) -> int:
        name = f"delassus_msgs/msg/{kind}"
        schema = self._writer.register_schema(name, "ros2msg", definition(name).encode())
        channel: int = self._writer.register_channel(f"{NODE}/{topic}", "cdr", schema, metadata)
        return channel

    def write(self, answer: Answer) -> None:
        """Write the messages of an instant."""
        if self._layout is not None:
            self._add(self._layouts, answer.time, serialize_message(self._layout))
            self._layout = None
        self._add(self._matrices, answer.time, answer.matrix)
        if answer.beside is not None:
            self._add(self._beside, answer.time, answer.beside)

    def _add(self, channel: int, time: int, data: bytes) -> None:
        self._count += 1
        self._writer.add_message(channel, time, data, time, self._count)

    def close(self) -> None:
        """Give the file its name."""
        self._writer.finish()  # type: ignore[no-untyped-call]
        self._file.close()
        os.replace(partial(self._path), self._path)

    def discard(self) -> None:
        """Leave no file behind."""
        self._file.close()
        partial(self._path).unlink(missing_ok=True)


def definition(name: str) -> str:
    """Return the definition of a message with those that it is made of, as MCAP wants it."""
    found: dict[str, str] = {}
    todo = [name]
    while todo:
        each = todo.pop(0)
        if each in found:
            continue
        package, part, kind = each.split("/")
        text = _share(package, f"{part}/{kind}.msg").read_text(encoding="utf-8")
        found[each] = text
        for line in text.splitlines():
            word = line.partition("#")[0].split("[")[0].split("<")[0].split()
            if word and "/" in word[0]:
                other, other_kind = word[0].split("/")[0], word[0].split("/")[-1]
                todo.append(f"{other}/msg/{other_kind}")
    first, *others = found
    line = "=" * 80
    return found[first] + "".join(f"\n{line}\nMSG: {_short(o)}\n{found[o]}" for o in others)


def _share(package: str, name: str) -> Path:
    """Return a file that a package of ROS has installed, from a distribution or by pip."""
    prefixes = os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
    for prefix in (*filter(None, prefixes), sys.prefix):
        file = Path(prefix) / "share" / package / name
        if file.is_file():
            return file
    raise DelassusError(f"package {package} has no {name} in {sys.prefix} or AMENT_PREFIX_PATH")


def _short(name: str) -> str:
    package, _, kind = name.split("/")
    return f"{package}/{kind}"


class ParquetOutput:
    """One row per matrix; every row has room for all contacts, with NaN where one is not active.

    Parameters
    ----------
    path : file to write.
    computation : of the replay.
    columns : of :data:`COLUMNS`.
    episode : number of the recording among others.

    Raises
    ------
    InputError
        If a column does not exist, or needs what is not computed.
    """

    def __init__(
        self, path: Path, computation: Computation, columns: Sequence[str], episode: int = 0
    ) -> None:
        import pyarrow
        import pyarrow.parquet

        check_columns(columns, computation)
        self._path, self._computation, self._episode = path, computation, episode
        self._columns = tuple(columns)
        self._contacts = computation.problem.contacts
        self._reader = MatrixReader()
        self._rows: list[dict[str, Any]] = []
        self._arrow = pyarrow
        self._first: int | None = None
        self._count = 0
        self._schema = self._make_schema()
        self._writer = pyarrow.parquet.ParquetWriter(partial(path), self._schema)

    def _make_schema(self) -> Any:
        arrow, contacts = self._arrow, self._contacts
        m, k = contacts.rows, len(contacts)

        def numbers(size: int) -> Any:
            return arrow.list_(arrow.float64(), size)

        def field(name: str, kind: Any, about: str) -> Any:
            return arrow.field(name, kind, metadata={"about": about})

        always = [
            field("episode_index", arrow.int64(), "number of the recording"),
            field("frame_index", arrow.int64(), "number of the row in it"),
            field("timestamp", arrow.float64(), "time of the recording since the first row [s]"),
            field("time", arrow.int64(), "time of the recording [ns]"),
            field("stamp", arrow.int64(), "of the joint state [ns]; 0 where none is answered"),
            field("sequence", arrow.uint64(), "of the message"),
            field("validity", arrow.uint8(), "0 INVALID, 1 DEGRADED, 2 OK"),
            field("reasons", arrow.uint64(), "bits of DelassusMatrix.REASON_*"),
            field("active", arrow.list_(arrow.bool_(), k), "which contacts have rows"),
        ]
        chosen = {
            "matrix": [
                field("matrix", numbers(m * m), f"G ({m}, {m}) by rows; NaN beside active")
            ],
            "condition": [
                field("rank", arrow.int32(), "of the matrix; -1 unknown"),
                field("condition", arrow.float64(), "condition number; -1 unknown"),
            ],
            "effective_mass": [
                field("effective_mass", numbers(3 * k), "lightest to heaviest per contact [kg]")
            ],
            "impulse": [field("impulse", numbers(m), "that stops the contacts [N s], [N m s]")],
            "estimated_force": [
                field("estimated_force", numbers(6 * k), "wrench per contact [N], [N m]")
            ],
        }
        fields = always + [each for name in self._columns for each in chosen[name]]
        return arrow.schema(fields, {"delassus": json.dumps(self._about())})

    def _about(self) -> dict[str, Any]:
        layout = self._computation.layout
        return {
            "robot": layout.robot, "base": layout.base, "layout_id": layout.layout_id,
            "axes": self._computation.problem.axes, "frame": layout.header.frame_id,
            "contacts": list(layout.contacts), "frames": list(layout.frames),
            "kinds": list(layout.kinds), "row_offsets": [int(n) for n in layout.row_offsets],
            "joints": list(layout.joints),
            "units": "SI: G in 1/kg, 1/(kg m), 1/(kg m2); linear rows first",
        }  # fmt: skip

    def write(self, answer: Answer) -> None:
        """Add a row."""
        seen = self._reader.read(answer.matrix)
        places = [self._contacts.names.index(name) for name in seen.contacts]
        active = np.zeros(len(self._contacts), dtype=bool)
        if seen.matrix.size:
            active[places] = True
        self._first = answer.time if self._first is None else self._first
        row: dict[str, Any] = {
            "episode_index": self._episode, "frame_index": self._count,
            "timestamp": 1e-9 * (answer.time - self._first), "time": answer.time,
            "stamp": seen.stamp, "sequence": seen.sequence, "validity": seen.validity,
            "reasons": seen.reasons, "active": active.tolist(),
        }  # fmt: skip
        for name in self._columns:
            row |= getattr(self, f"_{name}")(seen, places)
        self._rows.append(row)
        self._count += 1
        if len(self._rows) >= _ROWS:
            self._flush()

    def _matrix(self, seen: ReceivedMatrix, places: list[int]) -> dict[str, Any]:
        m = self._contacts.rows
        if len(seen.matrix) == m:
            return {"matrix": seen.matrix.ravel()}
        full = np.full((m, m), np.nan)
        if seen.matrix.size:
            rows = self._rows_of(places)
            full[np.ix_(rows, rows)] = seen.matrix
        return {"matrix": full.ravel()}

    def _condition(self, seen: ReceivedMatrix, places: list[int]) -> dict[str, Any]:
        return {"rank": seen.rank, "condition": seen.condition}

    def _effective_mass(self, seen: ReceivedMatrix, places: list[int]) -> dict[str, Any]:
        masses = np.full((len(self._contacts), 3), np.nan)
        G = np.asarray(seen.matrix)
        for number, rows in linear_blocks(G, seen.row_offsets, seen.kinds).items():
            masses[places[number]] = EffectiveMass.of(G[rows, rows]).masses
        return {"effective_mass": masses.ravel()}

    def _impulse(self, seen: ReceivedMatrix, places: list[int]) -> dict[str, Any]:
        impulse = np.full(self._contacts.rows, np.nan)
        moving = self._computation.pipeline.latest_motion
        if moving is not None and seen.matrix.size:
            solution, rates = moving
            # Redundant contacts share it by the smallest sum of squares.
            wanted = -(solution.output("J") @ rates)
            impulse[self._rows_of(places)] = np.linalg.lstsq(seen.matrix, wanted, rcond=1e-10)[0]
        return {"impulse": impulse}

    def _estimated_force(self, seen: ReceivedMatrix, places: list[int]) -> dict[str, Any]:
        estimator = self._computation.pipeline.estimator
        forces = np.full((len(self._contacts), 6), np.nan)
        if estimator is not None and estimator.stamp:
            for name, wrench in zip(estimator.contacts.names, estimator.wrenches(), strict=True):
                forces[self._contacts.names.index(name)] = wrench
        return {"estimated_force": forces.ravel()}

    def _rows_of(self, places: list[int]) -> npt.NDArray[np.int64]:
        offsets = self._contacts.row_offsets
        found = [np.arange(offsets[place], offsets[place + 1]) for place in places]
        return np.concatenate(found) if found else np.zeros(0, dtype=int)

    def _flush(self) -> None:
        if not self._rows:
            return
        arrays = []
        for field in self._schema:
            values = [row[field.name] for row in self._rows]
            if self._arrow.types.is_fixed_size_list(field.type) and field.name != "active":
                flat = self._arrow.array(np.concatenate(values))
                arrays.append(self._arrow.FixedSizeListArray.from_arrays(flat, type=field.type))
            else:
                arrays.append(self._arrow.array(values, field.type))
        self._writer.write_batch(self._arrow.record_batch(arrays, schema=self._schema))
        self._rows.clear()

    def close(self) -> None:
        """Give the file its name."""
        self._flush()
        self._writer.close()
        os.replace(partial(self._path), self._path)

    def discard(self) -> None:
        """Leave no file behind."""
        self._writer.close()
        partial(self._path).unlink(missing_ok=True)


def check_columns(columns: Sequence[str], computation: Computation) -> None:
    """Refuse columns that do not exist, or that need what is not computed."""
    for name in columns:
        if name not in COLUMNS:
            raise InputError(unknown("output", name, COLUMNS))
    problem = computation.problem
    ports = {port.name for port in (*problem.inputs, *problem.outputs)}
    if "impulse" in columns and not {"rates", "J"} <= ports:
        raise InputError(
            "output 'impulse' needs the velocities of the contacts: put J and a0 among the "
            "parameter 'outputs'"
        )
    if "estimated_force" in columns and computation.pipeline.estimator is None:
        raise InputError("output 'estimated_force' needs the parameter contacts.source: force")
