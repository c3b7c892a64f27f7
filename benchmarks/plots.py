"""The plots of the report."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402 (after the choice of the back end)
import numpy as np  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from matplotlib.ticker import NullFormatter, NullLocator  # noqa: E402

from benchmarks import ours  # noqa: E402
from benchmarks.clusters import ClusterResult  # noqa: E402
from benchmarks.contenders import CASADI  # noqa: E402
from benchmarks.measure import Result, best, is_cpp  # noqa: E402
from benchmarks.report import Report  # noqa: E402
from benchmarks.scaling import Growth, exponent  # noqa: E402

_DPI = 90
_COLOURS = {"ours": "tab:blue", "casadi": "tab:orange", "cpp": "tab:red"}


def _warm_bars(results: Sequence[Result]) -> dict[str, tuple[str, list[float]]]:
    """Return colour and medians [µs] per contender, NaN where there is none."""
    wanted: dict[str, tuple[str, Callable[[str], bool]]] = {
        f"ours, {ours.CHOSEN}": (_COLOURS["ours"], lambda name: name == ours.CHOSEN),
        CASADI: (_COLOURS["casadi"], lambda name: name == CASADI),
        "Pinocchio C++, best": (_COLOURS["cpp"], is_cpp),
    }
    bars = {}
    for label, (colour, belongs) in wanted.items():
        found = [best(result.warm, belongs) for result in results]
        bars[label] = (colour, [t.median * 1e6 if t else np.nan for t in found])
    return bars


def robots(results: Sequence[Result]) -> Figure:
    """Return bars per robot, ours beside the peers, on a log axis."""
    figure, axes = plt.subplots(figsize=(10, 4.5))
    bars = _warm_bars(results)
    at = np.arange(len(results))
    for k, (label, (colour, values)) in enumerate(bars.items()):
        drawn = axes.bar(at + 0.27 * (k - 1), values, 0.26, label=label, color=colour)
        axes.bar_label(drawn, fmt="%.2g", fontsize=6)
    axes.set_yscale("log")
    axes.set_ylabel("µs per matrix, warm, median")
    labels = [textwrap.fill(r.case.label, 14) for r in results]
    axes.set_xticks(at, labels, fontsize=6)
    axes.legend()
    return figure


def rows(results: Sequence[Result]) -> Figure:
    """Return time against m, one dot per case."""
    figure, axes = plt.subplots(figsize=(6, 4))
    m = [result.rows for result in results]
    for label, (colour, values) in _warm_bars(results).items():
        axes.loglog(m, values, "o", label=label, color=colour, alpha=0.7)
    axes.set_xlabel("rows m of the matrix")
    axes.set_ylabel("µs per matrix, warm, median")
    _mark(axes, sorted(set(m)))
    axes.legend()
    return figure


def _mark(axes: Axes, ticks: Sequence[int]) -> None:
    """Label these values of a logarithmic x axis and no others."""
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_minor_locator(NullLocator())


def growths(found: Sequence[Growth]) -> Figure:
    """Return counts above times against the size, on log axes with the fitted exponents."""
    figure, grid = plt.subplots(2, len(found), figsize=(4.2 * len(found), 7), squeeze=False)
    for column, growth in enumerate(found):
        for row, what in enumerate(("operations", "µs, warm, minimum")):
            axes = grid[row][column]
            for k, (name, curve) in enumerate(growth.curves.items()):
                points = curve.counts if row == 0 else curve.minima
                if points:
                    slope = exponent(points)
                    label = name if slope is None else f"{name}: exponent {slope:.2f}"
                    y = np.array(list(points.values())) * (1.0 if row == 0 else 1e6)
                    axes.loglog(list(points), y, "o-", label=label, markersize=8 - 2 * k)
            axes.set_ylabel(what)
            axes.set_xlabel(growth.series.axis, fontsize=7)
            _mark(axes, growth.series.sizes)
            axes.legend(fontsize=7)
    return figure


def clusters(results: Sequence[ClusterResult]) -> Figure:
    """Return bars per robot with loops, ours beside the authors' library's, on a log axis."""
    figure, axes = plt.subplots(figsize=(12, 5))
    at = np.arange(len(results))
    for k, name in enumerate(results[0].warm):
        values = [result.warm[name].median * 1e6 for result in results]
        axes.bar(at + 0.2 * (k - 1.5), values, 0.19, label=name)
    for name, marker in (("efpa", "_"), ("ltl", "x")):
        published = [result.case.published for result in results]
        values = [p.timing(name).median * 1e6 if p else np.nan for p in published]
        label = f"the authors' C++ {name}, another machine"
        axes.plot(at, values, marker, label=label, color="black", markersize=9)
    axes.set_yscale("log")
    axes.set_ylabel("µs per matrix, warm, median")
    axes.set_xticks(at, [textwrap.fill(r.case.label, 12) for r in results], fontsize=6)
    axes.set_ylim(top=4 * axes.get_ylim()[1])
    axes.legend(loc="upper center", ncols=6, fontsize=7)
    return figure


def write(report: Report, folder: Path) -> None:
    """Write all plots as PNG files."""
    done = [result for result in report.results if result.reason is None]
    figures: dict[str, Figure] = {}
    if done:
        figures |= {"robots": robots(done), "rows": rows(done)}
    if report.growths:
        figures["growth"] = growths(report.growths)
    save(figures, folder)


def save(figures: Mapping[str, Figure], folder: Path) -> None:
    """Write figures as PNG files and close them."""
    for name, figure in figures.items():
        figure.tight_layout()
        figure.savefig(folder / f"{name}.png", dpi=_DPI, metadata={"Software": None})
        plt.close(figure)
