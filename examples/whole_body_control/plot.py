"""The picture of a walk: heights, contact timeline, forces against the simulator's, torques."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from delassus_ros.drawing.figures import save_for_page

from .gait import LEGS
from .simulate import Record

_FOOT = 0
_EVERY = 10  # of the ticks are drawn


def draw(record: Record, file: Path) -> None:
    """Write the picture; the same record gives the same file."""
    every = slice(None, None, _EVERY)
    time = np.array(record.time)[every]
    with mpl.rc_context({"font.size": 8}):
        figure = Figure(figsize=(9, 9.5), layout="constrained")
        height, feet, force, torque, took = figure.subplots(5, 1, sharex=True)
        height.plot(time, np.array(record.wanted)[every, 2], color="0.7", lw=3.0, label="wanted")
        height.plot(time, np.array(record.height)[every], color="tab:blue", lw=0.8, label="is")
        height.set_ylabel("height of the trunk [m]")
        height.legend(loc="lower right", fontsize=7)
        touches = np.array(record.touches)[every]
        for place, leg in enumerate(LEGS):
            low, high = place + 0.1, place + 0.9
            feet.fill_between(time, low, high, touches[:, place], color="tab:blue", lw=0.0)
            feet.text(time[0], place + 0.5, leg, va="center", ha="right")
        feet.set_yticks([])
        feet.set_ylabel("feet on the floor")
        acts, top = np.array(record.act)[every], height.get_ylim()[1]
        for k in np.flatnonzero(acts[1:] != acts[:-1]).tolist():
            for axes in (height, feet, force, torque, took):
                axes.axvline(time[k + 1], color="0.8", lw=0.6)
            height.text(time[k + 1], top, acts[k + 1], rotation=30, va="bottom", fontsize=6)
        simulated = np.array(record.simulated)[every, _FOOT, 2]
        force.plot(time, simulated, color="0.7", lw=2.0, label="simulated")
        wanted = np.array(record.forces)[every, _FOOT, 2]
        force.plot(time, wanted, color="tab:orange", lw=0.7, label="of the program")
        force.set_ylabel(f"normal force, {LEGS[_FOOT]} [N]")
        force.legend(loc="upper left", fontsize=7)
        torque.plot(time, np.array(record.torques)[every, :3], lw=0.6)
        torque.set_ylabel(f"torques, {LEGS[_FOOT]} [N m]")
        took.plot(time, 1e6 * np.array(record.took)[every], ".", ms=1.5)
        took.set(ylabel="time of the\ncontroller [us]", xlabel="time [s]", ylim=(0.0, 800.0))
        save_for_page(figure, file)
