"""Drawing of figures: an algorithm has one style in all of the papers', readable in grey.

Lines differ by colour, dashes and marks (:data:`~delassus.drawing.figures.SERIES`), bars by
shade and hatching. Numbers of a recount are hollow marks without a line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from delassus.drawing.figures import SERIES

_ORDER = ("pv_osimr", "pv_osim", "efpa", "ltl", "kjr")
STYLES: Mapping[str, Mapping[str, Any]] = dict(zip(_ORDER, SERIES, strict=False))
"""Line styles by algorithm."""
_CLOSEST_TICKS = 1.45
"""Least ratio of neighbouring labels of a logarithmic axis of sizes."""
_FILLS = [
    {"color": colour, "hatch": hatch, "edgecolor": "#20242c", "linewidth": 0.8}
    for colour, hatch in (
        ("#20242c", ""), ("#f0f0f0", "////"), ("#9aa5b8", "...."), ("#d4d9e2", "xxxx"),
        ("#6b7688", "\\\\\\\\"), ("#ffffff", "----"), ("#c3cad6", "oo"),
    )
]  # fmt: skip
"""Shades and hatching of bars."""


def figure(rows: int, columns: int, size: tuple[float, float]) -> tuple[Figure, list[Axes]]:
    """Return a figure with axes, row by row; `size` in inches."""
    drawn = Figure(figsize=size, layout="constrained")
    return drawn, list(drawn.subplots(rows, columns, squeeze=False).flat)


def curve(
    axes: Axes, points: Mapping[int, float], label: str, style: Mapping[str, Any] = {}
) -> None:
    """Draw a curve with its marks."""
    axes.plot(list(points), list(points.values()), markersize=5, label=label, **style)


def marks(
    axes: Axes, points: Mapping[int, float], style: Mapping[str, Any], label: str = ""
) -> None:
    """Draw numbers of a recount as larger hollow marks."""
    axes.plot(
        list(points), list(points.values()), linestyle="none", marker=style["marker"],
        color=style["color"], markerfacecolor="none", markersize=9, label=label or None,
    )  # fmt: skip


def sizes(axes: Axes, values: Sequence[int], label: str, unit: str = "operations") -> None:
    """Make both axes logarithmic and label these sizes, from the largest, as far as they fit."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    chosen: list[int] = []
    for value in reversed(values):
        if not chosen or chosen[-1] >= _CLOSEST_TICKS * value:
            chosen.append(value)
    chosen.reverse()
    axes.set_xticks(chosen, [str(value) for value in chosen])
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(_number))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel(label)
    axes.set_ylabel(unit)
    axes.grid(alpha=0.3)


def _number(value: float, _: int) -> str:
    return f"{value:,.0f}" if value >= 1.0 else f"{value:g}"


def thousands(axes: Axes) -> None:
    """Label the y axis with thousands of operations, from 0 on."""
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / 1000:g}"))
    axes.set_ylabel("thousand operations")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3, axis="y")
    axes.set_axisbelow(True)


def _heights(
    values: Mapping[str, Mapping[str, float]],
) -> Iterator[tuple[str, list[float], Mapping[str, Any]]]:
    """Yield the bars of each label in all groups, 0 where there is none, with their filling."""
    names = dict.fromkeys(name for group in values.values() for name in group)
    for name, fill in zip(names, _FILLS, strict=False):
        yield name, [group.get(name, 0.0) for group in values.values()], fill


def bars(
    axes: Axes,
    values: Mapping[str, Mapping[str, float]],
    recount: Mapping[str, Mapping[str, float]] | None = None,
) -> None:
    """Draw groups of bars, with numbers of a recount as hollow diamonds.

    Parameters
    ----------
    values : by label of the group, then by label of the bar.
    recount : likewise; bars without a number may be absent.
    """
    drawn = list(_heights(values))
    width = 0.8 / len(drawn)
    for k, (name, heights, fill) in enumerate(drawn):
        at = np.arange(len(values)) + width * (k - (len(drawn) - 1) / 2)
        axes.bar(at, heights, width, label=name, **fill)
        told = [(recount or {}).get(label, {}).get(name, np.nan) for label in values]
        if not np.isnan(told).all():
            axes.plot(at, told, linestyle="none", marker="D", color="#b3362b", markersize=5,
                      markerfacecolor="white")  # fmt: skip
    axes.set_xticks(range(len(values)), list(values))
    thousands(axes)


def stacked(axes: Axes, values: Mapping[str, Mapping[str, float]]) -> None:
    """Draw a bar per group with its parts one on the other, first at the bottom."""
    bottom = np.zeros(len(values))
    for name, heights, fill in _heights(values):
        axes.bar(range(len(values)), heights, 0.6, bottom=bottom, label=name, **fill)
        bottom += heights
    axes.set_xticks(range(len(values)), list(values))
    thousands(axes)
