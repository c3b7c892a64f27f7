"""Table I and figures 3 to 6 of the PV-OSIMr paper: operations, exponents and a plot.

Counts are generic; published ones are those counted again from the authors' implementation, of
``../shared/oracle/operation_counts.json``. Fitted exponents are slopes on log axes over the three
largest sizes, :func:`benchmarks.scaling.exponent`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402 (after the choice of the back end)
import numpy as np  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from matplotlib.ticker import FuncFormatter, NullFormatter  # noqa: E402

from benchmarks import mechanisms  # noqa: E402
from benchmarks.operation_counts import PAPER_NAMES, Row, rows  # noqa: E402
from benchmarks.papers import counts  # noqa: E402
from benchmarks.papers.kept import Kept  # noqa: E402
from benchmarks.scaling import exponent  # noqa: E402
from delassus_ros import Contact, Problem, Transform  # noqa: E402

ALGORITHMS = ("ltl", "kjr", "efpa", "pv_osim", "pv_osimr")
PLOTTED = ("efpa", "pv_osim", "pv_osimr")
"""Algorithms of figures 3 and 4."""
BRANCHES = (1, 2, 4, 7, 10)
STEMS = (10, 50, 100)
ATLAS = (
    "Atlas feet 2x6D, K=I6", "Atlas feet 2x(4x3D), K=[-skew(p) I] numeric p",
    "Atlas feet+hands 4x6D, K=I6",
)  # fmt: skip
"""Rows of figure 5, as published; section IV-E has the last one in its text."""
HANDS = (
    "Shadow hand (fixed forearm, 24 dof) 5x3D, K=[0 I]", "Atlas + 1 Shadow hand 5x3D, K=[0 I]",
    "Atlas + 2 Shadow hands 10x3D, K=[0 I]",
    "Atlas + 2 Shadow hands 10x3D + feet 2x6D, K=[0 I], I6",
)  # fmt: skip
"""Rows of figure 6, as published."""
_STYLES = {"efpa": "s:", "pv_osim": "^--", "pv_osimr": "o-", "kjr": "x-."}
_GREYS = {"efpa": "tab:orange", "pv_osim": "tab:green", "pv_osimr": "black", "kjr": "tab:gray"}


@cache
def published() -> Mapping[str, Row]:
    """Return the mechanisms that were counted again, by name."""
    return {row.name: row for row in rows()}


def _stem(length: int, branches: int) -> str:
    names = (n for n in published() if n.startswith(f"stem n={length}, {branches} branches"))
    return next(name for name in names if published()[name].group == "stem_rotated")


def _chain(joints: int, where: str) -> str:
    return f"chain floating base + {joints} joints, 6D on {where} K=I6"


def _last(joints: int, links: int) -> Problem:
    return mechanisms.chain(joints, f"last {links} links")


def _at_tip(joints: int, m: int) -> Problem:
    """Return a chain with m / 3 points at different places of its last link."""
    places = np.random.default_rng(0).normal(size=(m // 3, 3))
    contacts = [
        Contact(f"point {k}", f"link{joints}", "point", Transform(np.eye(3), place))
        for k, place in enumerate(places)
    ]
    return Problem(mechanisms.chain(joints, "tip").robot, contacts)


@dataclass(frozen=True)
class Sweep:
    """Mechanisms of growing size, all algorithms of which are fitted.

    Attributes
    ----------
    name : key of the expected exponents among the published numbers.
    title : of its table.
    variable : what the size is.
    algorithms : those that are counted.
    make : builds the problem of a size.
    sizes : those of the problems.
    recounted : names of the published mechanisms by size; empty where there are none.
    """

    name: str
    title: str
    variable: str
    algorithms: tuple[str, ...]
    make: Callable[[int], Problem]
    sizes: tuple[int, ...]
    recounted: Mapping[int, str]

    def found(self, kept: Kept, algorithm: str) -> dict[int, float]:
        """Return the counts of an algorithm by size."""
        return {
            size: kept.of(
                f"{algorithm}, {self.name}, {self.variable} = {size}",
                partial(self._count, size, algorithm),
            )
            for size in self.sizes
        }

    def _count(self, size: int, algorithm: str) -> int:
        return counts.of_algorithm(self.make(size), algorithm)

    def counted_again(self, algorithm: str) -> dict[int, float]:
        """Return the published counts of an algorithm by size."""
        paper = PAPER_NAMES.get(algorithm, "")
        at = {size: published()[name].published for size, name in self.recounted.items()}
        return {size: float(entry[paper]) for size, entry in at.items() if paper in entry}

    def lines(self, kept: Kept, printed: Mapping[str, Any]) -> Iterator[str]:
        """Yield the lines of the table."""
        yield from ("", f"## {self.title}", "")
        heads = " | ".join(f"{self.variable} = {size}" for size in self.sizes)
        yield f"| algorithm | {heads} | exponent | counted again | printed |"
        yield "|---|" + "---:|" * (len(self.sizes) + 3)
        for name in self.algorithms:
            found = self.found(kept, name)
            cells = " | ".join(str(found[size]) for size in self.sizes)
            fits = (_fitted(found), _fitted(self.counted_again(name)))
            told = printed["exponents"][self.name].get(name, "")
            yield f"| `{name}` | {cells} | {fits[0]} | {fits[1]} | {told} |"


def _fitted(points: dict[int, float]) -> str:
    slope = exponent(points)
    return "" if slope is None else f"{slope:.2f}"


_SQRT = {16: 4, 32: 6, 64: 8, 128: 11}
_ALL = (8, 16, 32, 64)


SWEEPS = (
    Sweep(
        "n", "Table I: over n, stems with two branches at each end, m = 24", "stem", ALGORITHMS,
        lambda n: mechanisms.stem(n, 2, rotated=True), (16, 32, 64, 128), {},
    ),
    Sweep(
        "m", "Table I: over m, 16 links, all contacts on the last one", "m", ALGORITHMS,
        lambda m: _at_tip(16, m), (24, 48, 96, 192), {},
    ),
    Sweep(
        "sqrt", "Figure 4(a): 6D contacts on the last √n of n links", "n", ALGORITHMS[1:],
        lambda n: _last(n, _SQRT[n]), tuple(_SQRT),
        {n: _chain(n, f"last {k} links") for n, k in _SQRT.items()},
    ),
    Sweep(
        "all", "Figure 4(b): a 6D contact on each of n links", "n", ALGORITHMS[1:],
        lambda n: mechanisms.chain(n, "every moving link"), _ALL,
        {n: _chain(n, "every moving link") for n in _ALL},
    ),
)  # fmt: skip


def _count(kept: Kept, name: str, algorithm: str) -> int:
    row = published()[name]
    return int(
        kept.of(f"{algorithm} of {name}", lambda: counts.of_algorithm(row.make(), algorithm))
    )


def _compared(kept: Kept, names: Mapping[str, str], algorithms: tuple[str, ...]) -> Iterator[str]:
    """Yield a table with ours beside the published counts; `names` by the label of the row."""
    yield "| mechanism | " + " | ".join(f"`{name}`" for name in algorithms) + " | cheapest |"
    yield "|---|" + "---:|" * len(algorithms) + "---|"
    for label, name in names.items():
        found = {algorithm: _count(kept, name, algorithm) for algorithm in algorithms}
        cells = []
        for algorithm, count in found.items():
            told = published()[name].published.get(PAPER_NAMES[algorithm])
            cells.append(str(count) if told is None else f"{count} of {told}")
        least = min(found.values())
        best = ", ".join(f"`{each}`" for each, count in found.items() if count == least)
        yield f"| {label} | " + " | ".join(cells) + f" | {best} |"


def lines(printed: Mapping[str, Any], kept: Kept, quick: bool) -> Iterator[str]:
    """Yield the lines of the page; a quick run has one mechanism of figures 3 and 5 each."""
    if not quick:
        yield from (
            "## Table I: complexities as printed",
            "",
            "| algorithm | printed |",
            "|---|---|",
        )
        yield from (f"| `{name}` | {text} |" for name, text in printed["complexities"].items())
        yield from (line for sweep in SWEEPS for line in sweep.lines(kept, printed))
    yield from ("", "## Figure 3: stems with branches of 7 links, a 6D contact at each tip", "")
    pairs = [(length, k) for k in BRANCHES for length in STEMS][: 1 if quick else None]
    stems = {f"stem {length}, branches {k}": _stem(length, k) for length, k in pairs}
    yield from _compared(kept, stems, PLOTTED)
    for title, chosen in (("Figure 5: Atlas", ATLAS), ("Figure 6: Shadow hands", HANDS)):
        names = chosen[: 1 if quick else None]
        yield from ("", f"## {title}", "")
        yield from _compared(kept, {name: name for name in names}, ("ltl", *PLOTTED))


def figure(kept: Kept) -> Figure:
    """Return the plot of figures 3 and 4, from counts that are kept."""
    drawn, panels = plt.subplots(2, 4, figsize=(15, 7.5))
    places = list(panels.flat)
    for ax, branches in zip(places, BRANCHES, strict=False):
        for name in PLOTTED:
            points = {n: float(_count(kept, _stem(n, branches), name)) for n in STEMS}
            again = {
                n: published()[_stem(n, branches)].published[PAPER_NAMES[name]] for n in STEMS
            }
            _curve(ax, points, name)
            ax.plot(list(again), list(again.values()), _STYLES[name][0], mfc="none", alpha=0.5,
                    color=_GREYS[name])  # fmt: skip
        ax.set_title("1 branch" if branches == 1 else f"{branches} branches")
        ax.set_xlabel("links of the stem")
        ax.set_ylabel("thousand operations")
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / 1000:g}"))
        ax.set_ylim(bottom=0)
        ax.grid(alpha=0.3)
    for ax, sweep in zip(places[len(BRANCHES) :], SWEEPS[2:], strict=False):
        ax.set_xscale("log")
        ax.set_yscale("log")
        for name in sweep.algorithms:
            points = sweep.found(kept, name)
            _curve(ax, points, name, f"{name}, slope {_fitted(points)}")
        ax.set_title(sweep.title.partition(": ")[2], fontsize=10)
        ax.set_xlabel("links n")
        ax.set_ylabel("operations")
        ax.set_xticks(sweep.sizes, [str(n) for n in sweep.sizes])
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.legend(fontsize=8)
        ax.grid(alpha=0.3)
    last = places[-1]
    last.axis("off")
    handles, labels = places[0].get_legend_handles_labels()
    last.legend(handles, labels, loc="center", title="lines: ours; hollow: counted again")
    drawn.tight_layout()
    return drawn


def _curve(ax: Axes, points: Mapping[int, float], name: str, label: str = "") -> None:
    ax.plot(list(points), list(points.values()), _STYLES[name], color=_GREYS[name], ms=4,
            label=label or name)  # fmt: skip
