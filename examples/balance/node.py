"""ROS node of the balancing controller: ``python -m balance.node``."""

from __future__ import annotations

import sys
from functools import partial

import numpy as np
from control.floating import FloatingNode
from control.node import Array, run_node
from control.prediction import of_bearing
from delassus_msgs_py import ReceivedDynamics, ReceivedMatrix

from delassus_ros.sim.humanoid import FEET

from .controller import CONTACTS, Controller, predicted_wrenches
from .qp import Matrices


class BalanceNode(FloatingNode):
    """Stands, squats and steps."""

    def __init__(self) -> None:
        super().__init__("balance_controller", CONTACTS, tuple(FEET), torque_limit=200.0)
        self._controller: Controller | None = None

    def prepare(self, urdf: str) -> None:
        """Make the controller."""
        self._controller = Controller(urdf, [*FEET.values()], self.joints, self.limits)

    def torques(
        self, q: Array, velocity: Array, matrix: ReceivedMatrix, rest: ReceivedDynamics, dt: float
    ) -> Array | None:
        """Return the torques of the program."""
        state = self.state(q, velocity, matrix)
        if self._controller is None or state is None:
            return None
        # Copies, as those in messages are not aligned.
        G, M, h, J, JdotV = (
            np.array(block) for block in (matrix.matrix, rest.M, rest.h, rest.J, rest.JdotV)
        )
        given = Matrices(G, M, h, J, JdotV)
        command = self._controller.command(state, given, dt)
        self.tell(command.plan.pose)
        self.off = command.centre - command.plan.centre[0]
        bears = [share > 0.0 for share in command.plan.bears]
        self.predict = partial(
            of_bearing, predicted_wrenches, given, command.torques, state.touches, self.friction,
            dict(zip(FEET, bears, strict=True)),
        )  # fmt: skip
        return command.torques


if __name__ == "__main__":
    sys.exit(run_node("balance_controller", BalanceNode))
