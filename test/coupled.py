"""Positions at which couplings hold."""

from __future__ import annotations

import numpy as np

from delassus_ros import Robot
from delassus_ros.model.couplings import follow


def coupled(robot: Robot, q: np.ndarray) -> np.ndarray:
    """Return q with dependent joints at the positions that couplings determine."""
    q = q.copy()
    follow(robot, q, ())
    return q
