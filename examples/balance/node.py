"""ROS node of the balancing controller: ``python -m balance.node``."""

from __future__ import annotations

import sys
from functools import partial

from control.floating import StandingNode
from control.node import run_node

from .example import EXAMPLE

if __name__ == "__main__":
    sys.exit(run_node(EXAMPLE.name, partial(StandingNode, EXAMPLE)))
