"""The figure of a standing robot's run: tracked point, feet, forces, torques and times."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from delassus.drawing.figures import save_for_page

from .simulate import Record

_EVERY = 10  # of the ticks are drawn
_COLOURS = ("tab:blue", "tab:orange", "tab:green", "tab:red")


def draw(record: Record, file: Path) -> None:
    """Write the figure; the same record gives the same file."""
    example = record.example
    time, place, wanted, simulated, forces, torques, took, acts = (
        np.array(values)[::_EVERY]
        for values in (
            record.time, record.place, record.wanted, record.simulated, record.forces,
            record.torques, record.took, record.act,
        )
    )  # fmt: skip
    with mpl.rc_context({"font.size": 8}):
        figure = Figure(figsize=(9, 9.5), layout="constrained")
        panels = height, feet, force, torque, duration = figure.subplots(5, 1, sharex=True)
        height.plot(time, wanted[:, 2], color="0.7", lw=3.0, label="wanted")
        height.plot(time, place[:, 2], color="k", lw=0.8, label="is")
        height.set_ylabel(f"height of the\n{example.tracked} [m]")
        if len(example.feet) > 2:
            _touches(feet, record)
        else:
            _places(feet, record)
        for foot, colour in zip(example.shown_feet, _COLOURS, strict=False):
            k = example.feet.index(foot)
            force.plot(time, simulated[:, k, 2], color="0.7", lw=2.0)
            force.plot(time, forces[:, k, 2], color=colour, lw=0.7, label=foot)
        force.set_ylabel("normal force [N], of the\nprogram; grey: simulated")
        shown = [record.joints.index(name) for name in example.shown_joints]
        torque.plot(time, torques[:, shown], lw=0.6)
        first, *_, last = example.shown_joints
        torque.set_ylabel(f"torques, {first}\nto {last} [N m]")
        duration.plot(time, 1e6 * took, ".", ms=1.5)
        duration.set(ylabel="time of the\ncontroller [us]", xlabel="time [s]", ylim=(0.0, 800.0))
        for k in np.flatnonzero(acts[1:] != acts[:-1]).tolist():
            for axes in panels:
                axes.axvline(time[k + 1], color="0.8", lw=0.6)
            top = height.get_ylim()[1]
            height.text(time[k + 1], top, acts[k + 1], rotation=30, va="bottom", fontsize=6)
        for axes in (height, force):
            axes.legend(loc="lower right", fontsize=7)
        save_for_page(figure, file)


def _touches(axes: Axes, record: Record) -> None:
    """Draw when each foot is on the floor."""
    time, touches = np.array(record.time)[::_EVERY], np.array(record.touches)[::_EVERY]
    for k, foot in enumerate(record.example.feet):
        axes.fill_between(time, k + 0.1, k + 0.9, touches[:, k], color="tab:blue", lw=0.0)
        axes.text(time[0], k + 0.5, foot, va="center", ha="right")
    axes.set_yticks([])
    axes.set_ylabel("feet on the floor")


def _places(axes: Axes, record: Record) -> None:
    """Draw the tracked point between the places where the feet stand."""
    time, place, wanted, feet, bears = (
        np.array(values)[::_EVERY]
        for values in (record.time, record.place, record.wanted, record.feet, record.bears)
    )
    axes.plot(time, wanted[:, 1], color="0.7", lw=3.0, label="wanted")
    axes.plot(time, place[:, 1], color="k", lw=0.8, label="is")
    for k, (foot, colour) in enumerate(zip(record.example.feet, _COLOURS, strict=False)):
        stands = np.where(bears[:, k], feet[:, k, 1], np.nan)
        axes.plot(time, stands, color=colour, lw=3.0, alpha=0.5, label=f"{foot} stands")
    axes.set_ylabel(f"place to the left of the\n{record.example.tracked} [m]")
    axes.legend(loc="lower right", fontsize=7)
