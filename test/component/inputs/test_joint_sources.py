"""Two publishers of joint states, and positions that no joint can have: said, by name."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tick_support import MS, START, GateRig

from delassus import Contact, Problem, Robot
from delassus.closure import Closure
from delassus.robots.built_in import demo_urdf
from delassus_ros.inputs.findings import Reason
from delassus_ros.inputs.joints import Gate, InputStatus, JointGate

STANDING = np.tile([0.0, 0.7, -1.4], 4)


@pytest.fixture(name="rig")
def make_rig() -> GateRig:
    rig = GateRig(Robot.from_urdf(demo_urdf().encode()))
    rig.gate.set_topic("/left/joint_states")
    return rig


def moving(k: int) -> np.ndarray:
    """Return positions of a robot that trots, at 100 Hz."""
    return STANDING + 0.3 * np.sin(0.1 * k)


def contradicts(status: InputStatus) -> bool:
    return status.gate is Gate.READY and bool(status.reasons & Reason.SOURCES_CONTRADICT)


def test_zeros_with_the_same_stamps(rig: GateRig) -> None:
    assert rig.send(None, moving(0), 0).reasons == Reason.NONE
    for k in range(20):
        zeros = rig.send(None, np.zeros(12), 10 * k)
        assert contradicts(zeros)
        words = "two publishers of /left/joint_states contradict each other: at one stamp joint"
        if k == 0:
            assert words in zeros.text
        assert contradicts(rig.send(None, moving(k + 1), 10 * k + 10))


def test_zeros_with_rising_stamps(rig: GateRig) -> None:
    """A jump of 1.4 rad within 5 ms is none that a knee can make."""
    for k in range(5):
        assert rig.send(None, moving(k), 10 * k).reasons == Reason.NONE
    for k in range(5, 25):
        zeros = rig.send(None, np.zeros(12), 10 * k - 5)
        assert contradicts(zeros)
        assert "two publishers of /left/joint_states" in zeros.text
        assert contradicts(rig.send(None, moving(k), 10 * k))
    assert "its velocity limit is 20 per s" in zeros.text


def test_the_middleware_tells_two_publishers_apart(rig: GateRig) -> None:
    """What each sends is near what the other sends; nothing but its count tells them apart."""
    said = []
    for k in range(6):
        one = STANDING + 0.01 * np.sin(k)
        said.append(contradicts(rig.send(None, one, 100 * k, count=500 + k)))
        said.append(contradicts(rig.send(None, one + 1e-3, 100 * k + 50, count=1 + k)))
    # Told as soon as the first one goes on.
    assert not any(said[:2]) and all(said[2:])
    last = rig.send(None, STANDING + 0.01 * np.sin(6), 600, count=506)
    assert "two publishers of /left/joint_states send all joints" in last.text


def test_without_a_count_the_order_of_names_does(rig: GateRig) -> None:
    still = np.zeros(12)
    assert not contradicts(rig.send(None, still, 0))
    assert not contradicts(rig.send(rig.joints[::-1], still, 10))
    assert contradicts(rig.send(None, still, 20))
    assert contradicts(rig.send(None, still, 900))
    # Once one of the two has ended.
    assert not contradicts(rig.send(None, still, 1100))


def test_a_publisher_that_is_restarted_is_one(rig: GateRig) -> None:
    for k in range(200):
        count = k + 1 if k < 100 else k - 99
        assert rig.send(None, moving(k), 10 * k, count=count).reasons == Reason.NONE


def test_a_message_that_comes_twice_is_one(rig: GateRig) -> None:
    for k in range(20):
        assert rig.send(None, moving(k), 10 * k).reasons == Reason.NONE
        assert rig.send(None, moving(k), 10 * k).reasons == Reason.NONE


def test_steps_of_simulated_time_hold_several_positions(rig: GateRig) -> None:
    rig.gate.set_clock_step(25 * MS)
    for k in range(50):
        assert rig.send(None, moving(k), 25 * (k // 2)).reasons == Reason.NONE


def test_a_pause_allows_any_motion(rig: GateRig) -> None:
    assert rig.send(None, moving(0), 0).reasons == Reason.NONE
    assert rig.send(None, -moving(0) * 0.5 - 0.9, 400).reasons & Reason.SOURCES_CONTRADICT == 0


def test_wheels_go_round(rig: GateRig) -> None:
    urdf = """<robot name="cart">
      <link name="base"/>
      <link name="wheel"><inertial><mass value="1"/>
        <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
      <joint name="spin" type="continuous"><parent link="base"/><child link="wheel"/>
        <axis xyz="0 0 1"/><limit effort="1" velocity="8"/></joint>
    </robot>"""
    gate = JointGate(Robot.from_urdf(urdf.encode(), base="fixed"))
    gate.reset(START)
    q = np.zeros(1)
    for k in range(400):
        angle = (0.05 * k + np.pi) % (2.0 * np.pi) - np.pi
        stamp = START + 10 * k * MS
        status = gate.read(["spin"], stamp, np.array([angle]), stamp, q)
        assert status.reasons == Reason.NONE, status.text


@pytest.mark.parametrize(("factor", "joint"), [(180.0 / np.pi, "LF_HFE"), (17.0 / 0.7, "LF_HFE")])
def test_degrees_and_encoders_that_were_not_homed(rig: GateRig, factor: float, joint: str) -> None:
    for k in range(3):
        status = rig.send(None, STANDING * factor, 10 * k)
        assert status.gate is Gate.READY and status.reasons == Reason.JOINT_OUTSIDE_LIMITS
        assert f"the position of joint {joint!r} is {0.7 * factor:.6g} rad" in status.text
        assert "not homed, or it is in degrees" in status.text
    assert rig.send(None, STANDING, 600).reasons & Reason.JOINT_OUTSIDE_LIMITS == 0


@pytest.mark.parametrize("k", range(12))
def test_every_joint_has_its_limits(rig: GateRig, k: int) -> None:
    q = STANDING.copy()
    q[k] = 40.0
    status = rig.send(None, q, 0)
    assert (status.gate, status.reasons) == (Gate.READY, Reason.JOINT_OUTSIDE_LIMITS)
    assert f"the position of joint {rig.joints[k]!r} is 40 rad" in status.text


def test_a_little_outside_its_limits_is_in_order(rig: GateRig) -> None:
    q = STANDING.copy()
    q[0] = 0.8 + 0.4
    assert rig.send(None, q, 0).reasons == Reason.NONE


def test_zeros_beside_publishers_of_parts(rig: GateRig) -> None:
    """Whole joint states win over parts, so parts tell that they are wrong."""
    front, hind = rig.joints[:6], rig.joints[6:]
    for k in range(3):
        rig.send(front, moving(k)[:6], 10 * k)
        assert rig.send(hind, moving(k)[6:], 10 * k).reasons == Reason.NONE
    rig.send(None, np.zeros(12), 25)
    for k in range(3, 8):
        rig.send(front, moving(k)[:6], 10 * k)
        rig.send(hind, moving(k)[6:], 10 * k)
        zeros = rig.send(None, np.zeros(12), 10 * k + 5)
        assert contradicts(zeros)
    assert "two publishers of /left/joint_states" in zeros.text


def test_two_publishers_of_the_same_part(rig: GateRig) -> None:
    front, hind = rig.joints[:6], rig.joints[6:]
    said = []
    for k in range(4):
        for count, shift in ((100, 0.0), (5000, 1e-3)):
            at = 10 * k + (5 if shift else 0)
            rig.send(front, STANDING[:6] + shift, at, count=count + k)
            said.append(contradicts(rig.send(hind, STANDING[6:], at, count=7 + len(said))))
    assert not any(said[:2]) and all(said[2:])


def test_velocity_limits_that_are_placeholders_are_none(rig: GateRig) -> None:
    joints = [replace(joint, velocity=0.01) for joint in rig.robot.joints]
    robot = Robot("slow", joints, rig.robot.bodies, list(rig.robot.frames.values()))
    gate = JointGate(robot)
    gate.reset(START)
    q = np.zeros(12)
    for k in range(200):
        stamp = START + k * MS
        status = gate.read(rig.joints, stamp, STANDING + 5e-4 * k, stamp, q)
        assert status.reasons == Reason.NONE, status.text


def test_one_publisher_with_coarse_stamps_is_one(rig: GateRig) -> None:
    for k in range(50):
        assert rig.send(None, moving(k) * 0.5 - 0.1, k // 2, count=k + 1).reasons == Reason.NONE


def test_zeros_that_come_seldom_are_told_each_time_from_the_first_change_on(
    rig: GateRig,
) -> None:
    """Once in 4 s, from a publisher that goes on."""
    wrong = []
    for k in range(100):
        for each in range(4):
            rig.send(None, 0.01 * moving(k) - 0.35, 200 * k + 50 * each, count=900 + 4 * k + each)
        if k % 20 == 19:
            wrong.append(rig.send(None, np.zeros(12) - 0.3, 200 * k + 199, count=k // 20 + 1))
            first = rig.send(None, 0.01 * moving(k) - 0.35, 200 * k + 199.5, count=904 + 4 * k)
            assert contradicts(first)
    assert all(contradicts(each) for each in wrong[1:])


def test_sources_by_different_joints_of_a_gripper() -> None:
    """One sends the driver, the other all joints: each is enough for a q."""
    urdf = """<robot name="gripper">
      <link name="base"/>
      <link name="left"><inertial><mass value="1"/>
        <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
      <link name="right"><inertial><mass value="1"/>
        <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
      <joint name="f1" type="prismatic"><parent link="base"/><child link="left"/>
        <axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="1" velocity="8"/></joint>
      <joint name="f2" type="prismatic"><parent link="base"/><child link="right"/>
        <axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="1" velocity="8"/>
        <mimic joint="f1" multiplier="-1"/></joint>
    </robot>"""
    robot = Robot.from_urdf(urdf.encode(), base="fixed")
    gate = JointGate(robot, closure=Closure(Problem(robot, [Contact("tip", "left")])))
    gate.reset(START)
    driver, both, q, said = ["f1"], ["f1", "f2"], np.zeros(2), []
    for k in range(4):
        stamp = START + 10 * k * MS
        gate.read(driver, stamp, np.array([0.02]), stamp, q, count=50 + k)
        later = stamp + MS
        status = gate.read(both, later, np.zeros(2), later, q, count=9 + k)
        said.append(contradicts(status))
    assert said == [False, True, True, True]
