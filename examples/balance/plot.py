"""The picture of a run: the centre of mass, forces against the simulator's, torques."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from delassus_ros.drawing.figures import save_for_page

from .poses import FEET
from .simulate import Record

_LEG = tuple(f"{x}_joint" for x in ("hip_yaw", "hip_roll", "thigh", "shank", "ankle", "foot"))
_EVERY = 10  # of the ticks are drawn
_COLOURS = ("tab:blue", "tab:orange")


def draw(record: Record, file: Path) -> None:
    """Write the picture; the same record gives the same file."""
    every = slice(None, None, _EVERY)
    time = np.array(record.time)[every]
    with mpl.rc_context({"font.size": 8}):
        figure = Figure(figsize=(9, 9.5), layout="constrained")
        height, side, force, torque, took = figure.subplots(5, 1, sharex=True)
        for axes, row, words in ((height, 2, "height"), (side, 1, "place to the left")):
            wanted = np.array(record.wanted)[every, row]
            axes.plot(time, wanted, color="0.7", lw=3.0, label="wanted")
            axes.plot(time, np.array(record.centre)[every, row], color="k", lw=0.8, label="is")
            axes.set_ylabel(f"{words} of the\ncentre of mass [m]")
        soles, bears = np.array(record.soles)[every], np.array(record.bears)[every]
        simulated, wrenches = np.array(record.simulated)[every], np.array(record.wrenches)[every]
        for k, (foot, colour) in enumerate(zip(FEET, _COLOURS, strict=True)):
            stands = np.where(bears[:, k], soles[:, k, 1], np.nan)
            side.plot(time, stands, color=colour, lw=3.0, alpha=0.5, label=f"{foot} stands")
            force.plot(time, simulated[:, k, 2], color="0.7", lw=2.0)
            force.plot(time, wrenches[:, k, 2], color=colour, lw=0.7, label=foot)
        force.set_ylabel("normal force [N], of the\nprogram; grey: simulated")
        legs = [k for k, name in enumerate(record.joints) if name.removeprefix("left_") in _LEG]
        torque.plot(time, np.array(record.torques)[every][:, legs], lw=0.6)
        torque.set_ylabel("torques of the left leg [N m]")
        took.plot(time, 1e6 * np.array(record.took)[every], ".", ms=1.5)
        took.set(ylabel="time of the\ncontroller [us]", xlabel="time [s]", ylim=(0.0, 800.0))
        poses, top = np.array(record.pose)[every], height.get_ylim()[1]
        for k in np.flatnonzero(poses[1:] != poses[:-1]).tolist():
            for axes in (height, side, force, torque, took):
                axes.axvline(time[k + 1], color="0.8", lw=0.6)
            height.text(time[k + 1], top, poses[k + 1], rotation=30, va="bottom", fontsize=6)
        for axes in (height, side, force):
            axes.legend(loc="lower right", fontsize=7)
        save_for_page(figure, file)
