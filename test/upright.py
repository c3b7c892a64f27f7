"""Whether the simulated quadruped stands and walks as it shall."""

from __future__ import annotations

import math
from typing import Any


def is_upright(simulation: Any) -> bool:
    """Return True if the trunk is about 0.3 m above the floor, and level to 0.08 rad."""
    # The trunk's own state: simulation.truth() computes all forces as well.
    _, _, height, _, x, y, _ = simulation._data.qpos[:7].tolist()
    tilt = math.acos(max(-1.0, 1.0 - 2.0 * (x * x + y * y)))
    return 0.29 < height < 0.34 and tilt < 0.08
