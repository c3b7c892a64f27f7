"""The report: Markdown tables, beside the plots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks import casadi_peer, machine, ours
from benchmarks.measure import MANY, RESIDENT, Result, Times, best, is_cpp, threaded
from benchmarks.pages import ABSENT, cell, document, short, table
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
    """

    is_clang: bool | None
    quick: bool
    results: list[Result] = field(default_factory=list)
    starts: list[StartUp] = field(default_factory=list)
    growths: list[Growth] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def claims(self) -> list[Claim]:
        """Return all claims with their outcome; a quick run stops before the large sizes."""
        claims: list[Claim] = []
        for result in self.results:
            if result.reason is None:
                claims += case_claims(result, bool(self.is_clang))
        for start in self.starts:
            claims += start_up_claims(start)
        for growth in [] if self.quick else self.growths:
            claims += growth_claims(growth)
        return claims


def times_table(results: Sequence[tuple[str, Times]], unit: float, one: str | None) -> str:
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


def claims_table(claims: Sequence[Claim], about: str) -> str:
    """Return how many claims hold, and each with its outcome; `about` says how they count."""
    words = {True: "yes", False: "**no**", None: "not claimed"}
    held = sum(claim.holds is True for claim in claims)
    failed = sum(claim.holds is False for claim in claims)
    rows = [[c.what, c.where, c.target, c.found, words[c.holds]] for c in claims]
    return (
        f"{held} hold, {failed} do not, {len(claims) - held - failed} are not claimed. {about}\n\n"
        + table(["claim", "where", "target", "found", "holds"], rows, words=5)
    )


def _start_up(report: Report) -> str:
    rows = [
        [
            start.case.label, start.algorithm, f"{start.first:.3f}",
            *[f"{start.stages[stage]:.3f}" for stage in STAGES], f"{start.cached:.3f}",
        ]
        for start in report.starts
    ]  # fmt: skip
    head = ["", "algorithm", "empty cache", *STAGES, "from the cache"]
    return table(head, rows, words=2)


def growth_table(growth: Growth) -> str:
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
    return "\n\n".join([table(head, rows), *notes])


def _operations(results: Sequence[Result]) -> str:
    names = list(dict.fromkeys(name for r in results for name in r.operations))
    rows = [[r.case.label, *[str(r.operations.get(n, ABSENT)) for n in names]] for r in results]
    return table(["", *names], rows)


def markdown(report: Report) -> str:
    """Return the whole page."""
    claims = report.claims()
    done = [r for r in report.results if r.reason is None]
    absent = [f"- {r.case.label}: {r.reason}" for r in report.results if r.reason is not None]
    notes = [f"- {r.case.label}: {note}" for r in done for note in r.notes]

    def of(attribute: str) -> list[tuple[str, Times]]:
        return [(r.case.label, getattr(r, attribute)) for r in done]

    sizes = list(dict.fromkeys(size for r in done for size in r.cold))
    cold = [
        f"After a walk through {size >> 20} MB:\n\n"
        + times_table([(r.case.label, r.cold[size]) for r in done], 1e-6, ours.CHOSEN)
        for size in sizes
    ]
    introduction = _INTRODUCTION.format(quick=_QUICK if report.quick else "")
    if not report.quick:
        introduction = f"{speeds(claims, machine.core())}\n\n{introduction}"
    sections = [
        ("Benchmarks beside Pinocchio and CasADi", introduction),
        ("Machine", table(["", ""], [
            ["processor", machine.processor()], ["caches", machine.caches()],
            ["C and C++ compiler", machine.compiler()], ["versions", machine.versions()],
        ], words=2) + "".join(f"\n\n{remark}" for remark in (*report.remarks, _OTHERS))),
        ("Claims", claims_table(claims, _BOTH) + _missed(claims)),
        ("One configuration, warm", "µs.\n\n" + times_table(of("warm"), 1e-6, ours.CHOSEN)
         + "\n\n![time per robot](robots.png)\n\n![time against m](rows.png)"),
        ("Operations", "Of the kernels, robot constants folded.\n\n" + _operations(done)),
        ("One configuration, cold", _COLD + "\n\n" + "\n\n".join(cold)),
        ("Called from Python", _PYTHON + "\n\n" + times_table(of("python"), 1e-6, None)),
        (f"A batch of {RESIDENT}", "In the cache, called in C, one thread; ns per configuration."
         "\n\n" + times_table(of("resident"), 1e-9, "batch, rows")),
        (f"A batch of {MANY}", "Ours called from Python on numpy arrays, peers in a C loop; ns "
         "per configuration.\n\n"
         + times_table(of("many"), 1e-9, threaded("rows", 1))),
        ("Start-up", "Seconds from a ready robot to a solver, the least of a few fresh processes. "
         "The stages are run once more afterwards, one after the other; the solver has a second "
         "process compile half of a long program.\n\n"
         + _start_up(report)),
        ("Growth", _GROWTH + "\n\n![growth](growth.png)\n\n"
         + "\n\n".join(growth_table(growth) for growth in report.growths)),
        ("Gears, belts and loops", "On a page of their own: [clusters.md](clusters.md)."),
        ("Left out", "\n".join(absent + notes) or "Nothing."),
    ]  # fmt: skip
    return document(*sections)


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


def _missed(claims: Sequence[Claim]) -> str:
    """Return why the claims that are not met are not."""
    missed = [claim.what for claim in claims if claim.holds is False]
    reasons = [
        f"- {reason}"
        for kind, reason in _REASONS.items()
        if any(what.startswith(kind) for what in missed)
    ]
    return "\n\nWhy some are not met, by kind:\n\n" + "\n".join(reasons) if reasons else ""


_QUICK = "\n\n**A quick run: too few repetitions for any claim.**"
_INTRODUCTION = (
    "Written by `make bench`. Every table is from one run, with contenders timed in turns and a "
    "different random configuration at each call; cells are minimum / median over the samples. "
    "Each contender's matrix was first compared with the definition (difference at most 1e-9). "
    f"`{ours.CHOSEN}` is the algorithm held against the peers, our other ones stand beside it."
    "{quick}\n\n"
    "*C++* is Pinocchio compiled from the headers of its wheel for this processor. Its model is "
    "made from ours, joints depth first and turned so that each is about x, y or z, where "
    "Pinocchio is fastest; it may leave the lower triangle empty. The route by constraint "
    "Cholesky is damped by 1e-9, which redundant contacts need. "
    f"*CasADi* is the C code that CasADi generates from our `{casadi_peer.ALGORITHM}` run "
    "on its symbols, by the same compiler."
)
_OTHERS = (
    "Results on a processor without AVX-512: [other_processors.md](other_processors.md)."
)
_COLD = (
    "µs, one call at a time after a walk through other memory, the clock's cost (some 20 ns) "
    "included. How much of the caches a walk clears is the processor's affair: much of the "
    "second level may survive a short one."
)
_PYTHON = (
    "µs. Ours includes writing q into the kernel's input. `DelassusSolver.solve` checks its "
    "input and returns a matrix of its own."
)
_GROWTH = (
    "The exponent is the slope on log axes over the larger half of the sizes. Times are minima. "
    "Where the curves step up, kernels begin to be tables of calls: scalar code, but compiled in "
    "seconds, whatever the size."
)
