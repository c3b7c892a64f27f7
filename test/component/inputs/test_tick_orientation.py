"""World axes with a floating base: the orientation from messages, and what is wrong with it."""

from __future__ import annotations

import math

import numpy as np
import pytest
import robots
from tick_support import DEGRADED, INVALID, OK, START, Rig, said

from delassus import Contact, DelassusSolver, Problem, Robot, Transform
from delassus.drawing.skeleton import Skeleton
from delassus.errors import ProblemError
from delassus_ros.inputs.findings import Reason
from delassus_ros.inputs.orientation import OrientationInput

FEET = ("LF", "RF", "LH", "RH")
MOUNTED = (0.1, -0.4, 2.0)
TURNED = Transform.from_xyz_rpy((0.0, 0.0, 0.0), (0.3, -0.2, 1.1))
IMU = (
    '<link name="imu"/><joint name="imu_mount" type="fixed"><parent link="base"/>'
    '<child link="imu"/><origin xyz="0.1 0 0" rpy="{} {} {}"/></joint></robot>'
).format(*MOUNTED)


@pytest.fixture(name="solver", scope="module")
def make_solver() -> DelassusSolver:
    text = robots.unlimited().replace("</robot>", IMU)
    contacts = [Contact(foot, f"{foot}_FOOT") for foot in FEET]
    problem = Problem(Robot.from_urdf(text), contacts, axes="world")
    return DelassusSolver(problem)


@pytest.fixture(name="rig")
def make_rig(solver) -> Rig:
    source = OrientationInput(solver.problem.robot, world="odom")
    rig = Rig(solver, orientation=source)
    rig.touch(*FEET)
    return rig


def quaternion(rotation: np.ndarray) -> list[float]:
    return Transform(rotation, np.zeros(3)).quaternion().tolist()


def test_rows_are_along_the_axes_of_the_world(rig) -> None:
    found = []
    for orientation in ([0, 0, 0, 1], TURNED.quaternion().tolist()):
        rig.turn(orientation)
        message = rig.send()
        assert said(message) == (OK, Reason.NONE)
        assert message.header.frame_id == "odom"
        found.append(np.reshape(message.matrix, (12, 12)))
    R = np.kron(np.eye(4), TURNED.rotation)
    np.testing.assert_allclose(found[1], R @ found[0] @ R.T, atol=1e-12)


def yawed(angle: float) -> list[float]:
    return [0.0, 0.0, math.sin(0.5 * angle), math.cos(0.5 * angle)]


def test_between_its_messages_the_base_turns_on(rig) -> None:
    """Matrices are right for the stamp of the joints, not for that of the orientation."""
    rig.turn(yawed(0.4), yaw_rate=3.0)
    for number in range(1, 4):
        rig.wait(30)
        rig.orientation = yawed(0.4 + number * 0.03 * 3.0)
        assert said(rig.send()) == (OK, Reason.NONE)


def test_an_inertial_sensor_tells_rates_unless_it_says_that_it_does_not(rig) -> None:
    mounting = Transform.from_xyz_rpy((0, 0, 0), MOUNTED)
    axis = mounting.rotation @ [0, 0, 3.0]
    for unmeasured in (False, True):
        rig.imu(quaternion(mounting.rotation), yaw_rate=3.0, unmeasured=unmeasured)
        angle = 0.0 if unmeasured else 0.02 * 3.0
        rig.orientation = [*(np.sin(0.5 * angle) * axis / 3.0), np.cos(0.5 * angle)]
        rig.wait(20)
        doubtful = DEGRADED, Reason.ORIENTATION_STALE
        assert said(rig.send()) == (doubtful if unmeasured else (OK, Reason.NONE))
    assert "does not tell how the base turns" in rig.tick.last.text


def test_an_inertial_sensor_is_turned_into_the_base(rig) -> None:
    mounting = Transform.from_xyz_rpy((0, 0, 0), MOUNTED)
    rig.imu(quaternion(TURNED.rotation @ mounting.rotation))
    rig.orientation = TURNED.quaternion().tolist()
    assert said(rig.send()) == (OK, Reason.NONE)


@pytest.mark.parametrize("turns", [("LF_HAA",), ("LF_HAA", "LF_HFE", "LF_KFE")])
def test_a_sensor_on_a_link_that_moves_is_carried_to_the_base(solver, turns) -> None:
    """Its own angular velocity takes the foot to the joint state, exactly so for one hinge."""
    robot, skeleton = solver.problem.robot, Skeleton(solver.problem.robot)
    speeds = {name: 1.5 for name in turns}

    def truth(stamp: int) -> dict[str, float]:
        return {name: 0.2 + speeds.get(name, 0.0) * 1e-9 * (stamp - START)
                for name in robot.joint_names}  # fmt: skip

    rig = Rig(solver, truth, orientation=OrientationInput(robot, "LF_FOOT", "odom"))
    rig.touch(*FEET)
    poses = skeleton.poses(robot.q(truth(START)))
    foot = skeleton.frame(poses, "LF_FOOT")[:3, :3]
    rates = np.zeros(3)
    for name in turns:
        body = robot.joint_names.index(name) + 1
        rates += speeds[name] * foot.T @ poses[body][:3, :3] @ robot.joints[body].axis
    rig.imu(quaternion(TURNED.rotation @ foot), rates=rates)
    rig.orientation = TURNED.quaternion().tolist()
    assert said(rig.send()) == (OK, Reason.NONE)
    if len(turns) == 1:
        rig.wait(20)
        assert said(rig.send()) == (OK, Reason.NONE)


def test_stale_orientation_rejected(rig) -> None:
    rig.turn(TURNED.quaternion())
    rig.wait(100)
    assert said(rig.send()) == (OK, Reason.NONE)
    assert rig.tick.healths()["odometry"].age == pytest.approx(0.1)
    rig.wait(1)
    assert said(rig.send()) == (INVALID, Reason.ORIENTATION_STALE)
    rig.turn(TURNED.quaternion(), at=-150)
    assert said(rig.send(at=1)) == (INVALID, Reason.ORIENTATION_STALE)
    assert "0.15 s old, at most 0.1 s are allowed (orientation.timeout)" in rig.tick.last.text


@pytest.mark.parametrize("apart", [101, 500])
def test_turning_base_extrapolated_for_a_tenth_of_a_second_at_most(solver, apart) -> None:
    """With a long timeout, an old orientation is used with care: nobody knows how it went on."""
    source = OrientationInput(solver.problem.robot, world="odom", timeout=math.inf)
    rig = Rig(solver, orientation=source)
    rig.touch(*FEET)
    rig.turn(yawed(0.4), yaw_rate=2.0)
    rig.wait(100)
    rig.orientation = yawed(0.4 + 0.1 * 2.0)
    assert said(rig.send()) == (OK, Reason.NONE)
    rig.wait(apart - 100)
    assert said(rig.send()) == (DEGRADED, Reason.ORIENTATION_STALE)
    words = f"its orientation is {1e-3 * apart:g} s away from the joint positions; it is carried"
    assert words in rig.tick.last.text
    assert words in rig.tick.healths()["odometry"].warning
    assert any(
        kind == "the orientation of the base ORIENTATION_STALE" and words in text
        for kind, text in rig.warnings
    )
    # What does not turn needs no carrying on.
    rig.turn(TURNED.quaternion())
    rig.wait(apart)
    rig.touch(*FEET)
    assert said(rig.send()) == (OK, Reason.NONE)


def test_turning_base_extrapolated_back_for_a_tenth_of_a_second_at_most(solver) -> None:
    """The joint positions are older than the orientation."""
    rig = Rig(solver, orientation=OrientationInput(solver.problem.robot, world="odom"))
    rig.touch(*FEET)
    rig.turn(yawed(0.4), yaw_rate=2.0)
    rig.orientation = yawed(0.4 - 0.1 * 2.0)
    assert said(rig.send(at=-200)) == (DEGRADED, Reason.ORIENTATION_STALE)
    words = "its orientation is 0.2 s away from the joint positions; it is carried"
    assert words in rig.tick.last.text


def test_a_refused_one_is_none_to_jump_back_from(rig) -> None:
    rig.turn(TURNED.quaternion(), at=-10)
    rig.turn([0, 0, 0, 1], frame="map")
    rig.turn(TURNED.quaternion(), at=-5)
    assert said(rig.send()) == (OK, Reason.NONE)
    rig.tick.clock_jumped()
    rig.turn(TURNED.quaternion(), at=-50)
    assert said(rig.send())[1] & Reason.STAMP_JUMPED_BACK == 0


def test_orientation_kept_by_another_algorithm_and_dropped_at_a_clock_jump(rig, solver) -> None:
    rig.turn(TURNED.quaternion())
    rig.tick.set_solver(DelassusSolver(solver.problem, "dense"))
    assert said(rig.send()) == (OK, Reason.NONE)
    rig.tick.clock_jumped()
    rig.touch(*FEET)
    assert said(rig.send(at=1)) == (INVALID, Reason.ORIENTATION_MISSING)


def test_reasons_of_both_inputs_add_up(rig) -> None:
    message = rig.send(LF_HAA=math.nan)
    assert said(message) == (INVALID, Reason.ORIENTATION_MISSING | Reason.JOINT_NOT_FINITE)
    assert "'LF_HAA' is nan" in rig.tick.last.text


def test_orientation_required_for_world_axes(solver) -> None:
    with pytest.raises(ProblemError, match="needs an orientation"):
        Rig(solver)
