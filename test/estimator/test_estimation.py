"""What the estimator says of sensors that are old, of another frame, stuck or contradict."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("delassus_msgs", reason="the message package delassus_msgs is not installed")

from delassus_ros import Robot  # noqa: E402
from delassus_ros.dynamics import Dynamics  # noqa: E402
from delassus_ros.errors import InputError  # noqa: E402
from delassus_ros.estimator.estimation import Answer, Estimation  # noqa: E402
from delassus_ros.estimator.settings import EstimatorSettings  # noqa: E402
from delassus_ros.node.reasons import Reason, Validity  # noqa: E402
from delassus_ros.sim import demo_urdf  # noqa: E402

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
        pose = SimpleNamespace(pose=SimpleNamespace(orientation=turn))
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

    def joints(self, torques: np.ndarray | None = None) -> Answer:
        efforts = self.torques if torques is None else torques
        answer = self.estimation.answer(
            self.robot.joint_names, self.now, self.q, (np.zeros(12), efforts), self.now
        )
        assert answer is not None
        return answer

    def settle(self) -> Answer:
        """Let sensors come until accelerations are known; return the last estimate."""
        for _ in range(4):
            self.now += 2 * MS
            self.sense()
            answer = self.joints()
        return answer


@pytest.fixture(name="standing")
def make_standing() -> Standing:
    return Standing()


def test_good_sensors_make_a_good_estimate(standing: Standing) -> None:
    answer = standing.settle()
    assert (answer.validity, answer.reasons) == (OK, Reason.NONE), answer.text
    named = standing.estimation.system.named(answer.numbers)
    assert named.squared < 1e-6 and named.redundant == 12
    total = sum((values**2).sum() for values in named.residuals.values())
    assert named.squared == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize("sensor", ["wrench", "imu"])
@pytest.mark.parametrize(
    ("stamp", "delay", "validity", "word"),
    [
        (-3600_000 * MS, 0, INVALID, "STALE"),
        (0, 3500 * MS, INVALID, "STALE"),
        (3600_000 * MS, 0, DEGRADED, "STAMP_IN_FUTURE"),
        (None, 0, DEGRADED, "STAMP_INVALID"),
    ],
    ids=["an hour old", "3.5 s in the middleware", "an hour ahead", "no stamp"],
)
def test_age_counts_by_stamp_and_by_time_sent(
    standing: Standing, sensor: str, stamp: int | None, delay: int, validity: int, word: str
) -> None:
    standing.settle()
    standing.estimation.by_topic["imu" if sensor == "imu" else "wrenches/LF_FOOT"].reset()
    standing.now += 2 * MS
    standing.odometry()
    send = getattr(standing, sensor)
    send(stamp=0 if stamp is None else standing.now + stamp, delay=delay)
    other = {"imu": standing.wrench, "wrench": standing.imu}[sensor]
    other()
    answer = standing.joints()
    assert answer.validity == validity, answer.text
    assert word in (answer.reasons.name or "")
    expected = "inertial sensor" if sensor == "imu" else "sensor of LF_FOOT"
    assert expected in answer.text


@pytest.mark.parametrize("sensor", ["wrench", "imu"])
def test_another_frame_is_refused_by_name(standing: Standing, sensor: str) -> None:
    standing.settle()
    standing.now += 2 * MS
    standing.sense()
    warning = getattr(standing, sensor)(frame="RF_FOOT")
    assert warning is not None and "frame 'RF_FOOT', expected '" in warning.text
    answer = standing.joints()
    assert answer.validity == INVALID and "_INVALID" in (answer.reasons.name or "")
    standing.now += 2 * MS
    standing.sense()
    assert standing.joints().validity == OK


def test_an_older_message_does_not_replace_a_newer_one(standing: Standing) -> None:
    standing.settle()
    standing.now += 2 * MS
    standing.sense()
    standing.wrench(100.0, 0.0, 0.0, stamp=standing.now - 100 * MS)
    answer = standing.joints()
    assert (answer.validity, answer.reasons) == (DEGRADED, Reason.STAMP_JUMPED_BACK)
    forces = standing.estimation.sensors[0].values[:3]
    np.testing.assert_allclose(forces, standing.force)


def test_a_sensor_that_is_stuck_contradicts_the_others(standing: Standing) -> None:
    standing.settle()
    standing.now += 2 * MS
    standing.sense()
    standing.wrench(0.0, 0.0, 0.0)
    answer = standing.joints()
    assert (answer.validity, answer.reasons) == (DEGRADED, Reason.SENSORS_CONTRADICT)
    assert "the sensor of LF_FOOT contradicts the other measurements by" in answer.text


def test_efforts_of_another_robot_contradict(standing: Standing) -> None:
    standing.settle()
    standing.now += 2 * MS
    standing.sense()
    torques = standing.torques.copy()
    torques[5] += 60.0
    answer = standing.joints(torques)
    assert (answer.validity, answer.reasons) == (DEGRADED, Reason.SENSORS_CONTRADICT)
    assert "the effort of joint 'RF_KFE' contradicts" in answer.text


@pytest.mark.parametrize("sensor", ["wrench", "imu"])
def test_two_publishers_of_a_sensor_that_take_turns_are_told(
    standing: Standing, sensor: str
) -> None:
    """Both send the same; nothing but the middleware's count tells them apart."""
    standing.settle()
    topic = {"wrench": "wrenches/LF_FOOT", "imu": "imu"}[sensor]
    read = standing.estimation.read

    def hear(count: int) -> Answer:
        standing.now += 2 * MS
        counts = {topic: count}
        standing.estimation.read = lambda name, message, now, delay=0: read(  # type: ignore
            name, message, now, delay, counts.get(name, 0)
        )
        standing.sense()
        return standing.joints()

    for count in (1, 2, 3, 1, 2, 3):
        assert hear(count).validity == OK
    for count in (700, 4, 701, 5, 702, 6):
        answer = hear(count)
    assert (answer.validity, answer.reasons) == (DEGRADED, Reason.SOURCES_CONTRADICT)
    assert f"two publishers of {topic} send the numbers of the" in answer.text


def test_after_a_jump_of_the_clock_all_inputs_have_to_come_anew(standing: Standing) -> None:
    standing.settle()
    standing.now -= 3600_000 * MS
    standing.estimation.reset(standing.now)
    answer = standing.joints()
    assert (answer.validity, answer.reasons) == (INVALID, Reason.ORIENTATION_MISSING)
    assert standing.settle().validity == OK


def test_the_twist_of_the_base_grows_old(standing: Standing) -> None:
    standing.settle()
    for _ in range(400):
        standing.now += 2 * MS
        standing.wrench()
        standing.imu()
        answer = standing.joints()
    assert answer.validity == INVALID and answer.reasons & Reason.ORIENTATION_STALE
    assert "at most 0.5 s are allowed (input_timeout)" in answer.text


def test_an_imu_that_has_no_acceleration_is_refused(standing: Standing) -> None:
    standing.settle()
    standing.now += 2 * MS
    standing.sense()
    standing.imu(unknown=True)
    answer = standing.joints()
    assert (answer.validity, answer.reasons) == (INVALID, Reason.IMU_INVALID)
    assert "the message says that it has none" in answer.text


def test_odometry_of_another_world_is_refused_by_name(standing: Standing) -> None:
    standing.settle()
    standing.now += 2 * MS
    standing.sense()
    standing.odometry("camera_optical_frame")
    answer = standing.joints()
    assert (answer.validity, answer.reasons) == (INVALID, Reason.ORIENTATION_INVALID)
    assert "it is in frame 'camera_optical_frame', expected 'odom'" in answer.text


def test_accelerations_are_not_told_across_a_pause(standing: Standing) -> None:
    standing.settle()
    standing.now += 450 * MS
    standing.sense()
    answer = standing.joints()
    assert (answer.validity, answer.reasons) == (INVALID, Reason.NO_ACCELERATION)
    assert standing.settle().validity == OK


def test_what_is_said_once_is_said_of_the_next_estimate_of_a_rate() -> None:
    standing = Standing(rate=100.0)
    for _ in range(4):
        standing.now += 2 * MS
        standing.sense()
        standing.estimation.answer(
            standing.robot.joint_names, standing.now, standing.q,
            (np.zeros(12), standing.torques), standing.now,
        )  # fmt: skip
    said = []
    for k in range(40):
        standing.now += 2 * MS
        standing.sense()
        stamp = standing.now - (30 * MS if k % 8 == 3 else 0)
        answer = standing.estimation.answer(
            standing.robot.joint_names, stamp, standing.q, (np.zeros(12), standing.torques),
            standing.now,
        )  # fmt: skip
        if answer is not None:
            said.append(answer.reasons)
    assert any(each & Reason.STAMP_JUMPED_BACK for each in said)


def test_the_newest_of_several_joint_states_is_answered(standing: Standing) -> None:
    """The older ones count for its accelerations, and what is wrong with them is told with it."""
    names, motion = standing.robot.joint_names, (np.zeros(12), standing.torques)
    for _ in range(4):
        standing.now += 2 * MS
        standing.sense()
        standing.estimation.take_in(names, standing.now, standing.q, motion, standing.now)
    answer = standing.estimation.answer_kept(standing.now)
    assert answer is not None and (answer.stamp, answer.validity) == (standing.now, OK)
    assert standing.estimation.answer_kept(standing.now) is None
    stamps = [standing.now + k * MS for k in (2, 4, -30, 6, 8, 10, 12, 14, 16)]
    for stamp in stamps:
        standing.now += 2 * MS
        standing.sense()
        standing.estimation.take_in(names, stamp, standing.q, motion, standing.now)
    answer = standing.estimation.answer_kept(standing.now)
    assert answer is not None and answer.stamp == stamps[-1]
    assert answer.reasons & Reason.STAMP_JUMPED_BACK and answer.validity == DEGRADED


def test_two_wrenches_on_one_frame_are_refused_by_name() -> None:
    with pytest.raises(InputError, match="'wrenches.A.frame' and 'wrenches.B.frame' are both"):
        EstimatorSettings.from_parameters(
            {"wrenches.names": ("A", "B"), "wrenches.A.frame": "F", "wrenches.B.frame": "F"}
        )


def test_joints_that_couplings_tie_are_closed_before_they_count() -> None:
    """Two encoders of a gripper never agree to a millionth; what is far off is doubtful."""
    urdf = """<robot name="gripper">
      <link name="base"/>
      <link name="left"><inertial><mass value="1"/><origin xyz="0.1 0 0"/>
        <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
      <link name="right"><inertial><mass value="1"/><origin xyz="0.1 0 0"/>
        <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
      <joint name="f1" type="revolute"><parent link="base"/><child link="left"/>
        <axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="1" velocity="8"/></joint>
      <joint name="f2" type="revolute"><parent link="base"/><child link="right"/>
        <axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="1" velocity="8"/>
        <mimic joint="f1" multiplier="-1"/></joint>
    </robot>"""
    settings = EstimatorSettings.from_parameters({"base": "fixed", "acceleration.window": 0.004})
    estimation = Estimation(settings.robot(urdf), settings)
    now = START
    estimation.reset(now)
    for second, validity in ((-0.3001, OK), (0.2, DEGRADED)):
        for _ in range(4):
            now += 2 * MS
            answer = estimation.answer(
                ["f1", "f2"], now, np.array([0.3, second]), (np.zeros(2), np.zeros(2)), now
            )
        assert answer is not None and answer.validity == validity, answer.text
