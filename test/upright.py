"""Whether the simulated quadruped stands and walks as it shall."""

from __future__ import annotations

import math
from typing import Any


def is_upright(simulation: Any) -> bool:
    """Return True if the trunk is about 0.3 m above the floor, and level to 0.08 rad."""
    truth = simulation.truth()
    x, y, _, _ = truth.orientation
    tilt = math.acos(max(-1.0, 1.0 - 2.0 * (x * x + y * y)))
    return bool(0.29 < truth.position[2] < 0.34) and tilt < 0.08
