"""ROS node of the whole-body controller: ``python -m whole_body_control.node``."""

from __future__ import annotations

import sys
from functools import partial

import numpy as np
from control.floating import FloatingNode
from control.node import Array, run_node
from control.prediction import of_bearing
from delassus_msgs_py import ReceivedDynamics, ReceivedMatrix

from .controller import CONTACTS, Controller, Rows, predicted_forces
from .gait import LEGS


class WholeBodyNode(FloatingNode):
    """Walks."""

    def __init__(self) -> None:
        super().__init__("whole_body_controller", CONTACTS, LEGS, torque_limit=35.0)
        self._controller: Controller | None = None

    def prepare(self, urdf: str) -> None:
        """Make the controller."""
        self._controller = Controller(urdf, self.joints, self.limits)

    def torques(
        self, q: Array, velocity: Array, matrix: ReceivedMatrix, rest: ReceivedDynamics, dt: float
    ) -> Array | None:
        """Return the torques of the program."""
        state = self.state(q, velocity, matrix)
        if self._controller is None or state is None:
            return None
        # Copies, as those in messages are not aligned.
        rows = Rows(np.array(matrix.matrix), np.array(rest.a0), np.array(rest.MinvJT))
        command = self._controller.command(state, rows, dt)
        self.tell(command.plan.act)
        self.off = state.position - command.plan.position
        self.predict = partial(
            of_bearing, predicted_forces, rows, command.torques, state.touches, self.friction,
            dict(zip(LEGS, command.plan.stands, strict=True)),
        )  # fmt: skip
        return command.torques


if __name__ == "__main__":
    sys.exit(run_node("whole_body_controller", WholeBodyNode))
