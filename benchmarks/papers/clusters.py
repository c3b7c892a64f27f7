"""Tables II to IV of the cluster paper: methods beside C-RNEA, C-ABA and C-EFPA.

Each robot's methods are counted, and timed in turns in one measurement.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

from benchmarks import cluster_cases, pages
from benchmarks.cases import chosen
from benchmarks.pages import table
from benchmarks.papers.kept import Kept
from benchmarks.papers.methods import contenders, measured_here, random_states, times_of
from benchmarks.papers.page import percent, under_headings

ROBOTS = {
    "chain12": "geared chain 12", "belts12": "belt chain 12", "cheetah6": "Mini Cheetah",
    "mit6": "MIT Humanoid", "tello6": "Tello", "jvrc6": "JVRC-1",
}  # fmt: skip
"""Labels of the paper's robots by name of the benchmark's case, in its order."""
_HEADS = ("robot", "method", "operations", "relative", "time [µs]", "relative", "printed",
          "verdict")  # fmt: skip
CLOSE = 15.0
"""Percentage points that two relative costs may differ by to count as the same."""
MEASURES = ("operations", "times")
NAMES = {"c_rnea": "C-RNEA", "c_aba": "C-ABA", "efpa": "C-EFPA"}
"""Names in the paper of the references."""


@dataclass(frozen=True)
class Table:
    """A table of the paper.

    Attributes
    ----------
    number : of the table.
    quantity : what its methods compute, see :mod:`benchmarks.papers.methods`.
    reference : the method that others are compared with.
    title : of its section.
    figure : number of the figure with its bars.
    """

    number: str
    quantity: str
    reference: str
    title: str
    figure: int


TABLES = (
    Table("II", "inverse", "c_rnea", "Inverse dynamics, relative to C-RNEA", 9),
    Table("III", "forward", "c_aba", "Forward dynamics, relative to C-ABA", 10),
    Table("IV", "matrix", "efpa", "Inverse operational-space inertia, relative to C-EFPA", 12),
)


@dataclass(frozen=True)
class Found:
    """Measurements of a table.

    Attributes
    ----------
    table : the table.
    robots : name of the case → method → operations, or the reason of a refusal.
    times : name of the case → method → least time of its kernel [s].
    measured : machines and days of the times.
    """

    table: Table
    robots: dict[str, dict[str, int | str]] = field(default_factory=dict)
    times: dict[str, dict[str, float]] = field(default_factory=dict)
    measured: set[str] = field(default_factory=set)

    def relative(self, name: str, method: str) -> dict[str, float] | None:
        """Return how much more a method costs than the reference [%], by measure.

        None if the method refuses the robot.
        """
        count, base = self.robots[name][method], self.robots[name][self.table.reference]
        if isinstance(count, str) or isinstance(base, str):
            return None
        times = self.times[name]
        ratios = (count / base, times[method] / times[self.table.reference])
        return {m: 100.0 * (r - 1.0) for m, r in zip(MEASURES, ratios, strict=True)}


def compared(name: str, quantity: str, seconds: float) -> dict[str, Any]:
    """Return operations and times of a robot's methods, with machine and day.

    Parameters
    ----------
    seconds : to measure each method.
    """
    closed = loaded(name)
    operations = {
        method: found if isinstance(found, str) else found.count()
        for method, found in contenders(closed.problem, quantity)
    }
    states = random_states(closed.problem, closed.pool())
    times = times_of(closed.problem, quantity, states, seconds)
    return {"operations": operations, "times": times, "measured": measured_here()}


@cache
def loaded(name: str) -> cluster_cases.Closed:
    """Return the robot of a case; once, as its reader warns of some bodies."""
    (case,) = chosen(name, cluster_cases.CLUSTER_CASES)
    return case.load()


def tables(kept: Kept, names: Sequence[str], seconds: float) -> list[Found]:
    """Return the measurements of all tables.

    Parameters
    ----------
    names : of the cases.
    seconds : to measure each method.
    """
    every = []
    for about in TABLES:
        found = Found(about)
        for name in names:
            result = kept.of(
                f"table {about.number}: {ROBOTS[name]}, {seconds:g} s",
                partial(compared, name, about.quantity, seconds),
            )
            found.robots[name] = result["operations"]
            found.times[name] = result["times"]
            found.measured.add(result["measured"])
        every.append(found)
    return every


def verdict(printed: float, found: Mapping[str, float]) -> str:
    """Return whether a relative cost [%] reproduces, by all measures, by none, or by one."""
    close = [measure for measure, value in found.items() if abs(printed - value) <= CLOSE]
    if len(close) == len(found):
        return "reproduces"
    return f"depends: {', '.join(close)} reproduce" if close else "does not"


def results(tables: Sequence[Found], printed: Mapping[str, Any]) -> Iterator[object]:
    """Return the tables, and that of the authors' library beside table IV as printed."""
    sections: dict[str, object] = {}
    for found in tables:
        about, rows, refused = found.table, [], {}
        for name, counts in found.robots.items():
            for method, count in counts.items():
                label = ROBOTS[name] if method == about.reference else ""
                rows.append((label, f"`{method}`", *_cells(found, name, method, printed)))
                if isinstance(count, str):
                    refused[ROBOTS[name]] = count
        heading = f"Table {about.number} and figure {about.figure}: {about.title}"
        reasons = [f"Refused for {name}: {reason}." for name, reason in refused.items()]
        sections[heading] = [table(_HEADS, rows, 2), *reasons]
    sections["The authors' library on another processor"] = _library(printed)
    return under_headings(sections, "###")


def _cells(found: Found, name: str, method: str, printed: Mapping[str, Any]) -> tuple[object, ...]:
    """Return the cells of a method of a robot."""
    number, column = found.table.number, printed["columns"].index(name)
    told = printed[number][method][column] if method in printed[number] else None
    text = "" if told is None else percent(told)
    relative, count = found.relative(name, method), found.robots[name][method]
    if relative is None:
        return ("refused", "", "", "", text, "")
    time = f"{1e6 * found.times[name][method]:.3g}"
    if method == found.table.reference:
        bars = dict(zip(printed["columns"], printed["bars"][number], strict=False))
        return (count, "", time, "", f"{bars[name]} µs" if name in bars else "", "")
    result = "" if told is None else verdict(told, relative)
    return (count, percent(relative["operations"]), time, percent(relative["times"]), text, result)


def _library(printed: Mapping[str, Any]) -> pages.Table:
    rows = []
    for column, name in enumerate(printed["columns"]):
        projection, efpa = (printed["library"][each][column] for each in ("projection", "efpa"))
        relative = percent(100.0 * (projection / efpa - 1.0))
        told = percent(printed["IV"]["projection"][column])
        rows.append((ROBOTS[name], f"{projection:.1f} / {efpa:.1f}", relative, told))
    return table(("robot", "projection / C-EFPA [µs]", "relative", "printed"), rows)
