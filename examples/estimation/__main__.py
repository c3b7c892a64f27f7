"""Compares the foot forces estimated by delassus_estimator for a pushed quadruped with the truth.

``make estimate``, or ``python -m estimation`` from the folder ``examples``.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from control.run import assigned, module, parser, plant_command, run, set_to

from delassus.programs.processes import Command
from delassus_ros.sim.clock import SLACK_OF_ESTIMATES, USE_SIM_TIME, of_plant

from .watcher import EstimateWatcher

_FEET = {name: f"{name}_FOOT" for name in ("LF", "RF", "LH", "RH")}
_CONFIG = Path(__file__).resolve().parents[2] / "config" / "estimator" / "quadruped.yaml"
_LOWEST, _UPRIGHT = 0.15, 0.7
_PLANT = (
    "robot:=quadruped", "push_every:=1.0", "effort_noise:=0.2",
    "velocity_noise:=0.02", "position_noise:=0.0005", "base_noise:=0.01",
)  # fmt: skip


def main() -> int:
    """Read the arguments and run."""
    description = "Forces at the feet of a pushed quadruped, told by delassus_estimator."
    own = parser("estimate", description, "ESTIMATE_SECONDS", "estimator", film=False)
    own.add_argument("--rate", type=int, default=1000, help="joint states per second (1000)")
    own.add_argument(
        "--save",
        type=Path,
        metavar="FILE.npz",
        help="file of estimates and references that is written",
    )
    options = own.parse_args()

    def make() -> EstimateWatcher:
        return EstimateWatcher(_FEET, _LOWEST, _UPRIGHT, options.save)

    plant = [*(["view:=true"] if options.view else []), *options.plant]
    programs = programs_of(options.rate, plant, options.estimator, options.realtime)
    return run(programs, make, options)


def programs_of(
    rate: int, plant: Sequence[str], estimator: Sequence[str], realtime: bool = False
) -> list[Command]:
    """Return the two processes.

    Parameters
    ----------
    rate : joint states per second.
    plant, estimator : further parameters of them, ``name:=value``.
    realtime : the plant keeps to the machine's clock.
    """
    file = ("--ros-args", "--params-file", str(_CONFIG))
    own = set_to([*assigned(USE_SIM_TIME), *estimator])
    clock = of_plant(realtime, SLACK_OF_ESTIMATES, "estimates")
    return [
        plant_command(clock, [*_PLANT, f"rate:={rate}", *plant]),
        Command("delassus_estimator", module("delassus_ros.estimator.node", *file, *own)),
    ]


if __name__ == "__main__":
    sys.exit(main())
