"""Draws the estimates and true forces that ``python -m estimation --save FILE.npz`` saved."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402 (after the choice of the back end)
import numpy as np  # noqa: E402

from delassus.drawing.figures import save_for_page  # noqa: E402

_SHOWN = 6.0  # s
_GAP = 0.1  # s
_AVERAGED = 10


def main() -> int:
    """Read the arguments and draw."""
    parser = argparse.ArgumentParser(prog="estimation.plot", description=__doc__)
    parser.add_argument("compared", type=Path, metavar="FILE.npz")
    parser.add_argument("picture", type=Path, metavar="FILE.png")
    options = parser.parse_args()
    saved = np.load(options.compared)
    rows, feet = saved["rows"], saved["feet"].tolist()
    n, time = len(feet), rows[:, 0] - rows[0, 0]
    rows, time = rows[time < _SHOWN], time[time < _SHOWN]
    # No line over what was not looked at.
    time = np.where(np.diff(time, prepend=time[0]) > _GAP, np.nan, time)
    off = rows[:, 1 : 1 + 3 * n].reshape(-1, n, 3)
    truth = rows[:, 1 + 3 * n : 1 + 6 * n].reshape(-1, n, 3)
    figure, (above, below) = plt.subplots(2, 1, figsize=(9, 5), sharex=True)
    for k, foot in enumerate(feet):
        (line,) = above.plot(time, truth[:, k, 2], lw=1.5, label=f"{foot}, true")
        above.plot(time, (truth + off)[:, k, 2], ".", ms=2, color=line.get_color())
    above.set_ylabel("force along z of the foot [N]")
    above.legend(ncol=n, fontsize=7, loc="upper right")
    for k, axis in enumerate("xyz"):
        told = np.convolve(rows[:, -3 + k], np.ones(_AVERAGED) / _AVERAGED, "same")
        below.plot(time, told, lw=1.0, label=axis)
    below.set_ylabel(f"force on the trunk,\nmean of {_AVERAGED} [N]")
    below.set_xlabel("time [s]")
    below.legend(fontsize=7, loc="upper right")
    figure.tight_layout()
    save_for_page(figure, options.picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
