"""Tracking errors of a robot, as its controller publishes them."""

from __future__ import annotations

import numpy as np
from geometry_msgs.msg import Vector3Stamped
from rclpy.node import Node

from .node import TRACKING_ERROR


class Tracking:
    """Records tracking errors.

    Parameters
    ----------
    node : to subscribe with.
    controller : name of the controller's node.
    what : name of the tracked point.
    limit : of the error, rms [m].
    """

    def __init__(self, node: Node, controller: str, what: str, limit: float) -> None:
        self._what, self._limit = what, limit
        self._errors: list[float] = []
        topic = f"{controller}/{TRACKING_ERROR}"
        node.create_subscription(Vector3Stamped, topic, self._on_error, 10)

    def _on_error(self, message: Vector3Stamped) -> None:
        v = message.vector
        self._errors.append(float(np.linalg.norm([v.x, v.y, v.z])))

    @property
    def _rms(self) -> float:
        return float(np.sqrt(np.mean(np.square(self._errors))))

    def figures(self) -> list[str]:
        """Return the figures of the whole run, a line each."""
        if not self._errors:
            return []
        rms, most = 1e3 * self._rms, 1e3 * max(self._errors)
        return [f"{self._what} off by {rms:.2g} mm rms, {most:.2g} mm at most"]

    def faults(self) -> list[str]:
        """Return faults; empty without faults."""
        if not self._errors:
            return [f"{self._what} was never tracked"]
        if self._rms <= self._limit:
            return []
        return [
            f"{self._what} off by {1e3 * self._rms:.2g} mm rms; expected at most "
            f"{1e3 * self._limit:g} mm"
        ]
