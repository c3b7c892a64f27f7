"""A quadruped walks on the node's matrices: plant, delassus_node, controller, and a verdict.

``make walk``, or ``python -m whole_body_control`` from the folder ``examples``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from control.floating import run_standing

from .example import EXAMPLE

_DESCRIPTION = "A simulated quadruped walks on the matrices of delassus_node."

if __name__ == "__main__":
    folder = Path(__file__).resolve().parent
    sys.exit(run_standing(EXAMPLE, folder, "walk", _DESCRIPTION))
