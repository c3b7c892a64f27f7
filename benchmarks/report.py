"""The report: Markdown tables, beside the plots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import casadi_peer, machine, ours, pages
from benchmarks.measure import MANY, RESIDENT, Result, Times, best, is_cpp, threaded
from benchmarks.pages import (
    ABSENT,
    QUICK,
    Block,
    Places,
    Table,
    about_machine,
    cell,
    short,
    table,
)
from benchmarks.scaling import Growth, exponent
from benchmarks.startup import STAGES, StartUp
from benchmarks.targets import Claim, case_claims, growth_claims, speeds, start_up_claims


@dataclass
class Report:
    """All results of a run.

    Attributes
    ----------
    is_clang : whether Pinocchio was compiled by clang; None if it was not compiled.
    remarks : about the run as a whole, such as absent peers.
    left_out : a line per absent robot, with the reason.
    """

    is_clang: bool | None
    quick: bool
    results: list[Result] = field(default_factory=list)
    starts: list[StartUp] = field(default_factory=list)
    growths: list[Growth] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def claims(self) -> list[Claim]:
        """Return all claims with their outcome; a quick run stops before the large sizes."""
        claims: list[Claim] = []
        for result in self.results:
            claims += case_claims(result, bool(self.is_clang))
        for start in self.starts:
            claims += start_up_claims(start)
        for growth in [] if self.quick else self.growths:
            claims += growth_claims(growth)
        return claims


def times_table(results: Sequence[tuple[str, Times]], unit: float, one: str | None) -> Table:
    """Return a table with a row per case and a column per contender.

    Parameters
    ----------
    results : label and times of each case.
    one : add how many times faster than the best C++ route this contender is.
    """
    names = list(dict.fromkeys(name for _, times in results for name in times))
    names.sort(key=is_cpp)
    head = ["", *names, *([f"**best C++ / {one}**"] if one else [])]
    rows = []
    for label, times in results:
        row = [label, *[cell(times.get(name), unit) for name in names]]
        if one:
            peer, mine = best(times, is_cpp), times.get(one)
            row.append(cell(mine.ratio(peer) if mine and peer else None, 1.0))
        rows.append(row)
    return table(head, rows)


def glance(results: Sequence[tuple[str, Times]]) -> Table:
    """Return a table with the medians [µs] of the kernel and of the best C++ route per case."""
    rows = []
    for label, times in results:
        peer, mine = best(times, is_cpp), times.get(ours.CHOSEN)
        if mine and peer:
            medians = (short(each.median / 1e-6) for each in (mine, peer))
            rows.append([label, *medians, short(mine.ratio(peer).median)])
    return table(["", "kernel", "Pinocchio in C++", "times as fast"], rows)


def claims_table(claims: Sequence[Claim], about: str) -> list[Block]:
    """Return how many claims hold, and each with its outcome; `about` says how they count."""
    words = {True: "yes", False: "**no**", None: "not claimed"}
    held = sum(claim.holds is True for claim in claims)
    failed = sum(claim.holds is False for claim in claims)
    rows = [[c.what, c.where, c.target, c.found, words[c.holds]] for c in claims]
    return [
        f"{held} hold, {failed} do not, {len(claims) - held - failed} are not claimed. {about}",
        table(["claim", "where", "target", "found", "holds"], rows, words=5),
    ]


def _start_up(report: Report) -> Table:
    rows = [
        [
            start.case.label, start.algorithm, f"{start.first:.3f}",
            *[f"{start.stages[stage]:.3f}" for stage in STAGES], f"{start.cached:.3f}",
        ]
        for start in report.starts
    ]  # fmt: skip
    head = ["", "algorithm", "empty cache", *STAGES, "from the cache"]
    return table(head, rows, words=2)


def growth_table(growth: Growth) -> list[Block]:
    """Return counts and times of a series by size, with the fitted exponents below."""
    names = list(growth.curves)
    head = [growth.series.axis]
    columns = []
    for name in names:
        curve = growth.curves[name]
        for what, points, unit in (
            ("operations", curve.counts, 1.0), ("µs", curve.minima, 1e-6),
        ):  # fmt: skip
            if points:
                head.append(f"{name}, {what}")
                columns.append((points, unit))
    rows = [
        [str(x), *[short(points[x] / unit) if x in points else ABSENT for points, unit in columns]]
        for x in growth.series.sizes
        if any(x in points for points, _ in columns)
    ]
    exponents = [exponent(points) for points, _ in columns]
    rows.append(["exponent", *[ABSENT if e is None else f"{e:.2f}" for e in exponents]])
    notes = [f"{name}: {growth.curves[name].note}" for name in names if growth.curves[name].note]
    return [table(head, rows), *notes]


def _operations(results: Sequence[Result]) -> Table:
    names = list(dict.fromkeys(name for r in results for name in r.operations))
    rows = [[r.case.label, *[str(r.operations.get(n, ABSENT)) for n in names]] for r in results]
    return table(["", *names], rows)


def places(report: Report) -> Places:
    """Return the results of the page by place."""
    claims = report.claims()
    done = report.results
    notes = [f"- {r.case.label}: {note}" for r in done for note in r.notes]

    def of(attribute: str) -> list[tuple[str, Times]]:
        return [(r.case.label, getattr(r, attribute)) for r in done]

    sizes = list(dict.fromkeys(size for r in done for size in r.cold))
    cold = [
        [f"After a walk through {size >> 20} MB:",
         times_table([(r.case.label, r.cold[size]) for r in done], 1e-6, ours.CHOSEN)]
        for size in sizes
    ]  # fmt: skip
    return {
        "speeds": "" if report.quick else speeds(claims, machine.core()),
        "glance": glance(of("warm")),
        "quick": QUICK if report.quick else "",
        "chosen": ours.CHOSEN, "casadi": casadi_peer.ALGORITHM,
        "machine": about_machine(("C and C++ compiler", machine.compiler())),
        "remarks": report.remarks,
        "claims": [claims_table(claims, _BOTH), _missed(claims)],
        "warm": times_table(of("warm"), 1e-6, ours.CHOSEN), "operations": _operations(done),
        "cold": cold, "python": times_table(of("python"), 1e-6, None),
        "resident_count": RESIDENT, "resident": times_table(of("resident"), 1e-9, "batch, rows"),
        "many_count": MANY, "many": times_table(of("many"), 1e-9, threaded("rows", 1)),
        "start_up": _start_up(report), "growth": map(growth_table, report.growths),
        "left_out": "\n".join(report.left_out + notes) or "Nothing.",
    }  # fmt: skip


_BOTH = "Ratios are by minimum / by median, and both have to reach the target."
_REASONS = {
    "kernel / best C++, warm": (
        "*Warm*: a kernel of 7000 instructions has 50 KB, more than the first level of the cache "
        "holds of code, so that each call fetches it again from the second one."
    ),
    "kernel / best C++, cold": (
        "*Cold*: a kernel is straight-line code, some 10 KB for a quadruped, 30 to 60 KB for a "
        "humanoid and 200 KB for one with hands. When it is no longer in the caches it comes from"
        " memory; Pinocchio's loops are short."
    ),
    f"batch of {RESIDENT} ": (
        "*A batch in the cache, with 24 rows and more*: a matrix has 8 m² bytes, and writing them"
        " takes a good part of the time, the more the more rows there are, which no algorithm can"
        " save."
    ),
    "two threads": (
        "*Two threads*: what comes before and after the parts, some 20 µs, only one of them does,"
        " and the processor of the second one is also wanted by other programs. Two virtual "
        "processors were seen to run at two thirds of their speed for the first second in which "
        "both had work. On a processor without AVX-512, two callers that share nothing, with a "
        "half of the configurations each, took 2 to 5 % less than two threads for quadrupeds and "
        "some 10 % less for an arm, by minimum; at times both took twice as long."
    ),
    "start-up": (
        "*Start-up*: the limits are in seconds, for a machine on which Pinocchio takes the times "
        "that [clusters.md](clusters.md) has from there; it says how many times longer it takes "
        "here."
    ),
}
"""Why claims are not met, by what their names begin with."""


def _missed(claims: Sequence[Claim]) -> list[str]:
    """Return why the claims that are not met are not."""
    missed = [claim.what for claim in claims if claim.holds is False]
    reasons = [
        f"- {reason}"
        for kind, reason in _REASONS.items()
        if any(what.startswith(kind) for what in missed)
    ]
    return ["Why some are not met, by kind:", "\n".join(reasons)] if reasons else []


def shortfalls(claims: Sequence[Claim]) -> list[str]:
    """Return a line per claim that does not hold."""
    return [
        f"falls short: {claim.what}, {claim.where}: {claim.found}, {claim.target}"
        for claim in claims
        if claim.holds is False
    ]


def with_figures(page: Path, text: str, results: Places) -> None:
    """Write a page, and its figures if matplotlib is installed."""
    pages.write(page, text, results)
    try:
        from benchmarks import plots
    except ImportError as error:
        print(f"no plots: {error}; pip install matplotlib")
    else:
        plots.write(page)
