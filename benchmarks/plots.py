"""Draws the figures of README.md and clusters.md from the results of these pages.

The comment of a figure's file is a digest of the tables that the figure shows, by which a test
knows whether they changed.
"""

from __future__ import annotations

import hashlib
import math
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from benchmarks import style
from benchmarks.arguments import add_output, parser_of
from benchmarks.measure import is_cpp
from benchmarks.pages import ABSENT, DOCS, Table, tables
from delassus.drawing.figures import SERIES, save_for_page

FOLDER = DOCS / "benchmarks"
_MEDIAN = "time per matrix in warm caches, median [µs]"


def _numbers(table: Table, name: str) -> list[float]:
    """Return the numbers of a column, medians of pairs; NaN where a cell has none."""
    last = (cell.rpartition("/")[2].strip() for cell in table.column(name))
    return [math.nan if cell == ABSENT else float(cell) for cell in last]


def digest(shown: Sequence[Table]) -> str:
    """Return the digest of tables."""
    return hashlib.sha256("\n".join(map(str, shown)).encode()).hexdigest()


def _peers(table: Table) -> dict[str, list[float]]:
    """Return the medians [µs] of ours and the peers."""
    routes = [_numbers(table, name) for name in table.head if is_cpp(name)]
    best = [min((t for t in times if t == t), default=math.nan)
            for times in zip(*routes, strict=True)]  # fmt: skip
    named = {"ours, auto": "auto", "CasADi": "CasADi"}
    found = {label: _numbers(table, name) for label, name in named.items() if name in table.head}
    return found | ({"Pinocchio C++, best": best} if routes else {})


def _dots(labels: Sequence[str], values: Mapping[str, Sequence[float]]) -> Figure:
    """Return a row per label with a mark per name, on a logarithmic axis of times."""
    figure, (axes,) = style.figure(1, 1, (8.0, 1.2 + 0.3 * len(labels)))
    axes.set_prop_cycle(SERIES)
    at = range(len(labels))
    for name, times in values.items():
        # Hollow, so that equal times are seen.
        axes.plot(times, at, linestyle="none", label=name, markersize=7, markerfacecolor="none",
                  markeredgewidth=1.5)  # fmt: skip
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_yticks(at, labels)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.set_xlabel(_MEDIAN)
    axes.grid(alpha=0.3)
    figure.legend(loc="outside upper center", ncols=3, frameon=False)
    return figure


def robots(shown: Sequence[Table]) -> Figure:
    """Return the times per robot, ours beside the peers."""
    (table,) = shown
    return _dots([row[0] for row in table.rows], _peers(table))


def rows(shown: Sequence[Table]) -> Figure:
    """Return time against m, one mark per case."""
    (table,) = shown
    figure, (axes,) = style.figure(1, 1, (6.4, 4.4))
    axes.set_prop_cycle(SERIES)
    m = [int(row[0].rpartition("m=")[2]) for row in table.rows]
    for name, times in _peers(table).items():
        axes.plot(m, times, linestyle="none", label=name, markersize=7, markerfacecolor="none")
    style.sizes(axes, sorted(set(m)), "rows m of the matrix", _MEDIAN)
    axes.legend()
    return figure


def growths(shown: Sequence[Table]) -> Figure:
    """Return counts beside times against the size, on log axes with the fitted exponents."""
    figure, places = style.figure(len(shown), 2, (9.0, 3.6 * len(shown)))
    for k, table in enumerate(shown):
        slopes = dict(zip(table.head, table.rows[-1], strict=True))
        sizes = [int(row[0]) for row in table.rows[:-1]]
        for axes, unit, label in (
            (places[2 * k], "operations", "operations"),
            (places[2 * k + 1], "µs", "time, warm, minimum [µs]"),
        ):
            axes.set_prop_cycle(SERIES)
            for name in table.head:
                if name.endswith(f", {unit}"):
                    shown_as = f"{name.removesuffix(f', {unit}')}: exponent {slopes[name]}"
                    points = dict(zip(sizes, _numbers(table, name)[:-1], strict=True))
                    style.curve(axes, points, shown_as)
            style.sizes(axes, sizes, textwrap.fill(table.head[0], 42), label)
            axes.legend(fontsize="small")
    return figure


def clusters(shown: Sequence[Table]) -> Figure:
    """Return the times per robot with loops, ours beside those of the authors' library."""
    (table,) = shown
    library = [name for name in table.head if name.startswith("library's ")]
    ours = table.head[1 : table.head.index(library[0])]
    values = {name: _numbers(table, name) for name in ours}
    values |= {f"{name}, another machine": _numbers(table, name) for name in library}
    return _dots([row[0] for row in table.rows], values)


FIGURES: Mapping[str, tuple[str, str, Callable[[Sequence[Table]], Figure]]] = {
    "robots": ("README.md", "warm", robots),
    "rows": ("README.md", "warm", rows),
    "growth": ("README.md", "growth", growths),
    "clusters": ("clusters.md", "warm", clusters),
    "clusters_growth": ("clusters.md", "growth", growths),
}
"""By file name without suffix: the page, the place whose tables are shown, and the drawing."""


def write(page: Path) -> list[Path]:
    """Draw the figures of a page beside it, as PNG, and return them; empty tables have none."""
    written = []
    for name, (of, place, draw) in FIGURES.items():
        shown = tables(page, place) if of == page.name else []
        if any(table.rows for table in shown):
            path = page.with_name(f"{name}.png")
            save_for_page(draw(shown), path, digest(shown))
            written.append(path)
    return written


def main() -> int:
    """Draw the figures of both pages anew; return the exit status."""
    parser = parser_of(".plots", __doc__)
    add_output(parser, FOLDER, "figures, into the folder of both pages")
    folder = parser.parse_args().output
    for page in ("README.md", "clusters.md"):
        if not (results := (folder / page).with_suffix(".json")).is_file():
            print(f"no {results.name} in {folder}", file=sys.stderr)
            return 2
        print(*write(folder / page), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
