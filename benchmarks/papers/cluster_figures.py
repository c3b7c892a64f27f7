"""Figures 9 to 14 of the cluster paper, drawn from what was counted and measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import ScalarFormatter

from benchmarks import style
from benchmarks.papers import leg
from benchmarks.papers.clusters import ROBOTS, Found
from delassus.drawing.figures import SERIES

_LABELS = {
    "approximate": "approximate", "unconstrained": "unconstrained", "c_rnea": "C-RNEA",
    "c_aba": "C-ABA", "efpa": "C-EFPA", "projected": "projected", "projection": "projection",
    "lagrange": "Lagrange multipliers", "pv_osimr": "C-PV-OSIMr",
}  # fmt: skip
_LINES = {
    "c_rnea": ("-", "#20242c"), "approximate": ("--", "#3f6fd8"), "unconstrained": (":", "#b3362b")
}  # fmt: skip
"""Line and colour of curves over time."""
_SIZE = (13.0, 6.5)
"""Of figures with two rows [inches]."""


def robots(tables: Sequence[Found]) -> Figure:
    """Return figures 9, 10 and 12: operations and times of the paper's robots."""
    number = len(tables)
    figure, panels = style.figure(2, number, _SIZE)
    for found, counts, times in zip(tables, panels[:number], panels[number:], strict=True):
        style.bars(counts, _bars(found.robots, 1.0))
        style.bars(times, _bars({name: found.least_times(name) for name in found.times}, 1e6))
        times.yaxis.set_major_formatter(ScalarFormatter())
        times.set_ylabel("µs")
        for axes in (counts, times):
            axes.tick_params(axis="x", rotation=20, labelsize=8)
            axes.set_ylim(top=1.3 * axes.get_ylim()[1])  # room for the legend
        what = found.table.title.partition(",")[0].lower()
        counts.set_title(f"Figure {found.table.figure}: {what}")
        counts.legend(fontsize=8, loc="upper center", ncols=2)
    return figure


def _bars(costs: Mapping[str, Mapping[str, Any]], scale: float) -> dict[str, dict[str, float]]:
    """Return the costs of a table by labels, of methods that have a label."""
    return {
        ROBOTS[name]: {
            _LABELS[method]: scale * cost
            for method, cost in of_methods.items()
            if method != "unconstrained" and method in _LABELS
        }
        for name, of_methods in costs.items()
    }


def chains(table: Mapping[str, Any]) -> Figure:
    """Return figures 11 and 13: operations and times of random chains against their links."""
    pairs = [(11, "forward", kind) for kind in table] + [(13, "matrix", kind) for kind in table]
    figure, panels = style.figure(2, len(pairs), _SIZE)
    for k, (number, quantity, kind) in enumerate(pairs):
        for axes, measure, unit, scale in (
            (panels[k], "operations", "operations", 1.0),
            (panels[k + len(pairs)], "times", "µs", 1e6),
        ):
            costs = table[kind][quantity][measure]
            axes.set_prop_cycle(SERIES)
            for method, means in costs.items():
                points = {n: scale * value for n, value in means.items()}
                style.curve(axes, points, _LABELS[method])
            style.sizes(axes, sorted(points), "links", unit)
        what = "forward dynamics" if quantity == "forward" else "inverse inertia at the tip"
        panels[k].set_title(f"Figure {number}: {what}, {kind}", fontsize=10)
        panels[k].legend(fontsize=8)
    return figure


def leg_errors(found: Mapping[str, Any]) -> Figure:
    """Return figure 14: torques of ankle and knee, and the distance of the toe from its path."""
    figure, panels = style.figure(1, 3, (15.0, 4.6))
    t = found["t"]
    for ax, joint in zip(panels, ("ankle", "knee"), strict=False):
        for method, (line, colour) in _LINES.items():
            ax.plot(t, found["torques"][joint][method], line, color=colour, label=_LABELS[method])
        ax.set_title(f"{joint}, {leg.PLOTTED} Hz")
        ax.set_ylabel("joint torque [N·m]")
        ax.set_xlim(0.0, min(2.0 / leg.PLOTTED, t[-1]))
        ax.legend(fontsize=8)
    ax = panels[-1]
    markers = dict(zip(leg.FREQUENCIES, "os^D", strict=True))
    every = max(1, len(t) // 8)
    for frequency in leg.FREQUENCIES[:-1]:
        for k, (method, (line, colour)) in enumerate(_LINES.items()):
            values = np.maximum(found["drift"][str(frequency)][method], 1e-9)
            ax.plot(t, values, line, color=colour, marker=markers[frequency], ms=4,
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
