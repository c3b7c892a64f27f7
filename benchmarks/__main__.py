"""Run all benchmarks and write the report: ``python -m benchmarks``."""

from __future__ import annotations

import argparse
import ctypes
import sys
import time
from pathlib import Path

from benchmarks import claims as stated
from benchmarks import cluster_report, clusters, compilers, ours, pinocchio_peer
from benchmarks.arguments import add_cases, add_output, add_quick, folder_of, parser_of
from benchmarks.cases import CASES, AbsentError, Case, chosen
from benchmarks.cluster_cases import CLUSTER_CASES
from benchmarks.compare import WrongResultError
from benchmarks.compilers import Compilation
from benchmarks.contenders import Contenders
from benchmarks.measure import Effort, measured
from benchmarks.report import Report, places, shortfalls, with_figures
from benchmarks.scaling import QUICK_SIZES, SERIES, growth
from benchmarks.startup import start_up
from benchmarks.targets import Claim
from delassus.errors import DelassusError

FULL = Effort(seconds=0.1, algorithms=None, most_operations=40_000)
QUICK = Effort(seconds=0.02, algorithms=("auto", "pv_osimr"), most_operations=40_000)
QUICK_CASES = "panda,quadruped,talos"
QUICK_CLUSTERS = "chain2,cheetah6,fourbar"
STARTED = ("quadruped", "anymal", "talos", "talos42")
"""Cases whose start-up is measured, if they are among the chosen ones and present."""
_LONGEST_BUILD = 40.0
"""Kernels of a growing robot that are expected to take longer [s] are not built."""


def _arguments() -> argparse.Namespace:
    parser = parser_of(
        "", "Time kernels beside Pinocchio and CasADi, robots with loops if all cases are run."
    )
    add_cases(parser, CASES)
    add_quick(parser, "few cases and repetitions")
    add_output(parser, cluster_report.FOLDER, "the folder of the report")
    return parser.parse_args()


_started = time.perf_counter()


def _say(text: str) -> None:
    print(f"[{time.perf_counter() - _started:5.0f} s] {text}", flush=True)


def _start_pinocchio(report: Report) -> Compilation | None:
    parts = pinocchio_peer.EFPA if report.quick else pinocchio_peer.ALL_ROUTES
    try:
        compilation = pinocchio_peer.compilation(parts)
        report.is_clang = compilers.find().is_clang
    except AbsentError as error:
        report.remarks.append(f"Pinocchio in C++ is left out: {error}")
        return None
    if report.quick:
        route = next(iter(pinocchio_peer.ROUTES))
        report.remarks.append(f"Of Pinocchio in C++ a quick run compiles {route} alone.")
    if not report.is_clang:
        report.remarks.append(
            "Without clang, with which Pinocchio is faster, ratios to C++ are not claimed."
        )
    return compilation


def _library(compilation: Compilation | None, report: Report) -> ctypes.CDLL | None:
    if compilation is None:
        return None
    _say("Pinocchio in C++: waiting for the compiler")
    try:
        return compilation.library(lambda text: _say(f"Pinocchio in C++: {text}"))
    except AbsentError as error:
        report.remarks.append(f"Pinocchio in C++ is left out: {error}")
        return None


def _run(cases: tuple[Case, ...], effort: Effort, report: Report) -> None:
    """Compile everything, then measure everything."""
    compilation = _start_pinocchio(report)
    ready: list[Contenders] = []
    for case in cases:
        try:
            problem = case.load()
            _say(f"{case.label}: compiling")
            names = effort.algorithms or ours.traced_names()
            ready.append(Contenders(case, problem, names, effort.most_operations))
        except (AbsentError, DelassusError) as error:
            _say(f"{case.label}: left out, {error}")
            report.left_out.append(f"- {case.label}: {error}")
    library = _library(compilation, report)
    for contenders in ready:
        label = contenders.case.label
        _say(f"{label}: checking all contenders")
        contenders.finish(library, lambda text, label=label: _say(f"{label}, {text}"))
    for contenders in ready:
        _say(f"{contenders.case.label}: measuring")
        report.results.append(measured(contenders, effort))
    present = {contenders.case.name: contenders.case for contenders in ready}
    for name in STARTED[: 1 if report.quick else None]:
        if name in present:
            for algorithm in ("pv_osimr",) if report.quick else (ours.CHOSEN, "pv_osimr"):
                _say(f"{present[name].label}: start-up, {algorithm}")
                report.starts.append(start_up(present[name], algorithm))
    for series in SERIES:
        sizes = series.sizes[: QUICK_SIZES if report.quick else None]
        report.growths.append(
            growth(series, sizes, library, _LONGEST_BUILD, effort.seconds, _say)
        )


def _clusters(effort: Effort, quick: bool, folder: Path) -> list[Claim]:
    """Measure robots with loops; write their page and return its claims."""
    cases = chosen(QUICK_CLUSTERS if quick else None, CLUSTER_CASES)
    return cluster_report.write(clusters.run(cases, effort.seconds, quick, _say), folder)


def main() -> int:
    """Run; return the exit status."""
    arguments = _arguments()
    quick, folder = arguments.quick, folder_of(arguments, cluster_report.FOLDER)
    is_whole = arguments.robots == CASES
    cases = chosen(QUICK_CASES) if quick and is_whole else arguments.robots
    report = Report(is_clang=None, quick=quick)
    try:
        effort = QUICK if quick else FULL
        _run(cases, effort, report)
        closed = _clusters(effort, quick, folder) if is_whole else []
    except WrongResultError as error:
        print(f"A wrong matrix, so no report is written. {error}", file=sys.stderr)
        return 1
    with_figures(folder / "README.md", "benchmarks/README", places(report))
    claims = [*report.claims(), *closed]
    for line in shortfalls(claims):
        _say(line)
    held = sum(claim.holds is True for claim in claims)
    _say(f"{held} of {len(claims)} claims hold; {folder / 'README.md'}")
    if quick:
        _say("what the pages state of speed: python -m benchmarks.claims")
        return 0
    for line in stated.report(stated.statements()):
        _say(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
