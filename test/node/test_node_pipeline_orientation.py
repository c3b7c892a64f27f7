"""World axes with a floating base: the orientation from messages, and what is wrong with it."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("delassus_msgs", reason="the message package delassus_msgs is not installed")
pytest.importorskip("nav_msgs", reason="the message package nav_msgs is not installed")

import robots  # noqa: E402
from nav_msgs.msg import Odometry  # noqa: E402
from pipeline_support import DEGRADED, INVALID, OK, START, Rig, said  # noqa: E402

from delassus_ros import Contact, DelassusSolver, Problem, Robot, Transform  # noqa: E402
from delassus_ros.drawing.skeleton import Skeleton  # noqa: E402
from delassus_ros.errors import ProblemError  # noqa: E402
from delassus_ros.node.inputs.orientation import OrientationInput  # noqa: E402
from delassus_ros.node.reasons import Reason  # noqa: E402

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
    assert "does not tell how the base turns" in rig.pipeline.last.text


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


def test_none_has_come(rig) -> None:
    assert said(rig.send()) == (INVALID, Reason.ORIENTATION_MISSING)
    assert "no orientation of the base has arrived yet" in rig.pipeline.last.text
    health = rig.pipeline.healths()["odometry"]
    assert health is not None and not health.received and health.timeout == 0.1
    assert not health.warning


def test_one_that_is_too_old(rig) -> None:
    rig.turn(TURNED.quaternion())
    rig.wait(100)
    assert said(rig.send()) == (OK, Reason.NONE)
    assert rig.pipeline.healths()["odometry"].age == pytest.approx(0.1)
    rig.wait(1)
    assert said(rig.send()) == (INVALID, Reason.ORIENTATION_STALE)
    rig.turn(TURNED.quaternion(), at=-150)
    assert said(rig.send(at=1)) == (INVALID, Reason.ORIENTATION_STALE)
    assert "0.15 s old, at most 0.1 s are allowed (orientation.timeout)" in rig.pipeline.last.text


@pytest.mark.parametrize(
    ("stamp", "reason", "words"),
    [
        ((0, 0), Reason.STAMP_INVALID, "the orientation of the base came without a valid stamp"),
        ((5, 2_000_000_000), Reason.STAMP_INVALID, "came without a valid stamp"),
        ((2_000_000_000, 0), Reason.STAMP_IN_FUTURE, "s ahead of this node's clock"),
    ],
)
def test_one_whose_age_cannot_be_told(rig, stamp, reason, words) -> None:
    """It is used, which is said, and not of the joint states."""
    message = Odometry(child_frame_id="base")
    message.header.frame_id = "odom"
    message.header.stamp.sec, message.header.stamp.nanosec = stamp
    message.pose.pose.orientation.w = 1.0
    rig.pipeline.read("odometry", message)
    rig.orientation = [0.0, 0.0, 0.0, 1.0]
    assert said(rig.send()) == (DEGRADED, reason)
    assert words in rig.pipeline.last.text
    assert words in rig.pipeline.healths()["odometry"].warning
    assert not rig.pipeline.healths()["joint_states"].warning
    assert any(kind == "stamp of the orientation" and words in text for kind, text in rig.warnings)
    # Both it and the joint states, each in its own words.
    both = said(rig.send(stamp=0))
    assert both == (DEGRADED, reason | Reason.STAMP_INVALID)
    assert "joint states have no valid stamp" in rig.pipeline.healths()["joint_states"].warning
    rig.turn([0, 0, 0, 1])
    if reason is Reason.STAMP_IN_FUTURE:
        assert said(rig.send(at=1)) == (DEGRADED, Reason.STAMP_JUMPED_BACK)
        rig.turn([0, 0, 0, 1])
    assert said(rig.send(at=1)) == (OK, Reason.NONE)
    rig.turn([0, 0, 0, 1], at=5)
    assert said(rig.send(at=2)) == (OK, Reason.NONE)


@pytest.mark.parametrize("apart", [101, 500])
def test_what_turns_is_not_carried_on_further_than_rates_last(solver, apart) -> None:
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
    assert words in rig.pipeline.last.text
    assert words in rig.pipeline.healths()["odometry"].warning
    assert any(kind == "stamp of the orientation" and words in text for kind, text in rig.warnings)
    # What does not turn needs no carrying on.
    rig.turn(TURNED.quaternion())
    rig.wait(apart)
    rig.touch(*FEET)
    assert said(rig.send()) == (OK, Reason.NONE)


def test_what_turns_is_not_carried_back_further_than_rates_last(solver) -> None:
    """The joint positions are older than the orientation."""
    rig = Rig(solver, orientation=OrientationInput(solver.problem.robot, world="odom"))
    rig.touch(*FEET)
    rig.turn(yawed(0.4), yaw_rate=2.0)
    rig.orientation = yawed(0.4 - 0.1 * 2.0)
    assert said(rig.send(at=-200)) == (DEGRADED, Reason.ORIENTATION_STALE)
    words = "its orientation is 0.2 s away from the joint positions; it is carried"
    assert words in rig.pipeline.last.text


def test_steps_of_simulated_time_are_no_skew(rig) -> None:
    rig.pipeline.set_clock_step(25_000_000)
    rig.turn(TURNED.quaternion(), at=30)
    assert said(rig.send()) == (OK, Reason.NONE)
    rig.turn(TURNED.quaternion(), at=31)
    assert said(rig.send()) == (DEGRADED, Reason.STAMP_IN_FUTURE)
    words = "orientation of the base are 0.031 s ahead of /clock, which goes on by"
    assert words in rig.pipeline.last.text
    assert words in rig.pipeline.healths()["odometry"].warning


def test_stamps_that_jump_back(rig) -> None:
    """Two nodes publish it: the older one is used with care, which is said."""
    rig.turn(TURNED.quaternion())
    rig.turn(TURNED.quaternion())
    assert said(rig.send()) == (OK, Reason.NONE)
    rig.turn([0, 0, 0, 1], at=-50)
    words = "orientation of the base jumped back by 0.05 s: a simulation was reset"
    # Also where another one comes before there is a matrix.
    assert any(kind == "stamp of the orientation" and words in text for kind, text in rig.warnings)
    assert said(rig.send()) == (DEGRADED, Reason.STAMP_JUMPED_BACK)
    assert words in rig.pipeline.last.text
    assert words in rig.pipeline.healths()["odometry"].warning
    rig.turn(TURNED.quaternion(), at=-40)
    assert said(rig.send()) == (OK, Reason.NONE)


def test_a_refused_one_is_none_to_jump_back_from(rig) -> None:
    rig.turn(TURNED.quaternion(), at=-10)
    rig.turn([0, 0, 0, 1], frame="map")
    rig.turn(TURNED.quaternion(), at=-5)
    assert said(rig.send()) == (OK, Reason.NONE)
    rig.pipeline.clock_jumped()
    rig.turn(TURNED.quaternion(), at=-50)
    assert said(rig.send())[1] & Reason.STAMP_JUMPED_BACK == 0


def test_it_stays_when_the_algorithm_changes_and_goes_when_the_clock_jumps(rig, solver) -> None:
    rig.turn(TURNED.quaternion())
    rig.pipeline.set_solver(DelassusSolver(solver.problem, "dense"))
    assert said(rig.send()) == (OK, Reason.NONE)
    rig.pipeline.clock_jumped()
    rig.touch(*FEET)
    assert said(rig.send(at=1)) == (INVALID, Reason.ORIENTATION_MISSING)


def test_reasons_of_both_inputs_add_up(rig) -> None:
    message = rig.send(LF_HAA=math.nan)
    assert said(message) == (INVALID, Reason.ORIENTATION_MISSING | Reason.JOINT_NOT_FINITE)
    assert "'LF_HAA' is nan" in rig.pipeline.last.text


def test_it_is_needed(solver) -> None:
    with pytest.raises(ProblemError, match="needs an orientation"):
        Rig(solver)
