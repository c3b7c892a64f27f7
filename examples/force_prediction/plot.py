"""The picture of its page: predicted and simulated forces of one foot, and the errors."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from delassus.drawing.figures import save_for_page
from force_prediction.sequence import CONSTRAINT, EXACT, FRICTION, RIGID, FloatArray, Record

_FOOT = "LF"
_EVERY = 4  # of the samples are drawn


def draw(record: Record, file: Path) -> None:
    """Write the picture; the same record gives the same file."""
    i = record.feet.index(_FOOT)
    every = slice(None, None, _EVERY)
    time = record.time[every]
    with mpl.rc_context({"font.size": 8}):
        figure = Figure(figsize=(9, 6), layout="constrained")
        normal, friction, error = figure.subplots(3, 1, sharex=True)
        simulated, exact = record.simulated[every, i], record.predicted[EXACT][every, i]
        rigid = record.predicted[RIGID][every, i]
        slips = record.phases()["slip"][every, i]
        for axes, part in ((normal, _normal), (friction, _friction)):
            axes.plot(time, part(rigid), color="tab:orange", lw=0.8, label=RIGID)
            axes.plot(time, part(simulated), color="0.7", lw=3.0, label="simulated")
            axes.plot(time, part(exact), color="tab:blue", lw=0.8, label=EXACT)
        (cone,) = friction.plot(
            time, FRICTION * _normal(simulated), color="0.3", lw=0.6, ls=":", label="friction cone"
        )
        for axes in (normal, friction):
            axes.fill_between(
                time, 0.0, 1.0, slips, transform=axes.get_xaxis_transform(),
                color="tab:red", alpha=0.2, lw=0.0, label="slip",
            )  # fmt: skip
        normal.set_ylabel(f"normal force, {_FOOT} [N]")
        friction.set_ylabel(f"friction, {_FOOT} [N]")
        normal.legend(ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1.0), fontsize=7)
        friction.legend(loc="upper center", fontsize=7, handles=[cone])
        for law, colour in (
            (CONSTRAINT, "tab:green"), (RIGID, "tab:orange"), (EXACT, "tab:blue")
        ):  # fmt: skip
            worst = record.errors(law).max(axis=1)
            error.semilogy(time, np.maximum(worst[every], 1e-8), color=colour, lw=0.6, label=law)
        error.set_ylabel("largest error, all feet [N]")
        error.set_xlabel("time [s]")
        error.legend(ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0), fontsize=7)
        save_for_page(figure, file)


def _normal(forces: FloatArray) -> FloatArray:
    return forces[:, 2]


def _friction(forces: FloatArray) -> FloatArray:
    size: FloatArray = np.linalg.norm(forces[:, :2], axis=1)
    return size
