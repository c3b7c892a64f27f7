"""A quadruped is pushed, and delassus_estimator tells the forces at its feet, beside the truth.

``make estimate``, or ``python -m estimation`` from the folder ``examples``.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from control.run import module, run

from delassus_ros.processes import Command

from .watcher import EstimateWatcher

_FEET = {name: f"{name}_FOOT" for name in ("LF", "RF", "LH", "RH")}
_CONFIG = Path(__file__).resolve().parents[2] / "config" / "estimator" / "quadruped.yaml"
_LOWEST, _UPRIGHT = 0.15, 0.7
_RATE = 1000
_PLANT = (
    "robot:=quadruped", "push_every:=1.0", "effort_noise:=0.2",
    "velocity_noise:=0.02", "position_noise:=0.0005", "base_noise:=0.01",
)  # fmt: skip


def main() -> int:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(
        prog="estimate",
        description="Forces at the feet of a pushed quadruped, told by delassus_estimator.",
    )
    default = float(os.environ.get("ESTIMATE_SECONDS") or "inf")
    words = "then it ends by itself (default: ESTIMATE_SECONDS, else never)"
    parser.add_argument("--seconds", type=float, default=default, help=words)
    parser.add_argument("--rate", type=int, default=1000, help="joint states per second (1000)")
    parser.add_argument("--view", action="store_true", help="open MuJoCo's viewer")
    for name, whose in (("plant", "the plant"), ("estimator", "delassus_estimator")):
        help_ = f"parameters of {whose}"
        parser.add_argument(f"--{name}", nargs="*", default=[], metavar="NAME:=VALUE", help=help_)
    parser.add_argument("--save", type=Path, metavar="FILE.npz", help="what was compared")
    options = parser.parse_args()

    def make() -> EstimateWatcher:
        return EstimateWatcher(_FEET, _LOWEST, _UPRIGHT, options.save)

    plant = [*(["view:=true"] if options.view else []), *options.plant]
    programs = programs_of(options.rate, plant, options.estimator)
    return run(programs, make, options.seconds, "estimates", options.rate)


def programs_of(rate: int, plant: Sequence[str], estimator: Sequence[str]) -> list[Command]:
    """Return the two processes.

    Parameters
    ----------
    rate : joint states per second.
    plant, estimator : further parameters of them, ``name:=value``.
    """

    def set_to(*parameters: str) -> list[str]:
        return [word for each in parameters for word in ("-p", each)]

    own = set_to(*_PLANT, f"rate:={rate}", *plant)
    file = ("--params-file", str(_CONFIG))
    return [
        Command("plant", module("delassus_ros.sim.plant_node", "--ros-args", *own)),
        Command(
            "delassus_estimator",
            module("delassus_ros.estimator.node", "--ros-args", *file, *set_to(*estimator)),
        ),
    ]


if __name__ == "__main__":
    sys.exit(main())
