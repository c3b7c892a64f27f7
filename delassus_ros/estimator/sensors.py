"""Inputs from force-torque and inertial sensors of a robot: their latest checked numbers.

Knows no ROS except the fields of messages. Stamps and times are integers, ns.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from delassus.errors import SAID
from delassus.model import Robot
from delassus.model.spatial import Array, Transform
from delassus_ros.inputs.findings import Finding, Reason
from delassus_ros.inputs.input import Faults, LatestInput, Words, shown
from delassus_ros.inputs.motion import STRONGEST

_SAME = 1e-9
"""Tolerance for equal placements on a link: largest difference of entries [m, 1]."""


class Sensor(LatestInput[Array]):
    """The latest numbers of a sensor.

    A message that names another frame is refused: its numbers are along other axes, or of another
    place.

    Parameters
    ----------
    name : name of the sensor in words.
    topic : name of the topic before remapping.
    frame : frame along whose axes the numbers are.
    parameter : name of the parameter with the frame.

    Attributes
    ----------
    values : (size,) latest numbers.
    """

    def __init__(
        self,
        name: str,
        topic: str,
        size: int,
        frame: str,
        robot: Robot,
        parameter: str,
        faults: Faults,
        timeout: float,
    ) -> None:
        self.name, self.topic, self.values = name, topic, np.zeros(size)
        self._frame, self._parameter = frame, parameter
        self._frames = frames_at(robot, frame)
        missing = f"nothing has come from the {name} yet"
        words = Words(name, f"the numbers of the {name}", "are", "input_timeout", missing)
        super().__init__(words, faults, timeout)

    @abstractmethod
    def _numbers(self, message: Any) -> tuple[float, ...]:
        """Return the numbers in a message."""

    def _is_silent(self, message: Any) -> bool:
        """Return whether a message is marked as having no numbers."""
        return False

    def _parse(self, message: Any) -> Array | Finding:
        if self._is_silent(message):
            return self._refused("the message says that it has none")
        frame = message.header.frame_id
        if frame and frame not in self._frames:
            return self._refused(
                f"they are of frame {frame[:SAID]!r}, expected {self._frame!r} "
                f"({self._parameter})"
            )
        taken = np.asarray(self._numbers(message), dtype=np.float64)
        if not np.abs(taken).max() <= STRONGEST:
            return self._refused(f"they are {shown(taken.tolist())}; expected finite numbers")
        return taken

    def _keep(self, contents: Array, stamp: int, now: int) -> None:
        self.values[...] = contents


class WrenchSensor(Sensor):
    """A force-torque sensor: force [N], then moment [N·m]; parameters as of :class:`Sensor`."""

    def __init__(self, name: str, frame: str, robot: Robot, timeout: float) -> None:
        faults = Faults(Reason.WRENCH_MISSING, Reason.WRENCH_INVALID, Reason.WRENCH_STALE)
        super().__init__(
            f"sensor of {name}", f"wrenches/{name}", 6, frame, robot, f"wrenches.{name}.frame",
            faults, timeout,
        )  # fmt: skip

    def _numbers(self, message: Any) -> tuple[float, ...]:
        f, m = message.wrench.force, message.wrench.torque
        return f.x, f.y, f.z, m.x, m.y, m.z


class InertialSensor(Sensor):
    """An accelerometer: acceleration less gravity [m/s²]; parameters as of :class:`Sensor`."""

    def __init__(self, frame: str, robot: Robot, timeout: float) -> None:
        faults = Faults(Reason.IMU_MISSING, Reason.IMU_INVALID, Reason.IMU_STALE)
        super().__init__(
            "inertial sensor", "imu", 3, frame, robot, "imu.frame", faults, timeout
        )

    def _numbers(self, message: Any) -> tuple[float, ...]:
        a = message.linear_acceleration
        return a.x, a.y, a.z

    def _is_silent(self, message: Any) -> bool:
        # REP 145 and the comment of the message: -1 marks a missing estimate.
        return bool(message.linear_acceleration_covariance[0] == -1.0)


def frames_at(robot: Robot, name: str) -> frozenset[str]:
    """Return the names of all frames at the place of a frame, on the same link."""
    wanted = robot.frames[name]
    return frozenset(
        frame.name
        for frame in robot.frames.values()
        if frame.body == wanted.body and _is_same(frame.placement, wanted.placement)
    )


def _is_same(a: Transform, b: Transform) -> bool:
    turned = np.abs(a.rotation - b.rotation).max()
    return bool(max(turned, np.abs(a.translation - b.translation).max()) <= _SAME)
