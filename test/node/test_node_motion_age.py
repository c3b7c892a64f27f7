"""Outputs of motion: the base's twist and torques count by stamp and time sent, whatever the axes.

Contacts told by forces are unknown until there is a difference to judge by.
"""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("pinocchio", reason="needs Pinocchio")
pytest.importorskip("delassus_msgs", reason="the message package delassus_msgs is not installed")

from delassus_msgs.msg import DelassusMatrix  # noqa: E402
from motion_support import FEET, MotionRig, torques_of  # noqa: E402
from pipeline_support import DEGRADED, INVALID, MS, OK, START, to_message  # noqa: E402
from rclpy.serialization import deserialize_message, serialize_message  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402

from delassus_ros import Contact, DelassusSolver, Problem, Robot  # noqa: E402
from delassus_ros.node.inputs.contact_estimator import (  # noqa: E402
    ContactEstimator,
    ObserverSettings,
)
from delassus_ros.node.inputs.orientation import OrientationInput  # noqa: E402
from delassus_ros.node.live.pipeline import Pipeline  # noqa: E402
from delassus_ros.node.outputs.matrix import make_layout  # noqa: E402
from delassus_ros.node.reasons import Reason  # noqa: E402
from delassus_ros.sim import demo_urdf  # noqa: E402

AXES = pytest.mark.parametrize("axes", ["contact", "world"])
GRAVITY = (0.0, 0.0, -9.81)
POSTURE = [0.0, 0.7, -1.4] * 4


@AXES
@pytest.mark.parametrize("bad", ["silence", "world", "nan", "child"])
def test_the_twist_grows_old_whatever_is_refused_since(axes: str, bad: str) -> None:
    rig = MotionRig(axes)
    assert rig.send()[1].validity == OK
    for _ in range(20):
        rig.now += 20 * MS
        rig.touch(*FEET)
        if bad == "child":
            rig.odometry(child="no_link")
        elif bad == "nan":
            rig.odometry([np.nan] * 6)
        elif bad == "world":
            rig.pipeline._inputs._source._world = "map"
            rig.odometry()
        dynamics = rig.send()[1]
    assert dynamics.validity == INVALID
    assert dynamics.reasons & (
        Reason.ORIENTATION_STALE | Reason.ORIENTATION_INVALID | Reason.TWIST_INVALID
    )


def test_without_outputs_of_motion_nothing_needs_the_odometry() -> None:
    rig = MotionRig("contact")
    rig.odometry(at=300)
    matrix, _ = rig.send()
    assert (matrix.validity, matrix.reasons) == (OK, 0)


def test_of_two_publishers_the_newer_torques_stay() -> None:
    rig = MotionRig(torques="topic")
    for at, scale in ((0.0, 1.0), (-400.0, 3.0)):
        message = torques_of(rig, efforts=scale * rig.efforts)
        message.header.stamp = to_message(rig.now + round(at * MS))
        rig.pipeline.read("joint_torques", message)
    _, dynamics = rig.send(effort=[])
    assert (dynamics.validity, dynamics.reasons) == (DEGRADED, Reason.STAMP_JUMPED_BACK)
    np.testing.assert_array_equal(rig.pipeline._solver.inputs["torques"][6:], rig.efforts)


def standing_torques(robot: Robot, contacts: list[Contact]) -> np.ndarray:
    """Return the torques with which each foot carries a quarter of the robot."""
    problem = Problem(robot, contacts, "world", ["h", "J"])
    still = np.zeros(len(problem.velocities))
    s = DelassusSolver(problem).solve(
        POSTURE, base_orientation=[0, 0, 0, 1], rates=still, gravity=GRAVITY
    )
    h, J = s.output("h"), s.output("J")
    return (h - J.T @ np.tile([0.0, 0.0, h[2] / 4], 4))[6:]


@pytest.mark.parametrize("topic", ["odometry", "joint_torques"])
def test_two_publishers_that_take_turns_are_reasons_for_doubt(topic: str) -> None:
    """The matrix does not depend on either; a publisher that is restarted once is one."""
    rig = MotionRig("contact", torques="topic")

    def send(count: int) -> tuple[int, int]:
        rig.now += 5 * MS
        rig.touch(*FEET)
        read = rig.pipeline.read
        counts = {topic: count}
        rig.pipeline.read = lambda name, message: read(name, message, 0, counts.get(name, 0))
        rig.odometry()
        torques = torques_of(rig)
        torques.header.stamp = to_message(rig.now)
        rig.pipeline.read("joint_torques", torques)
        rig.pipeline.read = read
        matrix, dynamics = rig.send(effort=[])
        assert (matrix.validity, matrix.reasons) == (OK, 0)
        return dynamics.validity, dynamics.reasons

    for count in (1, 2, 3, 1, 2, 3):
        assert send(count) == (OK, 0)
    for count in (700, 4, 701, 5, 702, 6):
        found = send(count)
    assert found == (DEGRADED, Reason.SOURCES_CONTRADICT)
    assert f"two publishers of {topic}" in rig.pipeline.secondary_state[2]


class Felt:
    """A pipeline of a robot that stands still, whose contacts are told by forces."""

    def __init__(self) -> None:
        robot = Robot.from_urdf(demo_urdf().encode())
        contacts = [Contact(foot, f"{foot}_FOOT") for foot in FEET]
        problem = Problem(robot, contacts, "world")
        self.torques = standing_torques(robot, contacts)
        self.now, self.joints = START, list(robot.joint_names)
        self.base = OrientationInput(robot, world="odom")
        estimator = ContactEstimator(problem, ObserverSettings(), (), GRAVITY, self.base)
        self.pipeline = Pipeline(
            DelassusSolver(problem), make_layout(problem, to_message(START), "odom"), False,
            lambda: self.now, lambda *_: None, orientation=self.base, estimator=estimator,
        )  # fmt: skip

    def send(self, wait: float, scale: float = 1.0) -> DelassusMatrix:
        self.now += round(wait * MS)
        self.base.read((0, 0, 0, 1), self.now, self.now, "base", "odom", (0, 0, 0))
        n = len(self.joints)
        message = JointState(
            name=self.joints, position=POSTURE, velocity=[0.0] * n,
            effort=(scale * self.torques).tolist(),
        )  # fmt: skip
        message.header.stamp = to_message(self.now)
        data = self.pipeline.answer(serialize_message(message))
        assert data is not None
        return deserialize_message(data, DelassusMatrix)


def test_contacts_by_force_are_unknown_until_there_is_a_difference() -> None:
    felt = Felt()
    first = felt.send(0)
    assert (first.validity, first.reasons) == (INVALID, Reason.NO_CONTACTS_RECEIVED)
    assert "the first has just come" in felt.pipeline.last.text
    second = felt.send(10)
    assert second.validity == OK and list(second.contacts) == list(FEET)


def test_a_gap_and_slow_joint_states_make_contacts_by_force_unknown() -> None:
    felt = Felt()
    for _ in range(3):
        felt.send(10)
    for _ in range(8):
        slow = felt.send(125)
        assert (slow.validity, slow.reasons) == (INVALID, Reason.NO_CONTACTS_RECEIVED)
        assert "0.125 s apart, at most 0.1 s are allowed" in felt.pipeline.last.text
    assert felt.send(10).validity == OK


def test_efforts_that_are_missing_are_the_reason() -> None:
    felt = Felt()
    for _ in range(3):
        felt.send(10)
    blind = felt.send(10, np.nan)
    expected = Reason.NO_CONTACTS_RECEIVED | Reason.TORQUE_MISSING
    assert (blind.validity, blind.reasons) == (INVALID, expected)
    assert "do not have an effort for each" in felt.pipeline.last.text
    assert "has arrived yet" not in felt.pipeline.last.text


def test_contacts_told_with_a_doubtful_twist_are_doubtful() -> None:
    felt = Felt()
    felt.send(10)
    felt.now += 10 * MS
    felt.base.read((0, 0, 0, 1), 0, felt.now, "base", "odom", (0, 0, 0))
    felt.now -= 10 * MS
    read, felt.base.read = felt.base.read, lambda *_: None
    doubtful = felt.send(10)
    felt.base.read = read
    assert (doubtful.validity, doubtful.reasons) == (DEGRADED, Reason.STAMP_INVALID)
