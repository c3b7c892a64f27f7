"""A quadruped is pushed, and delassus_estimator tells the forces at its feet, beside the truth.

``make estimate``, or ``python -m estimation`` from the folder ``examples``.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from control.run import module, run

from delassus_ros.processes import Command

from .watcher import EstimateWatcher

_FEET = {name: f"{name}_FOOT" for name in ("LF", "RF", "LH", "RH")}
_LOWEST, _UPRIGHT = 0.15, 0.7
_RATE = 1000
_PLANT = (
    "robot:=quadruped", f"rate:={_RATE}", "push_every:=1.0", "effort_noise:=0.2",
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
    parser.add_argument("--view", action="store_true", help="open MuJoCo's viewer")
    for name, whose in (("plant", "the plant"), ("estimator", "delassus_estimator")):
        help_ = f"parameters of {whose}"
        parser.add_argument(f"--{name}", nargs="*", default=[], metavar="NAME:=VALUE", help=help_)
    parser.add_argument("--save", type=Path, metavar="FILE.npz", help="what was compared")
    options = parser.parse_args()

    def make() -> EstimateWatcher:
        return EstimateWatcher(_FEET, _LOWEST, _UPRIGHT, options.save)

    def set_to(*parameters: str) -> list[str]:
        return [word for each in parameters for word in ("-p", each)]

    plant = set_to(*_PLANT, *(["view:=true"] if options.view else []), *options.plant)
    file = ("--params-file", str(Path(__file__).resolve().parent / "estimator.yaml"))
    programs = [
        Command("plant", module("delassus_ros.sim.plant_node", "--ros-args", *plant)),
        Command(
            "delassus_estimator",
            module(
                "delassus_ros.estimator.node", "--ros-args", *file, *set_to(*options.estimator)
            ),
        ),
    ]
    return run(programs, make, options.seconds, "estimates", _RATE)


if __name__ == "__main__":
    sys.exit(main())
