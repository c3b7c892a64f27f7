"""The page about robots with gears, belts and loops: what is claimed, tables, plots."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks.arguments import add_cases, add_output, add_quick, folder_of, parser_of
from benchmarks.cases import CASES
from benchmarks.cluster_cases import CLUSTER_CASES
from benchmarks.clusters import ALGORITHMS, BATCH, FOLDER, ClusterResult, Run, run
from benchmarks.compare import WrongResultError
from benchmarks.machine_speed import THERE, MachineSpeed
from benchmarks.measure import Times
from benchmarks.pages import ABSENT, QUICK, Block, Places, Table, about_machine, cell, table
from benchmarks.report import (
    claims_table,
    growth_table,
    shortfalls,
    times_table,
    with_figures,
)
from benchmarks.scaling import Curve, Growth
from benchmarks.targets import COUNT_EXPONENT, Claim, growth_claims
from benchmarks.timing import Timing

C_EFPA = 30.0
"""How many times faster than the authors' C++ library our efpa shall be."""
SAVING = 0.9
"""Operations of pv_osimr, relative to those of efpa."""
GROWING = ("efpa", "pv_osimr")
"""Those whose counts are claimed to grow no faster than they should. Times are not: straight-line
code leaves the processor's instruction cache long before it takes long to compile."""


def claims(run: Run) -> list[Claim]:
    """Return all claims with their outcome; a quick run stops before the large sizes."""
    made = [claim for result in run.results for claim in _case_claims(result, run.speed.factor)]
    for growth in [] if run.is_quick else run.growths:
        counts = {n: Curve(growth.curves[n].counts) for n in GROWING if n in growth.curves}
        about = growth_claims(Growth(growth.series, counts))
        made += [claim for claim in about if claim.what == COUNT_EXPONENT]
    return made


def _case_claims(result: ClusterResult, factor: float | None) -> list[Claim]:
    case, count, where = result.case, result.counts, result.case.label
    ours, others = count["pv_osimr"], (count[name] for name in ALGORITHMS if name != "auto")
    limits = {
        "pv_osimr / efpa": (ours, count["efpa"], "≤", SAVING),
        "auto / best other": (count["auto"], min(others), "≤", 1.0),
    }
    if case.beats_projection:
        limits["pv_osimr / ltl"] = (ours, count["ltl"], "<", 1.0)
    if case.prototype is not None:
        limits["pv_osimr / its prototype"] = (ours, case.prototype, "≤", 1.0)
    made = [_count_claim(what, where, *limit) for what, limit in limits.items()]
    if case.published is not None:
        targets = {"efpa": (result.warm["efpa"], C_EFPA),
                   "the best of ours": (best(result.warm), case.best)}  # fmt: skip
        peer = case.published.timing("efpa")
        made += [
            _speed_claim(f"the library's C-EFPA / {what}", where, mine, peer, least, factor)
            for what, (mine, least) in targets.items()
        ]
    return made


def _count_claim(what: str, where: str, one: int, other: int, sign: str, most: float) -> Claim:
    found = f"{one} / {other} = {one / other:.3f}"
    holds = one < most * other if sign == "<" else one <= most * other
    return Claim(f"operations, {what}", where, f"{sign} {most:g}", found, holds)


def _speed_claim(
    what: str, where: str, mine: Timing, peer: Timing, least: float, factor: float | None
) -> Claim:
    """Return the claim for the peer's median, taken to this machine by `factor` if known."""
    target = f"≥ {least:g}"
    ratio = mine.ratio(peer).median
    if factor is None:
        return Claim(what, where, target, f"{ratio:.0f}, machines not compared", None)
    found = f"{factor * ratio:.0f} ({ratio:.0f} unscaled)"
    return Claim(what, where, target, found, factor * ratio >= least)


def best(times: Times) -> Timing:
    """Return the times of the algorithm with the least median."""
    return min(times.values(), key=lambda timing: timing.median)


def places(run: Run) -> Places:
    """Return the results of the page by place."""
    results, factor = run.results, run.speed.factor
    return {
        "quick": QUICK if run.is_quick else "",
        "machine": about_machine(),
        "speed": _speed(run.speed),
        "claims": claims_table(claims(run), _BOTH),
        "operations": _operations(results),
        "warm": _warm(results, factor),
        "batch_count": BATCH,
        "batch": times_table([(r.case.label, r.batch) for r in results], 1e-9, None),
        "growth": map(growth_table, run.growths),
        "left_out": "\n".join(run.left_out) or "Nothing.",
    }


def _operations(results: Sequence[ClusterResult]) -> Table:
    head = ["", "joints", "freedoms", *ALGORITHMS,
            "pv_osimr / efpa", "pv_osimr / ltl"]  # fmt: skip
    rows = []
    for r in results:
        cells = [f"{r.generic[name]} / {r.counts[name]}" for name in ALGORITHMS]
        ratios = [r.counts["pv_osimr"] / r.counts[name] for name in ("efpa", "ltl")]
        rows.append(
            [r.case.label, str(r.joints), str(r.freedoms), *cells, *[f"{x:.2f}" for x in ratios]]
        )
    return table(head, rows)


def _speed(speed: MachineSpeed) -> list[Block]:
    """Return how the peer's times here and there compare, and what follows."""
    factor = speed.factor
    if factor is None:
        reason = f"The peer could not be timed: {speed.reason}."
        return [f"{reason} No ratio to the library is claimed."]
    labels = {case.name: case.label for case in CASES}
    rows = [
        [labels[name], f"{THERE[name] * 1e6:.2f}", f"{time * 1e6:.2f}",
         f"{time / THERE[name]:.2f}"]
        for name, time in speed.here.items()
    ]  # fmt: skip
    head = ["Pinocchio C++, best route, minimum", "there [µs]", "here [µs]", "here / there"]
    return [table(head, rows), f"The library's times count {factor:.2f} times here."]


def _warm(results: Sequence[ClusterResult], factor: float | None) -> Table:
    head = ["", *ALGORITHMS, "library's C-EFPA", "library's projection", "C-EFPA / efpa",
            "C-EFPA / best", "projection / best"]  # fmt: skip
    rows = []
    for r in results:
        row = [r.case.label]
        row += [cell(r.warm[name]) for name in ALGORITHMS]
        if r.case.published is None:
            rows.append(row + [ABSENT] * 5)
            continue
        c_efpa, projection = (r.case.published.timing(n) for n in ("efpa", "ltl"))
        row += [f"{peer.median * 1e6:.1f}" for peer in (c_efpa, projection)]
        fastest = best(r.warm)
        for mine, peer in (
            (r.warm["efpa"], c_efpa), (fastest, c_efpa), (fastest, projection),
        ):  # fmt: skip
            row.append(f"{mine.ratio(peer).median * (factor or 1.0):.0f}")
        rows.append(row)
    return table(head, rows)


def write(run: Run, folder: Path) -> list[Claim]:
    """Write page and plots; return the claims."""
    with_figures(folder / "clusters.md", "benchmarks/clusters", places(run))
    return claims(run)


_BOTH = """\
Speed counts by the median, the library's times taken to this machine. *Its prototype* is the
first, untuned implementation of pv_osimr: the one here may not need more operations."""


def main() -> int:
    """Run this part alone; return the exit status."""
    parser = parser_of(".cluster_report", "Count and time robots with gears, belts and loops.")
    add_cases(parser, CLUSTER_CASES)
    add_quick(parser, "few repetitions and small sizes")
    add_output(parser, FOLDER, "the folder of clusters.md")
    arguments = parser.parse_args()
    seconds = 0.02 if arguments.quick else 0.1
    try:
        done = run(arguments.robots, seconds, arguments.quick, partial(print, flush=True))
    except WrongResultError as error:
        print(f"A wrong matrix, so no page is written. {error}", file=sys.stderr)
        return 1
    folder = folder_of(arguments, FOLDER)
    print(*shortfalls(write(done, folder)), folder / "clusters.md", sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
