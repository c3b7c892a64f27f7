"""The estimation of a robot that stands, with the messages of its sensors, without a node."""

from __future__ import annotations

from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Odometry
from rclpy.serialization import serialize_message
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Header

from delassus import Robot
from delassus.dynamics import Dynamics
from delassus.robots.built_in import demo_urdf
from delassus_ros.estimator.estimation import Estimation, LastEstimate
from delassus_ros.estimator.settings import EstimatorSettings
from delassus_ros.inputs.findings import Validity
from delassus_ros.ros.health import InputHealth

FEET = ("LF_FOOT", "RF_FOOT", "LH_FOOT", "RH_FOOT")
MS = 1_000_000
START = 1_700_000_000 * 1000 * MS
OK, DEGRADED, INVALID = Validity.OK, Validity.DEGRADED, Validity.INVALID
STILL = np.zeros(18)


def header(stamp: int, frame: str = "") -> Header:
    sec, nanosec = divmod(stamp, 10**9)
    return Header(stamp=Time(sec=sec, nanosec=nanosec), frame_id=frame)


class Standing:
    """An estimation of a robot that stands, and sensors that say so unless told otherwise."""

    def __init__(self, **parameters: Any) -> None:
        given = {
            "wrenches.names": FEET, "acceleration.window": 0.004, "imu.frame": "base",
            "wrenches.LF_FOOT.sensor": True, "wrenches.LF_FOOT.force_sigma": 0.5, **parameters,
        }  # fmt: skip
        settings = EstimatorSettings.from_parameters(given)
        self.robot = settings.robot(demo_urdf())
        self.now = START
        self.warnings: list[str] = []
        self.estimation = Estimation(
            self.robot, settings, lambda: self.now, lambda kind, text: self.warnings.append(text)
        )
        self.estimation.system_now = lambda: self.now
        self.estimation.begin()
        dynamics = Dynamics(Robot.from_urdf(demo_urdf().encode()), wrenches=FEET)
        self.q = np.tile([0.05, 0.7, -1.4], 4) + 0.02 * np.random.default_rng(0).normal(size=12)
        columns = []
        for k in range(12):
            unit = np.zeros((4, 6))
            unit[k // 3, k % 3] = 1.0
            columns.append(dynamics.inverse(self.q, STILL, STILL, np.zeros(3), unit)[:6])
        weight = dynamics.inverse(self.q, STILL, STILL)[:6]
        forces = np.linalg.lstsq(np.array(columns).T, -weight, rcond=None)[0].reshape(4, 3)
        wrenches = np.hstack([forces, np.zeros((4, 3))])
        self.torques = dynamics.inverse(self.q, STILL, STILL, wrenches=wrenches)[6:]
        self.force = forces[0]

    def read(self, topic: str, message: Any, delay: int = 0, count: int = 0) -> bool:
        """Send a message that was sent `delay` ns ago; return whether an answer is due."""
        data = serialize_message(message)
        return self.estimation.read(topic, data, self.now - delay, count)

    def odometry(self, world: str = "odom", **changes: Any) -> None:
        message = Odometry(child_frame_id="base")
        message.header = header(changes.get("stamp", self.now), world)
        self.read("odometry", message)

    def wrench(self, *force: float, stamp: int | None = None, frame: str = "", delay: int = 0):
        message = WrenchStamped(header=header(self.now if stamp is None else stamp, frame))
        f = message.wrench.force
        f.x, f.y, f.z = map(float, force or self.force)
        self.read("wrenches/LF_FOOT", message, delay)

    def imu(
        self, stamp: int | None = None, frame: str = "", delay: int = 0, unknown: bool = False
    ):
        message = Imu(header=header(self.now if stamp is None else stamp, frame))
        message.linear_acceleration.z = 9.81
        message.linear_acceleration_covariance[0] = -1.0 if unknown else 0.0
        self.read("imu", message, delay)

    def sense(self) -> None:
        self.odometry()
        self.wrench()
        self.imu()

    def joints(
        self, torques: np.ndarray | None = None, velocities: np.ndarray | None = None
    ) -> LastEstimate:
        """Send a joint state; return the estimate."""
        self.state(torques=torques, velocities=velocities)
        found = self.answer()
        assert found is not None
        return found

    def state(
        self,
        stamp: int | None = None,
        torques: np.ndarray | None = None,
        velocities: np.ndarray | None = None,
    ) -> None:
        """Send a joint state, stamped now unless told otherwise."""
        message = JointState(name=self.robot.joint_names, position=self.q)
        message.effort = self.torques if torques is None else torques
        message.velocity = np.zeros(12) if velocities is None else velocities
        message.header = header(self.now if stamp is None else stamp)
        self.read("joint_states", message)

    def answer(self) -> LastEstimate | None:
        """Return the estimate for the joint state that waits; None if there is none."""
        return self.estimation.last if list(self.estimation.answer()) else None

    @property
    def text(self) -> str:
        """What is wrong, in words."""
        return self.estimation.last.text

    def healths(self) -> dict[str, InputHealth]:
        """Return the health of each input by topic."""
        return self.estimation.healths()

    def wait(self, ms: float) -> None:
        self.now += round(ms * MS)

    def settle(self) -> LastEstimate:
        """Let sensors come until accelerations are known; return the last estimate."""
        for _ in range(4):
            self.now += 2 * MS
            self.sense()
            answer = self.joints()
        return answer

    good = settle
