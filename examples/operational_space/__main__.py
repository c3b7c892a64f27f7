"""An arm wipes a surface on the node's matrices: plant, delassus_node, controller, and a verdict.

``make arm``, or ``python -m operational_space`` from the folder ``examples``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from control.node import NEWEST
from control.run import Watcher, parser, run_example
from geometry_msgs.msg import WrenchStamped
from rclpy.serialization import deserialize_message

from delassus_ros.sim.arm import TOOL

from .simulate import SURFACES

_TOUCHES = 2.0  # N
_SETTLED = 250  # samples after touching down that are left out of the figures
_MOST = 60.0  # N; more is a blow


class ArmWatcher(Watcher):
    """Notes the force on the tool."""

    def __init__(self) -> None:
        super().__init__("arm_watcher")
        self._forces: list[float] = []
        topic = f"plant/contact_force/{TOOL}"
        self.create_subscription(WrenchStamped, topic, self._on_force, NEWEST, raw=True)

    def _on_force(self, data: bytes) -> None:
        f = deserialize_message(data, WrenchStamped).wrench.force
        # Its size in the plane of path and normal; friction has a tenth of it.
        self._forces.append(float(np.sqrt(f.x**2 + f.y**2 + f.z**2)))

    def line(self) -> str:
        """Return the force."""
        return f"force on the tool {self._forces[-1] if self._forces else 0.0:.1f} N"

    def figures(self) -> list[str]:
        """Return how constant it was."""
        forces = np.array(self._forces)
        pressed = np.flatnonzero(forces > _TOUCHES)
        if len(pressed) <= 2 * _SETTLED:
            return ["the tool has not touched for long enough to tell"]
        on = forces[pressed[0] + _SETTLED : pressed[-1] - _SETTLED]
        return [
            f"force {on.mean():.2f} N with friction, {on.std():.2f} N about it; at most "
            f"{forces.max():.1f} N"
        ]

    def faults(self) -> list[str]:
        """Return what was too much."""
        forces = np.array(self._forces or [0.0])
        if forces.max() < _TOUCHES:
            return ["the tool never touched"]
        return [f"a force of {forces.max():.0f} N"] if forces.max() > _MOST else []


def main() -> int:
    """Read the arguments and run."""
    description = "A simulated arm wipes a surface with the matrices of delassus_node."
    own = parser("arm", description, "ARM_SECONDS")
    own.add_argument("--surface", choices=SURFACES, default="flat")
    options = own.parse_args()
    robot = "arm" if options.surface == "flat" else "arm_on_cylinder"
    # Drives hold the arm where it is while nothing is commanded, as brakes do.
    drives = ["armature:=0.05", "on_silence:=hold", "holding:=3000.0", "braking:=60.0"]
    folder, plant = Path(__file__).resolve().parent, ["friction:=0.2", *drives]
    surface = [f"surface:={options.surface}"]
    return run_example(
        "operational_space.node", folder, options, ArmWatcher, robot, plant, surface
    )


if __name__ == "__main__":
    sys.exit(main())
