"""Joint states in any order, with extra joints, and the ones that are refused."""

from __future__ import annotations

from array import array

import numpy as np
import pytest
import robots

from delassus_ros import Robot
from delassus_ros.errors import RobotError
from delassus_ros.node.joint_input import JointInput
from delassus_ros.node.reasons import Reason


@pytest.fixture(name="robot", scope="module")
def make_robot() -> Robot:
    return Robot.from_urdf(robots.quadruped())


@pytest.fixture(name="joints")
def make_joints(robot: Robot) -> JointInput:
    return JointInput(robot)


def positions(count: int, seed: int = 1) -> array:
    """Random positions, stored as in a message."""
    return array("d", np.random.default_rng(seed).uniform(-1, 1, count).tolist())


@pytest.mark.parametrize("seed", range(5))
def test_any_order_with_extra_joints_anywhere(robot, joints, seed) -> None:
    rng = np.random.default_rng(seed)
    names = [*robot.joint_names, "gripper", "wheel"]
    names = [names[i] for i in rng.permutation(len(names))]
    q = np.empty(robot.nq)
    for repetition in range(3):
        values = positions(len(names), seed=repetition)
        assert joints.read(names, values, q) is None
        expected = [values[names.index(joint)] for joint in robot.joint_names]
        assert q.tolist() == expected


def test_order_may_change_from_one_to_the_next(robot, joints) -> None:
    forward, values = list(robot.joint_names), positions(robot.nq)
    q = np.empty(robot.nq)
    assert joints.read(forward, values, q) is None
    assert q.tolist() == values.tolist()
    assert joints.read(forward[::-1], values, q) is None
    assert q.tolist() == values.tolist()[::-1]


def test_missing_joint_is_named_and_recovers(robot, joints) -> None:
    names = [name for name in robot.joint_names if name != "RF_KFE"]
    q = np.empty(robot.nq)
    for _ in range(2):
        complaint = joints.read(names, positions(len(names)), q)
        assert complaint.reason is Reason.JOINT_MISSING
        assert "lacks joint 'RF_KFE'" in complaint.text
        assert "'LF_HAA'" in complaint.text
    assert joints.read(list(robot.joint_names), positions(robot.nq), q) is None


def test_many_missing_joints_make_a_short_text(robot, joints) -> None:
    complaint = joints.read(["a"], positions(1), np.empty(robot.nq))
    assert "lacks joints 'LF_HAA', 'LF_HFE', 'LF_KFE', 'RF_HAA', 'RF_HFE' and 7 more" in (
        complaint.text
    )
    assert "it has 'a'" in complaint.text


def test_no_joints_at_all(robot, joints) -> None:
    complaint = joints.read([], positions(0), np.empty(robot.nq))
    assert complaint.reason is Reason.JOINT_MISSING
    assert "it has none" in complaint.text


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_non_finite_position_is_named(robot, joints, value) -> None:
    names = ["extra", *robot.joint_names[::-1]]
    values = positions(len(names))
    values[names.index("LH_HFE")] = value
    q = np.empty(robot.nq)
    complaint = joints.read(names, values, q)
    assert complaint.reason is Reason.JOINT_NOT_FINITE
    assert f"'LH_HFE' is {value}" in complaint.text
    values[names.index("LH_HFE")] = 0.5
    assert joints.read(names, values, q) is None


def test_non_finite_positions_of_extra_joints_do_not_matter(robot, joints) -> None:
    names = [*robot.joint_names, "extra"]
    values = positions(len(names))
    values[-1] = np.nan
    assert joints.read(names, values, np.empty(robot.nq)) is None


def test_huge_positions_are_finite(robot, joints) -> None:
    values = array("d", [1e200] * robot.nq)
    assert joints.read(list(robot.joint_names), values, np.empty(robot.nq)) is None


@pytest.mark.parametrize(("count", "words"), [(5, "'RF_KFE'"), (0, "'LF_HAA'"), (14, "12 names")])
def test_size_mismatch(robot, joints, count, words) -> None:
    complaint = joints.read(list(robot.joint_names), positions(count), np.empty(robot.nq))
    assert complaint.reason is Reason.JOINT_SIZE_MISMATCH
    assert f"12 names but {count} positions" in complaint.text
    assert words in complaint.text


def test_duplicate_joint_is_named(robot, joints) -> None:
    names = [*robot.joint_names, "LF_HAA"]
    complaint = joints.read(names, positions(len(names)), np.empty(robot.nq))
    assert complaint.reason is Reason.JOINT_DUPLICATED
    assert "joint 'LF_HAA' more than once" in complaint.text


def test_duplicate_extra_joints_do_not_matter(robot, joints) -> None:
    names = [*robot.joint_names, "extra", "extra"]
    assert joints.read(names, positions(len(names)), np.empty(robot.nq)) is None


@pytest.mark.parametrize(("kind", "count"), [("planar", 3), ("floating", 7)])
def test_joint_with_several_positions_is_refused_by_name(kind, count) -> None:
    inertial = (
        '<inertial><mass value="1"/>'
        '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    )
    urdf = (
        f'<robot name="r"><link name="a">{inertial}</link><link name="b">{inertial}</link>'
        f'<joint name="slide" type="{kind}"><parent link="a"/><child link="b"/></joint></robot>'
    )
    with pytest.raises(RobotError, match=f"joint 'slide' is {kind}: it has {count} positions"):
        JointInput(Robot.from_urdf(urdf, base="fixed"))
