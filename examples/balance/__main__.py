"""A humanoid balances on the node's matrices: plant, delassus_node, controller, and a verdict.

``make balance``, or ``python -m balance`` from the folder ``examples``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from control.floating import StandingWatcher
from control.run import parser, run_example

from .simulate import LOWEST, UPRIGHT


def main() -> int:
    """Read the arguments and run."""
    description = "A simulated humanoid balances and steps on the matrices of delassus_node."
    options = parser("balance", description, "BALANCE_SECONDS").parse_args()

    def make() -> StandingWatcher:
        return StandingWatcher("balance_watcher", LOWEST, UPRIGHT)

    folder = Path(__file__).resolve().parent
    return run_example("balance.node", folder, options, make, "humanoid")


if __name__ == "__main__":
    sys.exit(main())
