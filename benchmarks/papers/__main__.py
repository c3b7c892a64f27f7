"""Tables of the papers beside this project's: ``python -m benchmarks.papers``, ``make papers``.

The pages ``efpa.md``, ``clusters.md``, ``pv_osimr.md`` and the figure ``pv_osimr.svg`` are written
to ``docs/papers``. Counts are kept in ``build/papers.json`` during a run, so that an interrupted
run can be continued.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from benchmarks import cluster_cases
from benchmarks.papers import asimo, counts, osimr
from benchmarks.papers.kept import Kept
from delassus_ros.drawing.figures import save
from delassus_ros.terminal import replace_line

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED = Path(__file__).with_name("published.yaml")
TEXTS = Path(__file__).with_name("texts")
"""The pages' prose, with the place of their tables."""
KEPT = ROOT / "build" / "papers.json"
PAGES = ROOT / "docs" / "papers"
ROBOTS = {
    "chain12": "geared chain 12", "belts12": "belt chain 12", "cheetah6": "Mini Cheetah",
    "mit6": "MIT Humanoid", "tello6": "Tello", "jvrc6": "JVRC-1",
}  # fmt: skip
"""Labels of the cluster paper's robots by name of the benchmark's case."""
ALGORITHMS = ("ltl", "efpa", "kjr", "pv_osim", "pv_osimr")
_CLOSE = 15.0
"""Percentage points that two relative costs may differ by to count as the same."""


def verdict(printed: float, found: float) -> str:
    """Return whether a relative cost [%] reproduces."""
    if abs(printed - found) <= _CLOSE:
        return "reproduces"
    if printed * found > 0 and min(abs(printed), abs(found)) > 1.0:
        return "same sign"
    return "does not"


def _percent(value: float) -> str:
    return f"{value:+.1f} %".replace("-", "−")


def clusters(printed: dict[str, Any], kept: Kept, names: Iterable[str]) -> Iterator[str]:
    """Yield the lines of the cluster paper's page."""
    chosen = [name for name in printed["columns"] if name in set(names)]
    cases = {case.name: case for case in cluster_cases.CLUSTER_CASES}
    for table, function, reference, title in (
        ("II", "inverse", "c_rnea", "Inverse dynamics, relative to C-RNEA"),
        ("III", "forward", "c_aba", "Forward dynamics, relative to C-ABA"),
    ):
        found = {
            name: kept.of(
                f"{function} dynamics of {ROBOTS[name]}",
                lambda name=name, function=function: dict(
                    counts.of_methods(cases[name].load().problem.robot, function)
                ),
            )
            for name in chosen
        }
        yield from (f"## Table {table}: {title}", "")
        yield "| robot | method | operations | relative | printed | verdict |"
        yield "|---|---|---:|---:|---:|---|"
        for name in chosen:
            column = printed["columns"].index(name)
            base = found[name][reference]
            yield f"| {ROBOTS[name]} | `{reference}` | {base} | | | |"
            for method, count in found[name].items():
                if method == reference:
                    continue
                text = printed[table].get(method)
                told = "" if text is None else _percent(text[column])
                if isinstance(count, str):
                    yield f"| | `{method}` | refused | | {told} | |"
                    continue
                relative = 100.0 * (count / base - 1.0)
                result = "" if text is None else verdict(text[column], relative)
                yield f"| | `{method}` | {count} | {_percent(relative)} | {told} | {result} |"
        refused = {
            (name, reason)
            for name in chosen
            for reason in found[name].values()
            if isinstance(reason, str)
        }
        for name, reason in sorted(refused):
            yield from ("", f"Refused for {ROBOTS[name]}: {reason}.")


def efpa(printed: dict[str, Any], kept: Kept, names: Iterable[str]) -> Iterator[str]:
    """Yield the lines of the EFPA paper's page."""
    problem = asimo.Humanoid().problem("hf", "general")
    h_zeros, j_zeros = asimo.zeros(problem)
    yield from ("", "## The robot", "", "| | here | printed |", "|---|---:|---:|")
    robot = problem.robot
    yield f"| bodies | {len(robot.joints)} | {printed['bodies']} |"
    yield f"| freedoms | {robot.nv} | {printed['freedoms']} |"
    yield f"| zeros of the mass matrix | {h_zeros:.1f} % | {printed['zeros of H']} % |"
    yield f"| zeros of the Jacobian | {j_zeros:.1f} % | {printed['zeros of J']} % |"
    for axes in asimo.AXES:
        yield from ("", f"## Operations, axes {axes}", "")
        columns = " | ".join(f"`{a}`" for a in ALGORITHMS)
        heads = " | ".join(("robot, operational space", columns, "LTL / EFPA", "KJR / EFPA"))
        yield f"| {heads} |"
        yield "|---|" + "---:|" * (len(ALGORITHMS) + 2)
        for name in names:
            humanoid, ends = asimo.VARIANTS[name]
            row = {
                algorithm: kept.of(
                    f"{algorithm} of {name}, {axes}",
                    lambda humanoid=humanoid, ends=ends, algorithm=algorithm, axes=axes: (
                        counts.of_algorithm(humanoid.problem(ends, axes), algorithm)
                    ),
                )
                for algorithm in ALGORITHMS
            }
            cells = " | ".join(str(value) for value in row.values())
            ratios = f"{row['ltl'] / row['efpa']:.2f} | {row['kjr'] / row['efpa']:.2f}"
            yield f"| {name} | {cells} | {ratios} |"


def main() -> None:
    """Write the pages."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.papers", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true",
        help="one robot of each page, written to build/papers, as a test of the benchmark",
    )  # fmt: skip
    parser.add_argument(
        "--output", type=Path, metavar="FOLDER", help="folder of the pages (default: docs/papers)"
    )
    arguments = parser.parse_args()
    folder = arguments.output or (ROOT / "build" / "papers" if arguments.quick else PAGES)
    printed = yaml.safe_load(PUBLISHED.read_text(encoding="utf-8"))
    kept = Kept(KEPT)
    folder.mkdir(parents=True, exist_ok=True)
    robots = ["cheetah6"] if arguments.quick else list(ROBOTS)
    variants = list(asimo.VARIANTS)[: 1 if arguments.quick else None]
    for name, lines in (
        ("clusters", clusters(printed["clusters"], kept, robots)),
        ("efpa", efpa(printed["efpa"], kept, variants)),
        ("pv_osimr", osimr.lines(printed["pv_osimr"], kept, arguments.quick)),
    ):
        path = folder / f"{name}.md"
        text = (TEXTS / f"{name}.md").read_text(encoding="utf-8")
        path.write_text(text.replace("{tables}", "\n".join(lines).strip()), encoding="utf-8")
        replace_line("")
        print(path)
    if not arguments.quick:
        save(osimr.figure(kept), folder / "pv_osimr.svg")
    kept.end()


if __name__ == "__main__":
    main()
