"""Robots with a free base in ROS: a node that knows the base, and one that watches it stand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from delassus_msgs.msg import ActiveContacts
from delassus_msgs_py import ReceivedMatrix
from nav_msgs.msg import Odometry
from rclpy.serialization import deserialize_message

from .comparison import ForceComparison
from .kinematics import State
from .node import NEWEST, Array, ControlNode
from .tracking import Tracking
from .watcher import Watcher

_TOUCHES = (ActiveContacts.ACTIVE, ActiveContacts.SLIPPING)
_EVERY = 10  # of so many odometries one is looked at


class FloatingNode(ControlNode):
    """Takes the base's motion from a topic as well, and torques from a controller with acts.

    Parameters
    ----------
    name, contacts : see :class:`control.node.ControlNode`.
    feet : contacts whose touch makes a part of the state.
    torque_limit : of all drives, by default; a parameter of the node [N m].
    """

    def __init__(
        self, name: str, contacts: Sequence[str], feet: Sequence[str], torque_limit: float
    ) -> None:
        super().__init__(name, contacts)
        self._base: bytes | None = None
        self._feet, self._told = tuple(feet), ""
        self._limit = float(self.declare_parameter("torque_limit", torque_limit).value)
        self.create_subscription(Odometry, "odometry", self._on_base, NEWEST, raw=True)

    @property
    def limits(self) -> Array:
        """Largest torques (n,) [N m]."""
        return np.full(len(self.joints), self._limit)

    def state(self, q: Array, velocity: Array, matrix: ReceivedMatrix) -> State | None:
        """Return the measured state; None before the first message of the base."""
        if self._base is None:
            return None
        base = deserialize_message(self._base, Odometry)
        p, o = base.pose.pose.position, base.pose.pose.orientation
        linear, angular = base.twist.twist.linear, base.twist.twist.angular
        return State(
            q, velocity, np.array([p.x, p.y, p.z]), np.array([o.x, o.y, o.z, o.w]),
            np.array([linear.x, linear.y, linear.z, angular.x, angular.y, angular.z]),
            [matrix.status[matrix.contacts.index(foot)] in _TOUCHES for foot in self._feet],
        )  # fmt: skip

    def tell(self, act: str) -> None:
        """Log an action of the robot when it begins."""
        if act != self._told:
            self._told = act
            self.get_logger().info(act)

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
    name, lowest, upright : see :class:`StandingWatcher`.
    controller, what, limit : see :class:`control.tracking.Tracking`.
    feet : contacts whose forces the controller predicts.
    """

    def __init__(
        self,
        name: str,
        lowest: float,
        upright: float,
        controller: str,
        what: str,
        limit: float,
        feet: Sequence[str],
    ) -> None:
        super().__init__(name, lowest, upright)
        self._tracking = Tracking(self, controller, what, limit)
        self._forces = ForceComparison(self, controller, feet)

    def figures(self) -> list[str]:
        """Return how it stood, and how far off robot and predicted forces were."""
        return super().figures() + self._tracking.figures() + self._forces.figures()

    def faults(self) -> list[str]:
        """Say so if it fell, or was not where it was to be."""
        return super().faults() + self._tracking.faults()
