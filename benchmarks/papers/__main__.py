"""Tables and figures of the papers beside this project's: ``python -m benchmarks.papers``.

``make papers`` writes the pages of :data:`ALL` and their figures in ``docs/papers``. Each
result is kept in ``build/papers.json`` during a run, so that an interrupted run can be continued.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import cluster_cases
from benchmarks.arguments import add_output
from benchmarks.papers import counts, efpa, nori, osimr, verdicts
from benchmarks.papers.kept import Kept
from benchmarks.papers.markdown import percent
from benchmarks.papers.page import Page, Part, published
from delassus_ros.drawing.figures import save
from delassus_ros.terminal import replace_line

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "build" / "papers.json"
PAGES, QUICK = ROOT / "docs" / "papers", ROOT / "build" / "papers"
ROBOTS = {
    "chain12": "geared chain 12", "belts12": "belt chain 12", "cheetah6": "Mini Cheetah",
    "mit6": "MIT Humanoid", "tello6": "Tello", "jvrc6": "JVRC-1",
}  # fmt: skip
"""Labels of the cluster paper's robots by name of the benchmark's case."""
_CLOSE = 15.0
"""Percentage points that two relative costs may differ by to count as the same."""


def verdict(printed: float, found: float) -> str:
    """Return whether a relative cost [%] reproduces."""
    if abs(printed - found) <= _CLOSE:
        return "reproduces"
    if printed * found > 0 and min(abs(printed), abs(found)) > 1.0:
        return "same sign"
    return "does not"


def _of_methods(case: cluster_cases.ClusterCase, function: str) -> dict[str, int | str]:
    return dict(counts.of_methods(case.load().problem.robot, function))


def clusters(printed: Mapping[str, Any], kept: Kept, names: Iterable[str]) -> Iterator[str]:
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
                partial(_of_methods, cases[name], function),
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
                told = "" if text is None else percent(text[column])
                if isinstance(count, str):
                    yield f"| | `{method}` | refused | | {told} | |"
                    continue
                relative = 100.0 * (count / base - 1.0)
                result = "" if text is None else verdict(text[column], relative)
                yield f"| | `{method}` | {count} | {percent(relative)} | {told} | {result} |"
        refused = {
            (name, reason)
            for name in chosen
            for reason in found[name].values()
            if isinstance(reason, str)
        }
        for name, reason in sorted(refused):
            yield from ("", f"Refused for {ROBOTS[name]}: {reason}.")


def _clusters(kept: Kept, quick: bool) -> Mapping[str, list[Part]]:
    robots = ["cheetah6"] if quick else list(ROBOTS)
    return {"tables": [lambda: clusters(published("clusters"), kept, robots)]}


PAPERS = (
    Page("pv_osimr", osimr.parts, osimr.figures, osimr.claims, "PV-OSIMr"),
    Page("efpa", efpa.parts, efpa.figures, efpa.claims, "EFPA"),
    Page("clusters", _clusters),
    Page("nori", nori.parts, nori.figures, nori.claims, "Sparse factorisation (Nori)"),
)
"""A page per paper."""
ALL = (*PAPERS, Page("verdicts", partial(verdicts.parts, PAPERS, ROBOTS)))
"""All pages, the summary last."""


def main() -> int:
    """Write the pages; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument(
        "--quick", action="store_true",
        help="one robot of each page, written to build/papers, as a test of the benchmark",
    )  # fmt: skip
    add_output(parser, PAGES, "the pages")
    parser.add_argument(
        "--page", action="append", choices=[page.name for page in ALL],
        help="a page to write; may be repeated (default: all)",
    )  # fmt: skip
    arguments = parser.parse_args()
    folder = arguments.output
    if arguments.quick and folder == PAGES:
        folder = QUICK
    pages = [page for page in ALL if not arguments.page or page.name in arguments.page]
    kept = Kept(KEPT)
    try:
        write(folder, kept, pages, arguments.quick)
    except KeyboardInterrupt:
        replace_line("")
        print(f"Interrupted. The same command continues with the results kept in {KEPT}.")
        return 130
    kept.end()
    return 0


def write(folder: Path, kept: Kept, pages: Sequence[Page], quick: bool) -> None:
    """Write pages and their figures."""
    parts = {page: page.parts(kept, quick) for page in pages}
    kept.parts = sum(len(some) for places in parts.values() for some in places.values())
    folder.mkdir(parents=True, exist_ok=True)
    for page, places in parts.items():
        lines: dict[str, list[str]] = {place: [] for place in places}
        for place, some in places.items():
            for part in some:
                kept.show(page.name)
                lines[place] += part()
                kept.done += 1
        path = folder / f"{page.name}.md"
        path.write_text(page.text(lines, kept, quick), encoding="utf-8")
        for name, figure in ({} if quick else page.figures(kept)).items():
            save(figure, folder / f"{name}.svg")
        print(path)


if __name__ == "__main__":
    sys.exit(main())
