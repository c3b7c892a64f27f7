"""Tables and figures of the papers beside this project's: ``python -m benchmarks.papers``.

``make papers`` writes the pages of :data:`ALL` and their figures in ``docs/papers``. Each
result is kept in ``build/papers.json`` during a run, so that an interrupted run can be continued.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks import pages
from benchmarks.arguments import add_output, add_quick, folder_of, parser_of
from benchmarks.papers import cluster_page, efpa, nori, osimr, verdicts
from benchmarks.papers.kept import Kept
from benchmarks.papers.page import Page
from delassus.drawing.figures import save_for_page
from delassus.programs.terminal import replace_line

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "build" / "papers.json"
PAGES = ROOT / "docs" / "papers"

PAPERS = (
    Page("pv_osimr", osimr.places, osimr.figures, osimr.findings, "PV-OSIMr"),
    Page("efpa", efpa.places, efpa.figures, efpa.findings, "EFPA"),
    Page(
        "clusters",
        cluster_page.places,
        cluster_page.figures,
        cluster_page.findings,
        "Kinematic loops",
    ),  # fmt: skip
    Page("nori", nori.places, nori.figures, nori.findings, "Sparse factorisation (Nori)"),
)
"""A page per paper."""
ALL = (*PAPERS, Page("verdicts", partial(verdicts.places, PAPERS)))
"""All pages, the summary last."""


def main() -> int:
    """Write the pages; return the exit status."""
    parser = parser_of(".papers", __doc__)
    add_quick(parser, "one robot of each page")
    add_output(parser, PAGES, "the pages")
    parser.add_argument(
        "--page", action="append", choices=[page.name for page in ALL],
        help="a page to write; may be repeated (default: all)",
    )  # fmt: skip
    arguments = parser.parse_args()
    folder = folder_of(arguments, PAGES)
    written = [page for page in ALL if not arguments.page or page.name in arguments.page]
    kept = Kept(KEPT, folder)
    try:
        write(kept, written, arguments.quick)
    except KeyboardInterrupt:
        replace_line("")
        print(f"Interrupted. The same command continues with the results kept in {KEPT}.")
        return 130
    kept.end()
    return 0


def write(kept: Kept, written: Sequence[Page], quick: bool) -> None:
    """Write pages and their figures."""
    folder = kept.folder
    kept.parts = len(written)
    for kept.done, page in enumerate(written):
        path = folder / f"{page.name}.md"
        pages.write(path, f"papers/{page.name}", page.places(kept, quick))
        for name, figure in ({} if quick else page.figures(kept)).items():
            save_for_page(figure, folder / f"{name}.png")
        print(path)


if __name__ == "__main__":
    sys.exit(main())
