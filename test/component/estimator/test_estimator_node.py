"""delassus_estimator in ROS: exact where what comes is, refusals in words, silence, health."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from delassus_msgs.msg import Estimate
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import Vector3, Wrench, WrenchStamped
from nav_msgs.msg import Odometry
from rclpy.duration import Duration
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile
from ros_support import Domain
from sensor_msgs.msg import Imu, JointState

from delassus import Robot
from delassus.dynamics import Dynamics
from delassus.robots.built_in import demo_urdf
from delassus_ros.estimator.node import EstimatorNode
from delassus_ros.inputs.findings import Reason
from delassus_ros.ros.timers import now_of

FEET = ("LF_FOOT", "RF_FOOT", "LH_FOOT", "RH_FOOT")
PERIOD = Duration(seconds=0.002)
DEFAULTS = {
    "robot_description": demo_urdf(),
    "acceleration.sigma": 1.0,
    "acceleration.window": 0.004,
    "wrenches.names": list(FEET),
    # No silence but in the test of it, however long the machine holds this one up.
    "input_timeout": 60.0,
}


class Scene(Domain):
    """The node, and somebody who publishes what a robot's sensors say, each period of stamps."""

    def __init__(self) -> None:
        super().__init__()
        self.robot = Robot.from_urdf(demo_urdf().encode())
        self.dynamics = Dynamics(self.robot, wrenches=FEET)
        self.node: EstimatorNode | None = None
        self.now()
        many = QoSProfile(depth=1000)
        self.joints = self.peer.create_publisher(JointState, "joint_states", many)
        self.base = self.peer.create_publisher(Odometry, "odometry", many)
        self.imu = self.peer.create_publisher(Imu, "imu", many)
        self.wrench = self.peer.create_publisher(WrenchStamped, "wrenches/LF_FOOT", many)
        self.estimates: list[Estimate] = []
        self.reports: list[DiagnosticArray] = []
        topic = "delassus_estimator/estimate"
        self.peer.create_subscription(Estimate, topic, self.estimates.append, many)
        self.peer.create_subscription(DiagnosticArray, "/diagnostics", self.reports.append, many)

    def now(self) -> Time:
        """Let stamps go on from the present time; return it."""
        self.stamp = self.peer.get_clock().now()
        return self.stamp.to_msg()

    def start(self, **parameters: Any) -> EstimatorNode:
        wanted = {**DEFAULTS, **{k.replace("__", "."): v for k, v in parameters.items()}}
        given = [Parameter(name, value=value) for name, value in wanted.items()]
        self.node = EstimatorNode(context=self.context, parameter_overrides=given)
        return self.add(self.node)

    def activate(self, **parameters: Any) -> EstimatorNode:
        node = self.start(**parameters)
        node.trigger_configure()
        assert node._estimation is not None
        node.trigger_activate()
        self.until(lambda: self.joints.get_subscription_count() == 1, "subscription")
        self.until(lambda: self.base.get_subscription_count() == 1, "subscription")
        return node

    def send(self, q: np.ndarray, rates: np.ndarray, torques: np.ndarray) -> Estimate:
        """Publish base and joint states of the next stamp, and wait for the answer."""
        self.stamp += PERIOD
        stamp = self.stamp.to_msg()
        base = Odometry(child_frame_id="base")
        base.header.stamp, base.header.frame_id = stamp, "odom"
        base.pose.pose.orientation.w = 1.0
        for target, values in (
            (base.twist.twist.linear, rates[:3]), (base.twist.twist.angular, rates[3:6]),
        ):  # fmt: skip
            target.x, target.y, target.z = values.tolist()
        state = JointState(
            name=list(self.robot.joint_names), position=q.tolist(),
            velocity=rates[6:].tolist(), effort=torques[6:].tolist(),
        )  # fmt: skip
        state.header.stamp = stamp
        self.base.publish(base)
        self.until(lambda: self.heard_base(), "base")
        self.state = state
        self.joints.publish(state)

        # Others may be of a silence before and after.
        def answers() -> list[Estimate]:
            return [each for each in self.estimates if each.header.stamp == stamp]

        return self.until(answers, "estimate")[0]

    def send_again(self, stamp: Any) -> Estimate:
        """Publish the latest joint state once more, and wait for another answer to it."""
        before = len(self.estimates)
        self.joints.publish(self.state)

        def answers() -> list[Estimate]:
            return [each for each in self.estimates[before:] if each.header.stamp == stamp]

        return self.until(answers, "another estimate")[0]

    def heard_base(self) -> bool:
        assert self.node is not None and self.node._estimation is not None
        source = self.node._estimation.base
        return source is not None and source.fault(now_of(self.node)()) is None


@pytest.fixture(name="scene")
def make_scene() -> Iterator[Scene]:
    with Scene() as scene:
        yield scene


def standing(scene: Scene) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return positions, torques and forces of feet that hold the robot still."""
    rng = np.random.default_rng(0)
    q = np.tile([0.05, 0.7, -1.4], 4) + 0.02 * rng.normal(size=12)
    n = scene.dynamics.size
    zero = np.zeros(n)
    weight = scene.dynamics.inverse(q, zero, zero)
    wrenches = np.zeros((4, 6))
    # Feet's forces that balance the base, the smallest ones.
    columns = []
    for k in range(4):
        for row in range(3):
            unit = np.zeros((4, 6))
            unit[k, row] = 1.0
            columns.append(scene.dynamics.inverse(q, zero, zero, np.zeros(3), unit)[:6])
    forces = np.linalg.lstsq(np.array(columns).T, -weight[:6], rcond=None)[0]
    wrenches[:, :3] = forces.reshape(4, 3)
    torques = scene.dynamics.inverse(q, zero, zero, wrenches=wrenches)
    assert np.abs(torques[:6]).max() < 1e-9
    return q, torques, wrenches


def told(message: Estimate) -> np.ndarray:
    return np.array(
        [[w.force.x, w.force.y, w.force.z, w.torque.x, w.torque.y, w.torque.z]
         for w in message.wrenches]
    )  # fmt: skip


def test_forces_of_feet_are_told_from_efforts_and_rates(scene: Scene) -> None:
    node = scene.activate()
    q, torques, wrenches = standing(scene)
    for _ in range(4):
        scene.send(q, np.zeros(18), torques)
    last = scene.estimates[-1]
    assert last.validity == Estimate.VALIDITY_OK, last.text
    assert list(last.frames) == list(FEET)
    assert list(last.joints) == list(scene.dynamics.joints[1:])
    np.testing.assert_allclose(told(last), wrenches, rtol=0, atol=1e-8 * np.abs(wrenches).max())
    np.testing.assert_allclose(last.torques, torques[6:], rtol=0, atol=1e-8)
    spread = np.array(last.wrench_covariances).reshape(4, 6, 6)
    for k, frame in enumerate(FEET):
        assert node._estimation is not None
        answer = node._estimation.last
        assert answer is not None and answer.numbers is not None
        named = node._estimation.system.named(answer.numbers)
        quantity = next(q for q in named.values if getattr(q, "frame", "") == frame)
        np.testing.assert_array_equal(spread[k], named.covariances[quantity])
        assert np.linalg.eigvalsh(spread[k])[3:].min() > 0.0
    assert last.squared < 1e-10 and last.redundant == 6
    # Before it knew accelerations, it said so.
    first = next(each for each in scene.estimates if each.reasons & Reason.NO_ACCELERATION)
    assert first.validity == Estimate.VALIDITY_INVALID
    assert first.reasons == Reason.NO_ACCELERATION and "acceleration.window" in first.text
    assert [m.sequence for m in scene.estimates] == list(range(len(scene.estimates)))


def test_a_joint_state_that_comes_again_is_estimated_again(scene: Scene) -> None:
    """As of a simulation that waits for its estimate: time was not set back."""
    scene.activate()
    q, torques, wrenches = standing(scene)
    for _ in range(4):
        answer = scene.send(q, np.zeros(18), torques)
    for _ in range(3):
        again = scene.send_again(answer.header.stamp)
        assert again.validity == Estimate.VALIDITY_OK, again.text
        np.testing.assert_array_equal(told(again), told(answer))
        assert again.sequence > answer.sequence


def test_the_newest_of_the_joint_states_that_wait_is_answered(scene: Scene) -> None:
    """As after a pause of the process: an answer to an old one would come late for nothing."""
    scene.activate()
    q, torques, _ = standing(scene)
    scene.send(q, np.zeros(18), torques)

    def burst() -> bool:
        """Return whether of five joint states, sent while nothing is taken, one is answered."""
        stamps = []
        for _ in range(5):
            stamps.append(scene.now())
            scene.state.header.stamp = stamps[-1]
            scene.joints.publish(scene.state)

        def answered() -> list[Any]:
            return [stamp for stamp in stamps if any(
                each.header.stamp == stamp for each in scene.estimates)]  # fmt: skip

        scene.until(lambda: stamps[-1] in answered(), "answer to the newest")
        return answered() == stamps[-1:]

    # Some of a burst may arrive only when the first one is taken already.
    scene.until(burst, "burst whose newest joint state alone is answered")


def test_a_sensor_and_an_imu_count_as_well(scene: Scene) -> None:
    scene.activate(**{
        "wrenches__LF_FOOT__sensor": True, "wrenches__LF_FOOT__force_sigma": 0.01,
        "imu__frame": "base",
    })  # fmt: skip
    q, torques, wrenches = standing(scene)
    scene.send(q, np.zeros(18), torques)
    assert scene.estimates[-1].reasons == Reason.WRENCH_MISSING
    assert scene.estimates[-1].text == "nothing has come from the sensor of LF_FOOT yet"
    x, y, z = wrenches[0, :3].tolist()

    def sensed() -> WrenchStamped:
        message = WrenchStamped(wrench=Wrench(force=Vector3(x=x, y=y, z=z)))
        message.header.stamp = scene.stamp.to_msg()
        return message

    scene.wrench.publish(sensed())
    node = scene.node
    assert node is not None and node._estimation is not None
    sensor = node._estimation.inputs.by_topic["wrenches/LF_FOOT"]
    scene.until(lambda: sensor.fault(now_of(node)()) is None, "wrench")
    scene.send(q, np.zeros(18), torques)
    assert scene.estimates[-1].reasons == Reason.IMU_MISSING
    felt = Imu(linear_acceleration=Vector3(x=0.0, y=0.0, z=9.81))
    felt.header.stamp = scene.stamp.to_msg()
    scene.imu.publish(felt)
    imu = node._estimation.inputs.by_topic["imu"]
    scene.until(lambda: imu.fault(now_of(node)()) is None, "acceleration")
    for _ in range(3):
        scene.wrench.publish(sensed())
        scene.send(q, np.zeros(18), torques)
    last = scene.estimates[-1]
    assert last.validity == Estimate.VALIDITY_OK, last.text
    assert last.redundant == 12
    np.testing.assert_allclose(told(last), wrenches, rtol=0, atol=1e-6 * np.abs(wrenches).max())
    spread = np.array(last.wrench_covariances).reshape(4, 6, 6)
    assert spread[0, 2, 2] < 1.1e-4 < spread[1, 2, 2]
    # Not finite: refused by name; the node lives on.
    bad = WrenchStamped(wrench=Wrench(force=Vector3(x=float("nan"))))
    scene.wrench.publish(bad)
    scene.until(lambda: sensor.fault(now_of(node)()) is not None, "refusal")
    scene.send(q, np.zeros(18), torques)
    assert scene.estimates[-1].reasons == Reason.WRENCH_INVALID
    assert "the sensor of LF_FOOT are refused: they are nan" in scene.estimates[-1].text


def test_velocities_that_are_missing_and_silence_are_said(scene: Scene) -> None:
    scene.activate(input_timeout=5.0, diagnostics_period=0.05)
    q, torques, _ = standing(scene)

    def is_answered() -> bool:
        """Two states make an acceleration, unless a busy machine has them too late."""
        scene.now()
        answers = [scene.send(q, np.zeros(18), torques) for _ in range(3)]
        return bool(answers[-1].validity == Estimate.VALIDITY_OK)

    scene.until(is_answered, "an estimate")
    rates = np.zeros(18)
    rates[8] = np.nan
    assert scene.send(q, rates, torques).reasons == Reason.VELOCITY_NOT_FINITE
    scene.until(
        lambda: scene.estimates[-1].reasons & Reason.INPUT_STALE, "word that nothing comes"
    )
    assert "no joint state any more" in scene.estimates[-1].text

    def entry() -> str:
        statuses = [s for report in scene.reports for s in report.status]
        found = [s for s in statuses if s.name == "delassus_estimator: estimate"]
        return found[-1].message if found else ""

    scene.until(lambda: "no joint state any more" in entry(), "diagnostics")


def test_what_is_not_enough_is_refused_when_it_is_configured(
    scene: Scene, capfd: pytest.CaptureFixture[str]
) -> None:
    node = scene.start(**{"effort__sigma": 0.0})
    node.trigger_configure()
    assert node._estimation is None
    assert "they do not determine" in capfd.readouterr().err
    # Told otherwise, it goes on.
    node.set_parameters([Parameter("effort.sigma", value=1.0)])
    node.trigger_configure()
    assert node._estimation is not None


def test_a_frame_that_does_not_exist_is_named(
    scene: Scene, capfd: pytest.CaptureFixture[str]
) -> None:
    node = scene.start(wrenches__names=["LF_FOOT", "LEFT"])
    node.trigger_configure()
    assert node._estimation is None
    assert "unknown frame 'LEFT'" in capfd.readouterr().err


def test_it_gives_back_everything_and_starts_again(scene: Scene) -> None:
    node = scene.activate()
    q, torques, wrenches = standing(scene)
    for _ in range(2):
        for _ in range(3):
            scene.send(q, np.zeros(18), torques)
        assert scene.estimates[-1].validity == Estimate.VALIDITY_OK
        node.trigger_deactivate()
        node.trigger_cleanup()
        assert node._estimation is None
        node.trigger_configure()
        node.trigger_activate()
        scene.until(lambda: scene.joints.get_subscription_count() == 1, "subscription")
        scene.until(lambda: scene.base.get_subscription_count() == 1, "subscription")
