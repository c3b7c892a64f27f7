"""Reports of verbs as text with tables and as data, and progress on a terminal."""

from __future__ import annotations

import json
import math
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from delassus.model.spatial import Array
from delassus.problem import Problem
from delassus.programs.terminal import replace_line
from delassus.visible import visible, visible_json

T = TypeVar("T")
_SILENT = 2.0
"""Time after which progress is shown on a terminal [s]."""
_REFRESH = 0.5
"""Time between two lines of progress [s]."""


@dataclass(frozen=True)
class Report:
    """Result of a verb.

    Attributes
    ----------
    text : the result for people.
    data : the result for programs: dictionaries, lists, numbers and text.
    status : exit status: 0, or 1 for a partial result.
    """

    text: str
    data: Mapping[str, Any]
    status: int = 0

    def json(self) -> str:
        """Return the data as JSON; NaN and infinity become null."""
        return visible_json(json.dumps(_plain(self.data), indent=2, ensure_ascii=False))


def _plain(value: Any) -> Any:
    """Return a value converted to types of JSON."""
    if isinstance(value, Mapping):
        return {str(name): _plain(entry) for name, entry in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


@contextmanager
def waiting(words: str = "") -> Iterator[Callable[[str], None]]:
    """Show on a terminal the task and its duration, once the block has run for 2 s.

    Yields
    ------
    a function that replaces the text about the task.
    """
    shown, done, began = [words], threading.Event(), time.monotonic()

    def show() -> None:
        pause = _SILENT
        while not done.wait(pause):
            replace_line(f"{shown[0]} ... {time.monotonic() - began:.0f} s")
            pause = _REFRESH
        if pause == _REFRESH:
            replace_line("")

    def say(words: str) -> None:
        shown[0] = words

    thread = threading.Thread(target=show, daemon=True)
    if sys.stderr.isatty():
        thread.start()
    try:
        yield say
    finally:
        done.set()
        if thread.ident is not None:
            thread.join()


def progress(label: str, items: Sequence[T], names: Iterable[str] | None = None) -> Iterator[T]:
    """Yield items; after 2 s, show on a terminal which one is under way."""
    with waiting() as say:
        for k, (item, name) in enumerate(zip(items, names or map(str, items), strict=True)):
            say(f"{label}: {name} ({k + 1} of {len(items)})")
            yield item


def compiling(problem: Problem) -> str:
    """Return the text about the compilation of a problem, for :func:`waiting`."""
    return f"compiling {problem.contacts.rows} rows of {visible(problem.robot.name)}"


def table(rows: Sequence[Sequence[object]], numeric: Sequence[int] = (), indent: str = "") -> str:
    """Return rows with aligned columns; the columns `numeric` are aligned to the right."""
    texts = [[visible(str(cell)) for cell in row] for row in rows]
    widths = [max(len(cell) for cell in column) for column in zip(*texts, strict=True)]
    lines = []
    for row in texts:
        cells = [
            cell.rjust(width) if i in numeric else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append(indent + "  ".join(cells).rstrip())
    return "\n".join(lines)


def matrix(values: Array, labels: Sequence[str]) -> str:
    """Return a matrix as text, with labels before its rows."""
    # Entries that are rounding noise beside the largest entry are shown as zero.
    noise = 1e-14 * float(np.abs(values).max(initial=0.0))
    rows = [
        [label, *(f"{0.0 if abs(value) <= noise else value:.6g}" for value in row)]
        for label, row in zip(labels, values, strict=True)
    ]
    return table(rows, numeric=range(1, 1 + values.shape[1]), indent="  ")


def headline(problem: Problem) -> str:
    """Return a line about the robot, the rows and the contacts."""
    contacts = ", ".join(
        f"{visible(contact.name)} ({contact.kind_name}"
        + ("" if contact.moving == "nothing" else f", moving {contact.moving}")
        + "".join(f", {what} {value}" for what, value in contact.cone.items())
        + ")"
        for contact in problem.contacts
    )
    return (
        f"{visible(problem.robot.name)}: {problem.robot.base} base, {problem.contacts.rows} rows "
        f"in {problem.axes} axes: {contacts}"
    )


def about(problem: Problem) -> dict[str, Any]:
    """Return the robot, the rows and the contacts as data."""
    return {
        "robot": problem.robot.name,
        "base": problem.robot.base,
        "axes": problem.axes,
        "contacts": [
            {"name": c.name, "frame": c.frame, "kind": c.kind_name, "rows": c.rows, **c.cone}
            for c in problem.contacts
        ],
    }
