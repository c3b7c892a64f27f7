"""Figures 9 to 14 of the cluster paper, drawn from what was counted and measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402 (after the choice of the back end)
import numpy as np  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from matplotlib.ticker import NullFormatter  # noqa: E402

from benchmarks.papers import leg  # noqa: E402
from benchmarks.papers.clusters import ROBOTS, Found  # noqa: E402
from delassus_ros.drawing.figures import SERIES  # noqa: E402

_LABELS = {
    "approximate": "approximate", "unconstrained": "unconstrained", "c_rnea": "C-RNEA",
    "c_aba": "C-ABA", "efpa": "C-EFPA", "projected": "projected", "projection": "projection",
    "lagrange": "Lagrange multipliers", "pv_osimr": "C-PV-OSIMr",
}  # fmt: skip
_EXACT, _LIGHT, _MIDDLE, _DARK = "#20242c", "#d4d9e2", "#9a7bb5", "#3f6fd8"
_BARS = {
    "approximate": (_LIGHT, ""), "c_rnea": (_EXACT, ""), "c_aba": (_EXACT, ""),
    "efpa": (_EXACT, ""), "projected": (_DARK, "//"), "projection": (_DARK, "//"),
    "lagrange": (_MIDDLE, ".."), "pv_osimr": ("white", "xx"),
}  # fmt: skip
"""Colour and hatching of bars, left to right."""
_STYLES = list(SERIES)
_CURVES = {
    "c_aba": _STYLES[0], "efpa": _STYLES[0], "projection": _STYLES[2], "lagrange": _STYLES[1],
    "approximate": _STYLES[3], "pv_osimr": _STYLES[4],
}  # fmt: skip
"""Styles of curves against the number of links."""
_LINES = {"c_rnea": ("-", _EXACT), "approximate": ("--", _DARK), "unconstrained": (":", "#b3362b")}
"""Line and colour of curves over time."""
_UNITS = {"operations": ("thousand operations", 1e-3), "times": ("µs", 1e6)}


def robots(tables: Sequence[Found]) -> Figure:
    """Return figures 9, 10 and 12: operations and times of the paper's robots."""
    figure, panels = plt.subplots(2, len(tables), figsize=(15, 7.5), layout="constrained")
    for column, found in zip(panels.T, tables, strict=True):
        shown = [m for m in _BARS if any(m in counts for counts in found.robots.values())]
        for ax, measure in zip(column, _UNITS, strict=True):
            _bars(ax, found, shown, measure)
        what = found.table.title.partition(",")[0].lower()
        column[0].set_title(f"Figure {found.table.figure}: {what}")
        column[0].legend(fontsize=8, loc="upper center", ncols=2)
    return figure


def _bars(ax: Axes, found: Found, methods: Sequence[str], measure: str) -> None:
    unit, scale = _UNITS[measure]
    costs: Mapping[str, Mapping[str, Any]] = (
        found.robots if measure == "operations" else found.times
    )
    width = 0.8 / len(methods)
    for k, method in enumerate(methods):
        values = [costs[name].get(method) for name in found.robots]
        places = [i + (k - (len(methods) - 1) / 2) * width for i in range(len(values))]
        # A method that refuses a robot has no bar.
        heights = [scale * v if isinstance(v, int | float) else 0.0 for v in values]
        colour, hatch = _BARS[method]
        ax.bar(places, heights, width, color=colour, hatch=hatch, edgecolor="black", linewidth=0.6,
               label=_LABELS[method])  # fmt: skip
    names = [ROBOTS[name] for name in found.robots]
    ax.set_xticks(range(len(names)), names, rotation=20, ha="right", fontsize=8)
    ax.set_ylabel(unit)
    ax.margins(y=0.3)
    ax.grid(axis="y", alpha=0.3)


def chains(table: Mapping[str, Any]) -> Figure:
    """Return figures 11 and 13: operations and times of random chains against their links."""
    pairs = [(11, "forward", kind) for kind in table] + [(13, "matrix", kind) for kind in table]
    figure, panels = plt.subplots(2, len(pairs), figsize=(15, 7.5), layout="constrained")
    for column, (number, quantity, kind) in zip(panels.T, pairs, strict=True):
        for ax, (measure, (unit, scale)) in zip(column, _UNITS.items(), strict=True):
            for method, style in _CURVES.items():
                costs = table[kind][quantity][measure].get(method)
                if costs is None:
                    continue
                sizes = sorted(costs)
                ax.plot(sizes, [scale * costs[n] for n in sizes], markersize=5,
                        label=_LABELS[method], **style)  # fmt: skip
            ax.set_xscale("log")
            ax.set_yscale("log")
            ax.set_xticks(sizes, [str(n) for n in sizes])
            ax.xaxis.set_minor_formatter(NullFormatter())
            ax.set_xlabel("links")
            ax.set_ylabel(unit)
            ax.grid(alpha=0.3, which="both")
        what = "forward dynamics" if quantity == "forward" else "inverse inertia at the tip"
        column[0].set_title(f"Figure {number}: {what}, {kind}", fontsize=10)
        column[0].legend(fontsize=8)
    return figure


def leg_errors(found: Mapping[str, Any]) -> Figure:
    """Return figure 14: torques of ankle and knee, and the distance of the toe from its path."""
    figure, panels = plt.subplots(1, 3, figsize=(15, 4.6), layout="constrained")
    t = found["t"]
    for ax, joint in zip(panels, ("ankle", "knee"), strict=False):
        for method, (style, colour) in _LINES.items():
            ax.plot(t, found["torques"][joint][method], style, color=colour, label=_LABELS[method])
        ax.set_title(f"{joint}, {leg.PLOTTED} Hz")
        ax.set_ylabel("joint torque [N·m]")
        ax.set_xlim(0.0, min(2.0 / leg.PLOTTED, t[-1]))
        ax.legend(fontsize=8)
    ax = panels[-1]
    markers = dict(zip(leg.FREQUENCIES, "os^D", strict=True))
    every = max(1, len(t) // 8)
    for frequency in leg.FREQUENCIES[:-1]:
        for k, (method, (style, colour)) in enumerate(_LINES.items()):
            values = np.maximum(found["drift"][str(frequency)][method], 1e-9)
            ax.plot(t, values, style, color=colour, marker=markers[frequency], ms=4,
                    markevery=(k * every // 3, every),
                    label=f"{_LABELS[method]}, {frequency:g} Hz")  # fmt: skip
    ax.set_yscale("log")
    ax.set_ylim(1e-7, 3.0)
    ax.set_title("toe under the torques of each method")
    ax.set_ylabel("distance from the intended path [m]")
    ax.legend(fontsize=7, ncols=3, loc="lower right")
    for ax in panels:
        ax.set_xlabel("time [s]")
        ax.grid(alpha=0.3)
    return figure
