"""A quadruped walks on the node's matrices: plant, delassus_node, controller, and a verdict.

``make walk``, or ``python -m whole_body_control`` from the folder ``examples``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from control.node import NEWEST
from control.run import Watcher, commands, parser, run
from nav_msgs.msg import Odometry
from rclpy.serialization import deserialize_message

_EVERY = 10  # of so many odometries one is looked at
_LOWEST, _UPRIGHT = 0.15, 0.7


class WalkWatcher(Watcher):
    """Notes how the robot stands."""

    def __init__(self) -> None:
        super().__init__("walk_watcher")
        self._heights: list[float] = []
        self._uprights: list[float] = []
        self._place = np.zeros(3)
        self._count = 0
        self.create_subscription(Odometry, "odometry", self._on_base, NEWEST, raw=True)

    def _on_base(self, data: bytes) -> None:
        self._count += 1
        if self._count % _EVERY or not self.delays:
            return
        message = deserialize_message(data, Odometry)
        p, o = message.pose.pose.position, message.pose.pose.orientation
        self._place = np.array([p.x, p.y, p.z])
        self._heights.append(p.z)
        self._uprights.append(o.w**2 - o.x**2 - o.y**2 + o.z**2)

    @property
    def ended(self) -> bool:
        """Whether it ever lay, or was far from upright."""
        heights, uprights = self._heights or [1.0], self._uprights or [1.0]
        return min(heights) < _LOWEST or min(uprights) < _UPRIGHT

    def line(self) -> str:
        """Return where it is."""
        x, y, z = self._place
        return f"at {x:+.2f}, {y:+.2f}, height {z:.3f} m"

    def figures(self) -> list[str]:
        """Return how it stood."""
        angle = np.degrees(np.arccos(min(min(self._uprights, default=1.0), 1.0)))
        return [
            f"height {min(self._heights, default=0.0):.3f} to "
            f"{max(self._heights, default=0.0):.3f} m, at most {angle:.1f} degrees from upright"
        ]

    def faults(self) -> list[str]:
        """Say so if it fell."""
        return ["the robot fell"] if self.ended else []


def main() -> int:
    """Read the arguments and run."""
    description = "A simulated quadruped walks on the matrices of delassus_node."
    options = parser("walk", description, "WALK_SECONDS").parse_args()
    plant = [*(["view:=true"] if options.view else []), *options.plant]
    programs = commands(
        Path(__file__).resolve().parent, "whole_body_control.node", plant, options.node
    )
    return run(programs, WalkWatcher, options.seconds)


if __name__ == "__main__":
    sys.exit(main())
