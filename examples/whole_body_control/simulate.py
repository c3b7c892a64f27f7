"""Controller and plant in one process, without ROS: every run is the same.

``python -m whole_body_control.simulate --seconds 20`` from the folder ``examples``.
"""

from __future__ import annotations

import sys

from control.simulate import main

from .example import EXAMPLE

if __name__ == "__main__":
    sys.exit(main(EXAMPLE, 20.0))
