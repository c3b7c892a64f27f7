"""Controller and plant in one process, without ROS: every run is the same.

``python -m balance.simulate --seconds 22`` from the folder ``examples``.
"""

from __future__ import annotations

import sys

from control.simulate import main

from .example import EXAMPLE

if __name__ == "__main__":
    sys.exit(main(EXAMPLE, 22.0))
