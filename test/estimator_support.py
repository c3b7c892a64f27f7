"""The estimation of a robot that stands, with the messages of its sensors, without a node."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from delassus_ros import Robot
from delassus_ros.dynamics import Dynamics
from delassus_ros.estimator.estimation import Answer, Estimation
from delassus_ros.estimator.settings import EstimatorSettings
from delassus_ros.inputs.findings import Validity
from delassus_ros.ros.health import InputHealth
from delassus_ros.sim import demo_urdf

FEET = ("LF_FOOT", "RF_FOOT", "LH_FOOT", "RH_FOOT")
MS = 1_000_000
START = 1_700_000_000 * 1000 * MS
OK, DEGRADED, INVALID = Validity.OK, Validity.DEGRADED, Validity.INVALID
STILL = np.zeros(18)


def header(stamp: int, frame: str = "") -> SimpleNamespace:
    sec, nanosec = divmod(stamp, 10**9)
    return SimpleNamespace(frame_id=frame, stamp=SimpleNamespace(sec=sec, nanosec=nanosec))


def vector(x: float, y: float, z: float) -> SimpleNamespace:
    return SimpleNamespace(x=x, y=y, z=z)


class Standing:
    """An estimation of a robot that stands, and sensors that say so unless told otherwise."""

    def __init__(self, **parameters: Any) -> None:
        given = {
            "wrenches.names": FEET, "acceleration.window": 0.004, "imu.frame": "base",
            "wrenches.LF_FOOT.sensor": True, "wrenches.LF_FOOT.force_sigma": 0.5, **parameters,
        }  # fmt: skip
        settings = EstimatorSettings.from_parameters(given)
        self.robot = settings.robot(demo_urdf())
        self.estimation = Estimation(self.robot, settings)
        self.now = START
        self.estimation.reset(self.now)
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

    def odometry(self, world: str = "odom", **changes: Any) -> None:
        stamp = changes.get("stamp", self.now)
        twist = SimpleNamespace(twist=SimpleNamespace(linear=vector(0, 0, 0),
                                                      angular=vector(0, 0, 0)))  # fmt: skip
        turn = SimpleNamespace(x=0.0, y=0.0, z=0.0, w=1.0)
        pose = SimpleNamespace(
            pose=SimpleNamespace(position=vector(0, 0, 0), orientation=turn)
        )
        message = SimpleNamespace(
            header=header(stamp, world), child_frame_id="base", pose=pose, twist=twist
        )
        self.estimation.read("odometry", message, self.now)

    def wrench(self, *force: float, stamp: int | None = None, frame: str = "", delay: int = 0):
        wrench = SimpleNamespace(force=vector(*(force or self.force)), torque=vector(0, 0, 0))
        stamp = self.now if stamp is None else stamp
        message = SimpleNamespace(header=header(stamp, frame), wrench=wrench)
        return self.estimation.read("wrenches/LF_FOOT", message, self.now, delay)

    def imu(
        self, stamp: int | None = None, frame: str = "", delay: int = 0, unknown: bool = False
    ):
        stamp = self.now if stamp is None else stamp
        message = SimpleNamespace(
            header=header(stamp, frame), linear_acceleration=vector(0, 0, 9.81),
            linear_acceleration_covariance=[-1.0 if unknown else 0.0],
        )  # fmt: skip
        return self.estimation.read("imu", message, self.now, delay)

    def sense(self) -> None:
        self.odometry()
        self.wrench()
        self.imu()

    def joints(
        self, torques: np.ndarray | None = None, velocities: np.ndarray | None = None
    ) -> Answer:
        efforts = self.torques if torques is None else torques
        motion = np.zeros(12) if velocities is None else velocities
        answer = self.estimation.answer(
            self.robot.joint_names, self.now, self.q, (motion, efforts), self.now
        )
        assert answer is not None
        return answer

    @property
    def text(self) -> str:
        """What is wrong, in words."""
        return self.estimation.last.text

    def healths(self) -> dict[str, InputHealth]:
        """Return the health of each input by topic."""
        return self.estimation.healths(self.now)

    def wait(self, ms: float) -> None:
        self.now += round(ms * MS)

    def settle(self) -> Answer:
        """Let sensors come until accelerations are known; return the last estimate."""
        for _ in range(4):
            self.now += 2 * MS
            self.sense()
            answer = self.joints()
        return answer

    good = settle
