"""An arm wipes a surface on the node's matrices: plant, delassus_node, controller, and a verdict.

``make arm``, or ``python -m operational_space`` from the folder ``examples``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from control.comparison import ForceComparison
from control.node import NEWEST
from control.run import parser, run_example
from control.tracking import Tracking
from control.watcher import Watcher
from geometry_msgs.msg import WrenchStamped
from rclpy.serialization import deserialize_message

from delassus.robots.built_in.arm import TOOL

from .simulate import SURFACES

_TOUCHES = 2.0  # N
_SETTLED = 250  # samples after touching down that are left out of the figures
_PRESSURE, _OFF = 20.0, 3.0  # N; its mean may be off by so much, which friction does not make
_MOST = 60.0  # N; more is a blow
_OFF_PATH = 0.005  # m rms


class ArmWatcher(Watcher):
    """Notes the force on the tool."""

    def __init__(self) -> None:
        super().__init__("arm_watcher")
        self._forces: list[float] = []
        controller = "operational_space_controller"
        self._tracking = Tracking(self, controller, "tool", _OFF_PATH)
        self._predicted = ForceComparison(self, controller, [TOOL])
        topic = f"plant/contact_force/{TOOL}"
        self.create_subscription(WrenchStamped, topic, self._on_force, NEWEST, raw=True)

    def _on_force(self, data: bytes) -> None:
        f = deserialize_message(data, WrenchStamped).wrench.force
        # Its size in the plane of path and normal; friction has a tenth of it.
        self._forces.append(float(np.sqrt(f.x**2 + f.y**2 + f.z**2)))

    def line(self) -> str:
        """Return the force."""
        return f"force on the tool {self._forces[-1] if self._forces else 0.0:.1f} N"

    def _pressed(self) -> tuple[float, float, float] | None:
        """Return mean and deviation of the force, and the largest [N]; None if none lasted."""
        forces = np.array(self._forces)
        pressed = np.flatnonzero(forces > _TOUCHES)
        if len(pressed) <= 2 * _SETTLED:
            return None
        on = forces[pressed[0] + _SETTLED : pressed[-1] - _SETTLED]
        return float(on.mean()), float(on.std()), float(forces.max())

    def figures(self) -> list[str]:
        """Return how constant it was, and how far the tool was off its path."""
        pressed = self._pressed()
        if pressed is None:
            return ["the tool has not touched for long enough to tell"]
        mean, about, most = pressed
        force = f"force {mean:.2f} N with friction, {about:.2f} N about it; at most {most:.1f} N"
        return [force, *self._tracking.figures(), *self._predicted.figures()]

    def faults(self) -> list[str]:
        """Return the exceeded limits."""
        most, pressed = max(self._forces, default=0.0), self._pressed()
        if most < _TOUCHES:
            return ["the tool never touched"]
        found = self._tracking.faults()
        if most > _MOST:
            found.append(f"a force of {most:.0f} N; expected at most {_MOST:g} N")
        if pressed is not None and abs(pressed[0] - _PRESSURE) > _OFF:
            found.append(f"a force of {pressed[0]:.1f} N; expected {_PRESSURE:g} N")
        return found


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
