"""The picture of the arm's work: force, error of the path, wrist and torques."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from delassus.drawing.figures import save_for_page

from .simulate import Record

_EVERY = 4  # of the ticks are drawn


def draw(record: Record, file: Path) -> None:
    """Write the picture; the same record gives the same file."""
    every = slice(None, None, _EVERY)
    time, phases = np.array(record.time)[every], np.array(record.phase)[every]
    with mpl.rc_context({"font.size": 8}):
        figure = Figure(figsize=(9, 6.5), layout="constrained")
        all_axes = figure.subplots(4, 1, sharex=True)
        on_path = np.isin(phases, ("circle", "tilt"))
        off = np.where(on_path, 1e3 * np.array(record.off)[every], np.nan)
        for axes, values, label in zip(
            all_axes,
            (np.array(record.felt)[every], off, np.array(record.wrist)[every],
             np.array(record.torques)[every]),
            ("normal force [N]", "off the path [mm]", "joint 5 [rad]", "torques [N m]"),
            strict=True,
        ):  # fmt: skip
            axes.plot(time, values, lw=0.8)
            axes.set_ylabel(label)
            for k in np.flatnonzero(phases[1:] != phases[:-1]):
                axes.axvline(time[k + 1], color="0.8", lw=0.6)
        for k in np.flatnonzero(phases[1:] != phases[:-1]):
            top = all_axes[0].get_ylim()[1]
            all_axes[0].text(time[k + 1], top, phases[k + 1], va="bottom", fontsize=7)
        all_axes[2].axhline(0.0, color="tab:red", lw=0.6, ls=":")
        all_axes[3].set_xlabel("time [s]")
        save_for_page(figure, file)
