"""Tables II to IV of the cluster paper: methods beside C-RNEA, C-ABA and C-EFPA.

Each robot's methods are counted, and timed in turns, in several processes. Verdicts are by
operations: the times of the same kernels differ between processes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

from benchmarks import cluster_cases, oracle, pages
from benchmarks.cases import chosen
from benchmarks.pages import table
from benchmarks.papers.kept import Kept
from benchmarks.papers.methods import (
    contenders,
    in_process,
    measured_here,
    random_states,
    times_of,
)
from benchmarks.papers.page import percent, under_headings
from delassus import Problem

ROBOTS = {
    "chain12": "geared chain 12", "belts12": "belt chain 12", "cheetah6": "Mini Cheetah",
    "mit6": "MIT Humanoid", "tello6": "Tello", "jvrc6": "JVRC-1",
}  # fmt: skip
"""Labels of the paper's robots by name of the benchmark's case, in its order."""
_HEADS = ("robot", "method", "operations", "relative", "time [µs]", "relative", "printed",
          "verdict")  # fmt: skip
CLOSE = 15.0
"""Percentage points that two relative costs may differ by to count as the same."""
PROCESSES = 3
"""Processes that measure the times of a whole run."""
_AGREEING = 1.1
"""Largest ratio of a method's relative times by which processes agree."""
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
    robots : name of the case → method → operations.
    times : name of the case → per process, method → least time of its kernel [s].
    """

    table: Table
    robots: dict[str, dict[str, int]] = field(default_factory=dict)
    times: dict[str, list[dict[str, float]]] = field(default_factory=dict)

    def relative(self, name: str, method: str) -> float:
        """Return how many more operations a method takes than the reference [%]."""
        counts = self.robots[name]
        return 100.0 * (counts[method] / counts[self.table.reference] - 1.0)

    def slower(self, name: str, method: str) -> list[float]:
        """Return how much longer a method takes than the reference [%], by process."""
        return [
            100.0 * (times[method] / times[self.table.reference] - 1.0)
            for times in self.times[name] if method in times
        ]  # fmt: skip

    def least_times(self, name: str) -> dict[str, float]:
        """Return the least time of each method of all processes [s]."""
        every = self.times[name]
        return {method: min(times[method] for times in every) for method in every[0]}


def counted(name: str, quantity: str) -> dict[str, int]:
    """Return the operations of a robot's methods."""
    every = contenders(loaded(name).problem, quantity, near=near(name))
    return {method: found.count() for method, found in every}


def timed(names: Sequence[str], seconds: float) -> dict[str, Any]:
    """Return the times [s] of all methods by table and robot, with machine and day.

    Parameters
    ----------
    names : of the cases.
    seconds : to measure each method.
    """
    found: dict[str, dict[str, Any]] = {about.number: {} for about in TABLES}
    for name in names:
        problem = loaded(name).problem
        states = random_states(problem, loaded(name).pool())
        for about in TABLES:
            found[about.number][name] = times_of(
                problem, about.quantity, states, seconds, near=near(name)
            )
    return {"times": found, "measured": measured_here()}


@cache
def loaded(name: str) -> cluster_cases.Closed:
    """Return the robot of a case; once, as its reader warns of some bodies."""
    (case,) = chosen(name, cluster_cases.CLUSTER_CASES)
    return case.load()


@cache
def near(name: str) -> Problem:
    """Return the problem that the approximations of a case take.

    The independent joints of Tello's differentials are those of the links, as in the authors'
    code; those of the rotors would leave out links.
    """
    problem = loaded(name).problem
    if not problem.robot.functions:
        return problem
    return Problem(oracle.robot(problem.robot.name, by_links=True), problem.contacts)


def tables(
    kept: Kept, names: Sequence[str], seconds: float, processes: int
) -> tuple[list[Found], set[str]]:
    """Return the measurements of all tables, and the machines and days of the times.

    Parameters
    ----------
    names : of the cases.
    seconds : to measure each method.
    processes : that measure times.
    """
    runs = [
        kept.of(
            f"times of {', '.join(names)}, {seconds:g} s, process {k + 1}",
            partial(in_process, partial(timed, tuple(names), seconds)),
        )
        for k in range(processes)
    ]
    every = [Found(about) for about in TABLES]
    for found in every:
        for name in names:
            found.robots[name] = kept.of(
                f"table {found.table.number}: {ROBOTS[name]}",
                partial(counted, name, found.table.quantity),
            )
            found.times[name] = [run["times"][found.table.number][name] for run in runs]
    return every, {run["measured"] for run in runs}


def agreement(tables: Sequence[Found]) -> str:
    """Return the sentence on the relative times that differ between processes."""
    pairs = [
        found.slower(name, method)
        for found in tables
        for name, methods in found.times.items()
        for method in methods[0]
        if method != found.table.reference
    ]
    apart = sum(
        max(values) + 100.0 > _AGREEING * (min(values) + 100.0) or min(values) < 0.0 < max(values)
        for values in pairs
    )
    return (
        f"Of {len(pairs)} relative times {apart} differ in sign or by more than 10 % between "
        f"{len(next(iter(tables[0].times.values())))} processes."
    )


def verdict(printed: float, found: float) -> str:
    """Return whether a relative cost [%] reproduces by operations."""
    return "reproduces" if abs(printed - found) <= CLOSE else "does not"


def results(tables: Sequence[Found], printed: Mapping[str, Any]) -> Iterator[object]:
    """Return the tables, and that of the authors' library beside table IV as printed."""
    sections: dict[str, object] = {}
    for found in tables:
        about, rows = found.table, []
        for name, counts in found.robots.items():
            for method in counts:
                label = ROBOTS[name] if method == about.reference else ""
                rows.append((label, f"`{method}`", *_cells(found, name, method, printed)))
        heading = f"Table {about.number} and figure {about.figure}: {about.title}"
        sections[heading] = table(_HEADS, rows, 2)
    sections["The authors' library on another processor"] = _library(printed)
    return under_headings(sections, "###")


def _cells(found: Found, name: str, method: str, printed: Mapping[str, Any]) -> tuple[object, ...]:
    """Return the cells of a method of a robot."""
    number, column = found.table.number, printed["columns"].index(name)
    told = printed[number][method][column] if method in printed[number] else None
    count, time = found.robots[name][method], found.least_times(name).get(method)
    microseconds = "" if time is None else f"{1e6 * time:.3g}"
    if method == found.table.reference:
        bars = dict(zip(printed["columns"], printed["bars"][number], strict=False))
        return (count, "", microseconds, "", f"{bars[name]} µs" if name in bars else "", "")
    relative, slower = found.relative(name, method), found.slower(name, method)
    text, result = ("", "") if told is None else (percent(told), verdict(told, relative))
    times = between(slower) if slower else ""
    return (count, percent(relative), microseconds, times, text, result)


def between(values: Iterable[float]) -> str:
    """Return the range of relative costs [%]."""
    every = list(values)
    least, most = percent(min(every)), percent(max(every))
    return least if least == most else f"{least} to {most}"


def _library(printed: Mapping[str, Any]) -> pages.Table:
    rows = []
    for column, name in enumerate(printed["columns"]):
        projection, efpa = (printed["library"][each][column] for each in ("projection", "efpa"))
        relative = percent(100.0 * (projection / efpa - 1.0))
        told = percent(printed["IV"]["projection"][column])
        rows.append((ROBOTS[name], f"{projection:.1f} / {efpa:.1f}", relative, told))
    return table(("robot", "projection / C-EFPA [µs]", "relative", "printed"), rows)
