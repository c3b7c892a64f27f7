"""A humanoid balances on the node's matrices: plant, delassus_node, controller, and a verdict.

``make balance``, or ``python -m balance`` from the folder ``examples``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from control.floating import TrackingWatcher
from control.run import parser, run_example

from delassus_ros.sim.humanoid import FEET

from .simulate import LOWEST, UPRIGHT

_OFF = 0.02  # m rms; pushes make some 3 mm


def main() -> int:
    """Read the arguments and run."""
    description = "A simulated humanoid balances and steps on the matrices of delassus_node."
    options = parser("balance", description, "BALANCE_SECONDS").parse_args()

    def make() -> TrackingWatcher:
        controller, what = "balance_controller", "centre of mass"
        return TrackingWatcher("balance_watcher", LOWEST, UPRIGHT, controller, what, _OFF, [*FEET])

    folder = Path(__file__).resolve().parent
    return run_example("balance.node", folder, options, make, "humanoid")


if __name__ == "__main__":
    sys.exit(main())
