"""A humanoid balances on the node's matrices: plant, delassus_node, controller, and a verdict.

``make balance``, or ``python -m balance`` from the folder ``examples``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from control.floating import StandingWatcher
from control.run import commands, parser, run

from .simulate import LOWEST, UPRIGHT


def main() -> int:
    """Read the arguments and run."""
    description = "A simulated humanoid balances and steps on the matrices of delassus_node."
    options = parser("balance", description, "BALANCE_SECONDS").parse_args()
    view = ["view:=true"] if options.view else []
    programs = commands(
        Path(__file__).resolve().parent, "balance.node",
        ["robot:=humanoid", *view, *options.plant], options.node,
    )  # fmt: skip
    return run(
        programs, lambda: StandingWatcher("balance_watcher", LOWEST, UPRIGHT), options.seconds
    )


if __name__ == "__main__":
    sys.exit(main())
