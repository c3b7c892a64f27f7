"""A quadruped walks on the node's matrices: plant, delassus_node, controller, and a verdict.

``make walk``, or ``python -m whole_body_control`` from the folder ``examples``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from control.floating import StandingWatcher
from control.run import parser, run_example

_LOWEST, _UPRIGHT = 0.15, 0.7


def main() -> int:
    """Read the arguments and run."""
    description = "A simulated quadruped walks on the matrices of delassus_node."
    options = parser("walk", description, "WALK_SECONDS").parse_args()

    def make() -> StandingWatcher:
        return StandingWatcher("walk_watcher", _LOWEST, _UPRIGHT)

    folder = Path(__file__).resolve().parent
    return run_example("whole_body_control.node", folder, options, make, "quadruped")


if __name__ == "__main__":
    sys.exit(main())
