"""``delassus plot`` and ``delassus compare`` for tables of recordings and trajectories."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from delassus.cli.report import Report, table
from delassus.errors import InputError
from delassus.model.spatial import Array
from delassus.programs.needs import require

_KEYS = (("episode_index", "stamp"), ("episode_index", "frame_index"), ("frame_index",))
"""Keys of rows that belong to the same instant in two tables; the first key that both tables have
is used. Rows with equal keys, e.g. about a silence, are matched in their order."""


Places = npt.NDArray[np.intp]


def is_table(path: str | None) -> bool:
    """Whether a file is a table rather than a robot."""
    return path is not None and path.endswith(".parquet")


class Rows:
    """A table in memory.

    Attributes
    ----------
    about : description in the file: robot, contacts, rows.
    columns : arrays by name, lists as (N, size).
    """

    def __init__(self, path: str) -> None:
        require("delassus", "pyarrow")
        import pyarrow
        from pyarrow import parquet

        try:
            found = parquet.read_table(path)
        except (OSError, pyarrow.ArrowInvalid) as error:
            raise InputError(f"{path} cannot be read as Parquet: {error}") from error
        said = (found.schema.metadata or {}).get(b"delassus")
        if said is None:
            raise InputError(
                f"{path}: not a table of delassus bag or delassus trajectory; its columns are "
                f"{', '.join(found.column_names)}"
            )
        self.path = path
        try:
            self.about: dict[str, Any] = json.loads(said)
        except ValueError as error:
            raise InputError(f"{path}: its description is damaged: {error}") from error
        self.columns = {name: _array(found[name]) for name in found.column_names}

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(next(iter(self.columns.values())))

    @property
    def times(self) -> Array:
        """Times of the rows [s]; their numbers if the table has no time."""
        return np.asarray(self.columns.get("timestamp", np.arange(len(self), dtype=float)))

    @property
    def has_time(self) -> bool:
        """Whether rows have a time."""
        return "timestamp" in self.columns

    def at(self, row: int) -> str:
        """Return a text about the place of a row."""
        return f"{self.times[row]:.3f} s" if self.has_time else f"row {row}"

    @property
    def matrices(self) -> Array:
        """Return the matrices (N, m, m); a table without matrices is refused."""
        if "matrix" not in self.columns:
            raise InputError(f"{self.path} has no column 'matrix': --columns has it written")
        m = self.about["row_offsets"][-1]
        return self.columns["matrix"].reshape(-1, m, m)

    @property
    def headline(self) -> str:
        """Line about the robot and its contacts."""
        lasting = f" in {self.times[-1]:.1f} s" if self.has_time and len(self) else ""
        contacts = ", ".join(self.about["contacts"])
        return f"{self.about['robot']}: {len(self)} rows{lasting}, {contacts}"


def _array(column: Any) -> Array:
    import pyarrow

    merged = column.combine_chunks()
    if pyarrow.types.is_fixed_size_list(merged.type):
        flat = merged.flatten().to_numpy(zero_copy_only=False)
        return np.asarray(flat).reshape(len(merged), merged.type.list_size)
    return np.asarray(merged.to_numpy(zero_copy_only=False))


def plot_table(options: argparse.Namespace) -> Report:
    """Write a figure of a table: contacts, condition, effective masses, and the worst matrix."""
    require("delassus plot", "matplotlib")
    from delassus.drawing import figures

    rows = Rows(options.robot)
    if not len(rows):
        raise InputError(f"{options.robot} has no rows")
    contacts = rows.about["contacts"]
    condition = np.where(rows.columns["condition"] > 0.0, rows.columns["condition"], np.nan)
    figure, panels = figures.new_figure(4, solid=False)
    active = rows.columns.get("active", np.ones((len(rows), len(contacts)), dtype=bool))
    figures.draw_active(panels[0], rows.times, active, contacts)
    figures.draw_over_time(panels[1], rows.times, {"": condition}, "condition number")
    if "effective_mass" in rows.columns:
        masses = rows.columns["effective_mass"].reshape(len(rows), -1, 3)
        lightest = {name: masses[:, k, 0] for k, name in enumerate(contacts)}
        figures.draw_over_time(panels[2], rows.times, lightest, "lightest effective mass [kg]")
    for panel in panels[:3]:
        panel.set_xlabel("s" if rows.has_time else "row")
    facts: list[tuple[str, object]] = []
    worst = int(np.nanargmax(condition)) if np.isfinite(condition).any() else None
    if worst is not None and "matrix" in rows.columns:
        G = np.nan_to_num(rows.matrices[worst])
        figures.draw_matrix(panels[3], G, contacts, rows.about["row_offsets"])
        panels[3].set_title(f"worst conditioned, at {rows.at(worst)}")
    output = options.output or f"{Path(options.robot).stem}.svg"
    figure.suptitle(rows.headline)
    figures.save(figure, Path(output))
    facts.append(("figure", output))
    data: dict[str, Any] = {"figure": output, "rows": len(rows), **rows.about}
    if worst is not None:
        data |= {"worst": float(condition[worst]), "at": float(rows.times[worst])}
        low, high = np.nanmin(condition), condition[worst]
        facts.append(("condition", f"{low:.4g} to {high:.4g}, at {rows.at(worst)}"))
    return Report(f"{rows.headline}\n\n{table(facts)}", data)


def compare_tables(options: argparse.Namespace) -> Report:
    """Return the differences of two tables, row by row."""
    if not is_table(options.other):
        raise InputError(f"{options.robot} is a table; expected another one to compare it with")
    one, other = Rows(options.robot), Rows(options.other)
    for key in ("contacts", "row_offsets", "axes"):
        if one.about[key] != other.about[key]:
            raise InputError(
                f"the tables have different {key}: {one.about[key]} and {other.about[key]}"
            )
    mine, theirs = _matched(one, other)
    A, B = one.matrices[mine], other.matrices[theirs]
    both = np.isfinite(A) & np.isfinite(B)
    alike = (np.isfinite(A) == np.isfinite(B)).all(axis=(1, 2))
    difference = np.where(both, A - B, 0.0)
    size = np.linalg.norm(np.where(both, B, 0.0), axis=(1, 2))
    there = size > 0.0
    errors = np.linalg.norm(difference, axis=(1, 2))[there] / size[there]
    equal = int(np.count_nonzero(((A == B) | ~both).all(axis=(1, 2)) & alike & there))
    largest = float(errors.max(initial=0.0))
    median = float(np.median(errors)) if errors.size else 0.0
    facts: list[tuple[str, object]] = [
        ("rows in both", len(mine)),
        ("in one of them alone", len(one) + len(other) - 2 * len(mine)),
        ("with other active contacts", int(np.count_nonzero(~alike))),
        ("matrices in both", int(np.count_nonzero(there))),
        ("matrices that are equal", equal),
        ("difference, relative", f"largest {largest:.3g}, median {median:.3g}"),
    ]
    if errors.size and largest > 0.0:
        place = mine[np.flatnonzero(there)[int(errors.argmax())]]
        facts.append(("the largest is at", one.at(place)))
    data = {
        "rows": len(mine), "alone": len(one) + len(other) - 2 * len(mine),
        "other_contacts": int(np.count_nonzero(~alike)),
        "matrices": int(np.count_nonzero(there)), "equal": equal,
        "largest": largest, "median": median,
    }  # fmt: skip
    return Report(f"{one.headline}\n\n{table(facts)}", data)


def _matched(one: Rows, other: Rows) -> tuple[Places, Places]:
    """Return the indices of rows of two tables that are of the same instants."""
    keys = next(
        (key for key in _KEYS if all(n in one.columns and n in other.columns for n in key)), None
    )
    if keys is None:
        if len(one) != len(other):
            raise InputError(
                f"the tables have {len(one)} and {len(other)} rows, and no column that tells "
                "which belong together"
            )
        return np.arange(len(one)), np.arange(len(other))
    first, second = (
        _counted(zip(*(rows.columns[name].tolist() for name in keys), strict=True))
        for rows in (one, other)
    )
    place = {key: k for k, key in enumerate(second)}
    pairs = [(k, place[key]) for k, key in enumerate(first) if key in place]
    found = np.array(pairs, dtype=int).reshape(-1, 2)
    if not len(found):
        raise InputError(f"no row is in both tables, by {' and '.join(keys)}")
    return found[:, 0], found[:, 1]


def _counted(keys: Iterable[tuple[object, ...]]) -> list[tuple[object, ...]]:
    """Return keys with the number of equal keys before them."""
    seen: Counter[tuple[object, ...]] = Counter()
    found = []
    for key in keys:
        found.append((*key, seen[key]))
        seen[key] += 1
    return found
