"""ROS node of the operational-space controller: ``python -m operational_space.node``."""

from __future__ import annotations

import sys
from functools import partial

import numpy as np
from control.node import NEWEST, Array, ControlNode, run_node
from delassus_msgs_py import ReceivedDynamics, ReceivedMatrix
from geometry_msgs.msg import WrenchStamped

from delassus.errors import InputError, unknown
from delassus.robots.built_in.arm import TOOL
from delassus_ros.sim.plant import STEP_S

from .law import Rows, Tool, predicted_force, torques
from .simulate import EVERY, REST, SURFACES
from .wiping import Kinematics, Wiping


class OperationalSpaceNode(ControlNode):
    """Wipes a surface; the parameter ``surface`` is ``flat`` or ``curved``."""

    def __init__(self) -> None:
        super().__init__("operational_space_controller", [TOOL])
        surface = self.declare_parameter("surface", "flat").value
        if surface not in SURFACES:
            raise InputError(unknown("surface", str(surface), tuple(SURFACES)))
        self._surface = SURFACES[surface]
        self._kinematics: Kinematics | None = None
        self._wiping: Wiping | None = None
        self._felt = np.zeros(3)
        self._phase = ""
        force = f"plant/contact_force/{TOOL}"
        self.create_subscription(WrenchStamped, force, self._on_force, NEWEST)

    def prepare(self, urdf: str) -> None:
        """Make kinematics and sequence."""
        self._kinematics = Kinematics(urdf, TOOL)
        rest = np.array([REST.get(name, 0.0) for name in self.joints])
        self._wiping = Wiping(self._surface, rest)

    def torques(
        self, q: Array, velocity: Array, matrix: ReceivedMatrix, rest: ReceivedDynamics, dt: float
    ) -> Array | None:
        """Return the torques of the control law."""
        if self._kinematics is None or self._wiping is None:
            return None
        blocks = (rest.Lambda, rest.J, rest.Jbar, rest.JdotV, rest.h)
        # Copies, as those in messages are not aligned.
        rows = Rows(np.array(matrix.matrix), *(np.array(block) for block in blocks))
        tool = self._kinematics.tool(q, velocity)
        task = self._wiping.task(dt, q, velocity, tool, rows, self._felt)
        if self._wiping.phase != self._phase:
            self._phase = self._wiping.phase
            self.get_logger().info(self._phase)
        off = self._wiping.off(tool)
        self.off = off if self._wiping.on_path else None
        command = torques(rows, tool, task)
        self.predict = None
        if self._wiping.on_path:
            self.predict = partial(self._force, rows, velocity, command, tool)
        return command

    def _force(self, rows: Rows, velocity: Array, command: Array, tool: Tool) -> dict[str, Array]:
        """Return the force on the tool under torques."""
        _, normal = self._surface.at(float(tool.place[0]), float(tool.place[1]))
        period = EVERY * STEP_S
        return {
            TOOL: predicted_force(rows, velocity, command, tool, normal, self.friction, period)
        }

    def _on_force(self, message: WrenchStamped) -> None:
        f = message.wrench.force
        self._felt = np.array([f.x, f.y, f.z])


if __name__ == "__main__":
    sys.exit(run_node("operational_space_controller", OperationalSpaceNode))
