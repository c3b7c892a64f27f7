"""Robots with a free base in ROS: a node that knows the base, and one that watches it stand."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from delassus_msgs.msg import ActiveContacts
from delassus_msgs_py import ReceivedDynamics, ReceivedMatrix
from nav_msgs.msg import Odometry
from rclpy.serialization import deserialize_message

from .comparison import ForceComparison
from .kinematics import State
from .node import NEWEST, Array, ControlNode
from .prediction import of_bearing
from .run import parser, run_example
from .standing import Controller, StandingExample
from .tracking import Tracking
from .watcher import Watcher

_TOUCHES = (ActiveContacts.ACTIVE, ActiveContacts.SLIPPING)
_EVERY = 10  # of so many odometries one is looked at


class StandingNode(ControlNode):
    """Takes the base's motion from a topic as well, and torques from the controller of an example.

    Parameters
    ----------
    example : the robot and its controller.
    """

    def __init__(self, example: StandingExample) -> None:
        super().__init__(example.name, example.names)
        self._base: bytes | None = None
        self._example, self._act = example, ""
        self._controller: Controller | None = None
        self._limit = float(self.declare_parameter("torque_limit", example.torque_limit).value)
        self.create_subscription(Odometry, "odometry", self._on_base, NEWEST, raw=True)

    def prepare(self, urdf: str) -> None:
        """Make the controller."""
        limits = np.full(len(self.joints), self._limit)
        self._controller = self._example.controller(
            urdf, self.joints, limits, self._example.timetable
        )

    def torques(
        self, q: Array, velocity: Array, matrix: ReceivedMatrix, rest: ReceivedDynamics, dt: float
    ) -> Array | None:
        """Return the torques of the controller; None before the first message of the base."""
        if self._controller is None or self._base is None:
            return None
        example, state = self._example, self._state(self._base, q, velocity, matrix)
        # Copies, as those in messages are not aligned.
        outputs = (np.array(getattr(rest, name)) for name in example.outputs)
        given = example.matrices(np.array(matrix.matrix), *outputs)
        command = self._controller.command(state, given, dt)
        if command.act != self._act:
            self._act = command.act
            self.get_logger().info(command.act)
        self.off = command.place - command.wanted
        self.predict = partial(
            of_bearing, example.predict, given, command.torques, state.touches, self.friction,
            dict(zip(example.feet, command.bears, strict=True)),
        )  # fmt: skip
        return command.torques

    def _state(self, data: bytes, q: Array, velocity: Array, matrix: ReceivedMatrix) -> State:
        base = deserialize_message(data, Odometry)
        p, o = base.pose.pose.position, base.pose.pose.orientation
        linear, angular = base.twist.twist.linear, base.twist.twist.angular
        touches = [
            matrix.status[matrix.contacts.index(foot)] in _TOUCHES for foot in self._example.feet
        ]
        return State(
            q, velocity, np.array([p.x, p.y, p.z]), np.array([o.x, o.y, o.z, o.w]),
            np.array([linear.x, linear.y, linear.z, angular.x, angular.y, angular.z]), touches,
        )  # fmt: skip

    def _on_base(self, data: bytes) -> None:
        self._base = data


class StandingWatcher(Watcher):
    """Notes how the robot stands.

    Parameters
    ----------
    name : of its node.
    lowest, upright : height of the base [m] and cosine of its tilt at which it has fallen.
    **answers : see :class:`control.watcher.Watcher`.
    """

    def __init__(self, name: str, lowest: float, upright: float, **answers: Any) -> None:
        super().__init__(name, **answers)
        self._fallen = lowest, upright
        self._place = np.zeros(3)
        # Of the heights, and the least cosine of the tilt.
        self._lowest, self._highest, self._upright = math.inf, -math.inf, 1.0
        self._count = 0
        self.create_subscription(Odometry, "odometry", self._on_base, NEWEST, raw=True)

    def _on_base(self, data: bytes) -> None:
        self._count += 1
        if self._count % _EVERY or not self.answers.count:
            return
        message = deserialize_message(data, Odometry)
        p, o = message.pose.pose.position, message.pose.pose.orientation
        self._place = np.array([p.x, p.y, p.z])
        self._lowest, self._highest = min(self._lowest, p.z), max(self._highest, p.z)
        self._upright = min(self._upright, o.w**2 - o.x**2 - o.y**2 + o.z**2)

    @property
    def ended(self) -> bool:
        """Whether it ever lay, or was far from upright."""
        lowest, upright = self._fallen
        return self._lowest < lowest or self._upright < upright

    def line(self) -> str:
        """Return where it is."""
        x, y, z = self._place
        return f"at {x:+.2f}, {y:+.2f}, height {z:.3f} m"

    def figures(self) -> list[str]:
        """Return how it stood."""
        if self._lowest == math.inf:
            return []
        angle = np.degrees(np.arccos(self._upright))
        return [
            f"height {self._lowest:.3f} to {self._highest:.3f} m, at most {angle:.1f} degrees "
            "from upright"
        ]

    def faults(self) -> list[str]:
        """Return the faults of a robot that fell, or whose state is unknown."""
        if self._lowest == math.inf:
            return ["nothing came on odometry"]
        return ["the robot fell"] if self.ended else []


class TrackingWatcher(StandingWatcher):
    """Records the robot's height and attitude, and its tracking errors.

    Parameters
    ----------
    name : of its node.
    example : the robot and its controller.
    """

    def __init__(self, name: str, example: StandingExample) -> None:
        super().__init__(name, example.lowest, example.upright)
        self._tracking = Tracking(self, example.name, example.tracked, example.largest_error)
        self._forces = ForceComparison(self, example.name, example.feet)

    def figures(self) -> list[str]:
        """Return how it stood, and how far off robot and predicted forces were."""
        return super().figures() + self._tracking.figures() + self._forces.figures()

    def faults(self) -> list[str]:
        """Say so if it fell, or was not where it was to be."""
        return super().faults() + self._tracking.faults()


def run_standing(example: StandingExample, folder: Path, program: str, description: str) -> int:
    """Run plant, delassus_node and controller as the command line says; return the exit status.

    Parameters
    ----------
    folder : of the example: node.yaml and the controller's module ``node``.
    program, description : name and description of the command.
    """
    options = parser(program, description, f"{program.upper()}_SECONDS").parse_args()

    def make() -> TrackingWatcher:
        return TrackingWatcher(f"{program}_watcher", example)

    return run_example(f"{folder.name}.node", folder, options, make, example.robot)
