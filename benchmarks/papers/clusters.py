"""Tables II to IV of the cluster paper: methods beside C-RNEA, C-ABA and C-EFPA.

Each robot's methods are counted, and timed in turns in one measurement.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

from benchmarks import cluster_cases, machine
from benchmarks.pages import row, table_head
from benchmarks.papers.kept import Kept
from benchmarks.papers.markdown import percent
from benchmarks.papers.methods import contenders, random_states, times_of

ROBOTS = {
    "chain12": "geared chain 12", "belts12": "belt chain 12", "cheetah6": "Mini Cheetah",
    "mit6": "MIT Humanoid", "tello6": "Tello", "jvrc6": "JVRC-1",
}  # fmt: skip
"""Labels of the paper's robots by name of the benchmark's case, in its order."""
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
    (case,) = (each for each in cluster_cases.CLUSTER_CASES if each.name == name)
    return case.load()


def measured_here() -> str:
    """Return machine and day of a measurement."""
    return f"{machine.processor()}, {datetime.datetime.now(datetime.timezone.utc).date()}"


def tables(kept: Kept, names: Sequence[str], seconds: float) -> list[Found]:
    """Return the measurements of all tables.

    Parameters
    ----------
    names : of the cases.
    seconds : to measure each method.
    """
    every = []
    for table in TABLES:
        found = Found(table)
        for name in names:
            result = kept.of(
                f"table {table.number}: {ROBOTS[name]}, {seconds:g} s",
                partial(compared, name, table.quantity, seconds),
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


def lines(found: Found, printed: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a table."""
    table = found.table
    yield from (f"### Table {table.number} and figure {table.figure}: {table.title}", "")
    yield "| robot | method | operations | relative | time [µs] | relative | printed | verdict |"
    yield "|---|---|---:|---:|---:|---:|---:|---|"
    refused = []
    for name, counts in found.robots.items():
        column = printed["columns"].index(name)
        for method, count in counts.items():
            told = printed[table.number].get(method)
            text = "" if told is None else percent(told[column])
            relative = found.relative(name, method)
            label = ROBOTS[name] if method == table.reference else ""
            if relative is None:
                refused.append((ROBOTS[name], str(count)))
                yield f"| {label} | `{method}` | refused | | | | {text} | |"
                continue
            time = f"{1e6 * found.times[name][method]:.3g}"
            if method == table.reference:
                bars = printed["bars"][table.number]
                text = f"{bars[column]} µs" if column < len(bars) else ""
                yield f"| {label} | `{method}` | {count} | | {time} | | {text} | |"
                continue
            result = "" if told is None else verdict(told[column], relative)
            cells = (str(count), percent(relative["operations"]), time, percent(relative["times"]))
            yield f"| {label} | `{method}` | {' | '.join(cells)} | {text} | {result} |"
    for name, reason in dict(refused).items():
        yield from ("", f"Refused for {name}: {reason}.")
    yield ""


def library(printed: Mapping[str, Any]) -> Iterator[str]:
    """Yield the table of the authors' library beside table IV as printed."""
    heads = ("robot", "projection / C-EFPA [µs]", "relative", "printed")
    yield from ("### The authors' library on another processor", "", *table_head(heads))
    for column, name in enumerate(printed["columns"]):
        projection, efpa = (printed["library"][each][column] for each in ("projection", "efpa"))
        relative = percent(100.0 * (projection / efpa - 1.0))
        told = percent(printed["IV"]["projection"][column])
        yield row((ROBOTS[name], f"{projection:.1f} / {efpa:.1f}", relative, told))
