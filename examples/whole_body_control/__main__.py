"""A quadruped walks on the node's matrices: plant, delassus_node, controller, and a verdict.

``make walk``, or ``python -m whole_body_control`` from the folder ``examples``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from control.floating import TrackingWatcher
from control.run import parser, run_example

from .gait import LEGS

_LOWEST, _UPRIGHT = 0.15, 0.7
_OFF = 0.04  # m rms; pushes make some 9 mm


def main() -> int:
    """Read the arguments and run."""
    description = "A simulated quadruped walks on the matrices of delassus_node."
    options = parser("walk", description, "WALK_SECONDS").parse_args()

    def make() -> TrackingWatcher:
        controller = "whole_body_controller"
        return TrackingWatcher("walk_watcher", _LOWEST, _UPRIGHT, controller, "trunk", _OFF, LEGS)

    folder = Path(__file__).resolve().parent
    return run_example("whole_body_control.node", folder, options, make, "quadruped")


if __name__ == "__main__":
    sys.exit(main())
