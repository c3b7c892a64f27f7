"""Outputs of motion: the base's twist and torques count by stamp and time sent, whatever the axes.

Contacts told by forces are unknown until there is a difference to judge by.
"""

from __future__ import annotations

import numpy as np
import pytest
from delassus_msgs.msg import DelassusMatrix
from motion_support import FEET, MotionRig, torques_of
from tick_support import DEGRADED, INVALID, MS, OK, Rig, said, to_message

from delassus import Contact, DelassusSolver, Problem, Robot
from delassus.robots.built_in import demo_urdf
from delassus_ros.inputs.contact_estimator import (
    ContactEstimator,
    ObserverSettings,
)
from delassus_ros.inputs.findings import Reason
from delassus_ros.inputs.orientation import OrientationInput

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
            rig.tick.inputs.by_topic["odometry"]._world = "map"
            rig.odometry()
        dynamics = rig.send()[1]
    assert dynamics.validity == INVALID
    assert dynamics.reasons & (
        Reason.ORIENTATION_STALE | Reason.ORIENTATION_INVALID | Reason.TWIST_INVALID
    )


def test_of_two_publishers_the_newer_torques_stay() -> None:
    rig = MotionRig(torques="topic")
    for at, scale in ((0.0, 1.0), (-400.0, 3.0)):
        message = torques_of(rig, efforts=scale * rig.efforts)
        message.header.stamp = to_message(rig.now + round(at * MS))
        rig.read("joint_torques", message)
    _, dynamics = rig.send(effort=[])
    assert (dynamics.validity, dynamics.reasons) == (DEGRADED, Reason.STAMP_JUMPED_BACK)
    np.testing.assert_array_equal(rig.tick._solver.inputs["torques"][6:], rig.efforts)


def standing_torques(robot: Robot, contacts: list[Contact]) -> np.ndarray:
    """Return the torques with which each foot carries a quarter of the robot."""
    problem = Problem(robot, contacts, "world", ["h", "J"])
    still = np.zeros(len(problem.velocities))
    s = DelassusSolver(problem).solve(
        POSTURE, base_orientation=[0, 0, 0, 1], rates=still, gravity=GRAVITY
    )
    h, J = s.output("h"), s.output("J")
    return (h - J.T @ np.tile([0.0, 0.0, h[2] / 4], 4))[6:]


class ForceRig(Rig):
    """A tick of a robot that stands still, whose contacts are estimated from forces."""

    def __init__(self) -> None:
        robot = Robot.from_urdf(demo_urdf().encode())
        contacts = [Contact(foot, f"{foot}_FOOT") for foot in FEET]
        problem = Problem(robot, contacts, "world")
        self.base = OrientationInput(robot, world="odom")
        super().__init__(
            DelassusSolver(problem),
            lambda _: dict(zip(robot.joint_names, POSTURE, strict=True)),
            orientation=self.base,
            estimator=ContactEstimator(problem, ObserverSettings(), (), GRAVITY, self.base),
        )
        self.touching = FEET
        self.efforts = standing_torques(robot, contacts)

    def sense(self, wait: float, scale: float = 1.0, at: float | None = 0.0) -> DelassusMatrix:
        """Send odometry and a joint state `wait` ms later than before."""
        self.wait(wait)
        self.turn((0.0, 0.0, 0.0, 1.0), at=at)
        effort = (scale * self.efforts).tolist()
        self.motion = {"velocity": [0.0] * len(effort), "effort": effort}
        message = self.send()
        assert message is not None
        return message


def test_contacts_by_force_unknown_at_the_first_joint_state() -> None:
    rig = ForceRig()
    assert said(rig.sense(0)) == (INVALID, Reason.NO_CONTACTS_RECEIVED)
    assert "the first has just come" in rig.text
    assert said(rig.sense(10)) == (OK, Reason.NONE)


def test_contacts_by_force_unknown_after_a_gap() -> None:
    rig = ForceRig()
    for _ in range(3):
        rig.sense(10)
    for _ in range(8):
        assert said(rig.sense(125)) == (INVALID, Reason.NO_CONTACTS_RECEIVED)
        assert "0.125 s apart, at most 0.1 s are allowed" in rig.text
    assert said(rig.sense(10)) == (OK, Reason.NONE)


def test_contacts_by_force_unknown_without_efforts() -> None:
    rig = ForceRig()
    for _ in range(3):
        rig.sense(10)
    unknown = Reason.NO_CONTACTS_RECEIVED | Reason.TORQUE_MISSING
    assert said(rig.sense(10, np.nan)) == (INVALID, unknown)
    assert "do not have an effort for each" in rig.text
    assert "has arrived yet" not in rig.text


def test_contacts_by_force_doubtful_with_a_doubtful_twist() -> None:
    rig = ForceRig()
    rig.sense(10)
    assert said(rig.sense(10, at=None)) == (DEGRADED, Reason.STAMP_INVALID)
