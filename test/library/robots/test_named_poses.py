"""Poses that descriptions name: keyframes of MJCF and group states of SRDF."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
import robots

from delassus import DelassusWarning, Robot, RobotError
from delassus.model.reading.poses import group_states, srdf_beside

MJCF = """
<mujoco model="toy"><compiler angle="radian"/>
  <worldbody><body name="trunk"><freejoint/><geom size="0.1"/>
  <body name="thigh"><joint name="hip" axis="0 1 0" range="-1 1" limited="true"/>
    <geom size="0.1"/>
    <body name="shank"><joint name="knee" type="slide"/><geom size="0.1"/></body></body>
  <body name="head" pos="0 0 1"><joint name="neck" type="ball"/><geom size="0.1"/></body>
  </body></worldbody>EQUALITY
  <keyframe><key name="home" qpos="9 8 7 1 0 0 0 0.25 -0.5 1 0 0 0"/>
    <key qpos="0 0 0 0 1 0 0 0.75 0.125 1 1 0 0"/></keyframe></mujoco>"""
"""A floating robot with a limb and a ball joint, a named keyframe and one without a name."""


def state(name: str, joints: str, group: str = "arm") -> str:
    return f'<group_state name="{name}" group="{group}">{joints}</group_state>'


def joint(name: str, value: str) -> str:
    return f'<joint name="{name}" value="{value}"/>'


def srdf(*states: str) -> str:
    return f'<robot name="arm">{"".join(states)}</robot>'


def arm(*states: str, **options) -> Robot:
    return Robot.from_urdf(robots.shared("ur5"), "fixed", srdf=srdf(*states), **options)


def test_keyframes_are_poses_without_the_pose_of_the_base() -> None:
    robot = Robot.from_mujoco(MJCF.replace("EQUALITY", ""))
    assert list(robot.named_poses) == ["home", "key 1"]
    assert robot.joint_names == ("hip", "knee", "neck_X", "neck_Y", "neck_Z")
    assert robot.named("home").tolist() == [0.25, -0.5, 0, 0, 0]
    turned = robot.named("key 1")
    assert turned == pytest.approx([0.75, 0.125, np.pi / 2, 0, 0])
    with pytest.raises(RobotError, match="unknown pose 'hme'; did you mean 'home'."):
        robot.named("hme")


def test_keyframe_that_contradicts_a_held_joint_is_left_out() -> None:
    held = '<equality><joint joint1="hip" polycoef="0.25 0 0 0 0"/></equality>'
    with pytest.warns(DelassusWarning, match=r"'key 1' is left out: .*'hip'.* is 0\.75"):
        robot = Robot.from_mujoco(MJCF.replace("EQUALITY", held))
    assert list(robot.named_poses) == ["home"] and robot.named("home")[0] == -0.5


def test_states_of_several_groups_with_one_name_are_one_pose() -> None:
    robot = arm(
        state("home", joint("elbow_joint", "1.5")),
        state("up", joint("elbow_joint", "0.5")),
        state("home", joint("wrist_1_joint", "-0.25"), "wrist"),
    )
    assert list(robot.named_poses) == ["home", "up"]
    names = robot.joint_names
    expected = np.zeros(robot.nq)
    expected[[names.index("elbow_joint"), names.index("wrist_1_joint")]] = 1.5, -0.25
    assert np.array_equal(robot.named("home"), expected)


def test_joints_that_the_robot_lacks_are_left_out_and_so_are_poses_without_others() -> None:
    base = joint("root_joint", "0 0 1 0 0 0 1")
    shared = state("home", base + joint("elbow_joint", "1.5")), state("gripper", base)
    robot = arm(*shared)
    assert dict(robot.named_poses) == {"home": {"elbow_joint": 1.5}}
    with pytest.warns(DelassusWarning, match="poses 'home', 'gripper' of the SRDF: without a jo"):
        assert not arm(*shared, lock={"elbow_joint": 0.0}).named_poses


def test_poses_are_kept_by_copies_and_change_no_bytes() -> None:
    robot = arm(state("home", joint("elbow_joint", "1.5") + joint("wrist_3_joint", "0.5")))
    plain = Robot.from_urdf(robots.shared("ur5"), "fixed")
    assert robot.to_bytes() == plain.to_bytes() and not plain.named_poses
    pickled = pickle.loads(pickle.dumps(robot))
    assert pickled.named_poses == robot.named_poses
    assert robot.lock({"elbow_joint": 0.0}).named("home")[-1] == 0.5
    assert robot.subtree("wrist_1_joint").named("home").tolist() == [0, 0, 0.5]


def test_joints_that_follow_a_named_one_follow() -> None:
    state_file = robots.example("panda_description/srdf/panda.srdf")
    urdf = robots.example("panda_description/urdf/panda.urdf")
    robot = Robot.from_urdf(urdf, "fixed", srdf=state_file)
    q = dict(zip(robot.joint_names, robot.named("default"), strict=True))
    assert q["panda_finger_joint1"] == q["panda_finger_joint2"] == 0.001


def test_position_far_outside_limits_gives_a_warning() -> None:
    robot = arm(state("home", joint("elbow_joint", "90")))
    with pytest.warns(DelassusWarning, match="'elbow_joint' is 90 rad") as caught:
        robot.named("home")
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (srdf(state("home", joint("elbow_joint", "1 2"))), "pose 'home': .*'elbow_joint' is "),
        (srdf(state("home", joint("elbow_joint", ""))), "pose 'home': .*'elbow_joint' is "),
        (srdf(state("home", joint("elbow_joint", "2_0"))), "SRDF: '2_0' is not a number"),
        (srdf(state("home", joint("elbow_joint", "nan"))), "'elbow_joint' of group state 'home'"),
        (srdf(state("", joint("elbow_joint", "1"))), "SRDF: a <group_state> has no name"),
        ("<sdf/>", "SRDF: the root is <sdf>; expected <robot>"),
        ("<robot>", "SRDF: broken XML at line 1"),
        ("<!DOCTYPE robot [<!ENTITY a 'b'>]><robot/>", "SRDF: the XML declares a document type"),
        ("missing.srdf", "SRDF file 'missing.srdf' cannot be read: No such file"),
        ("/dev/zero", "SRDF file '/dev/zero' cannot be read: Not a regular file"),
        ("a\0b", "SRDF file .* embedded null byte"),
    ],
)
def test_faulty_srdf_is_refused(text: str, words: str) -> None:
    with pytest.raises(RobotError, match=words):
        Robot.from_urdf(robots.shared("ur5"), "fixed", srdf=text)


@pytest.mark.parametrize(
    ("urdf", "files", "expected"),
    [
        ("urdf/arm.urdf", ["urdf/arm.srdf", "urdf/two.srdf"], "urdf/arm.srdf"),
        ("urdf/arm.urdf.xacro", ["urdf/arm.srdf", "urdf/two.srdf"], "urdf/arm.srdf"),
        ("urdf/arm.urdf", ["urdf/any.srdf", "srdf/arm.srdf"], "urdf/any.srdf"),
        ("urdf/arm.urdf", ["urdf/one.srdf", "urdf/two.srdf", "srdf/any.srdf"], "srdf/any.srdf"),
        ("robots/arm.urdf", ["srdf/arm.srdf", "srdf/two.srdf"], "srdf/arm.srdf"),
        ("robots/arm.urdf", ["srdf/one.srdf", "srdf/two.srdf"], None),
        ("robots/arm.urdf", [], None),
    ],
)
def test_srdf_beside_a_urdf_has_its_stem_or_is_the_only_one(
    tmp_path: Path, urdf: str, files: list[str], expected: str | None
) -> None:
    for file in files:
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).touch()
    found = srdf_beside(tmp_path / urdf)
    assert found == (None if expected is None else tmp_path / expected)


@pytest.mark.parametrize(
    ("urdf", "srdf_file", "count"),
    [
        ("talos_data/robots/talos_reduced.urdf", "talos_data/srdf/talos.srdf", 1),
        ("solo_description/robots/solo12.urdf", "solo_description/srdf/solo.srdf", 2),
        ("go1_description/urdf/go1.urdf", "go1_description/srdf/go1.srdf", 1),
        ("z1_description/urdf/z1.urdf", "z1_description/srdf/z1.srdf", 2),
    ],
)
def test_poses_are_pinocchios_reference_configurations(urdf, srdf_file, count) -> None:
    file, states = robots.example(urdf), robots.example(srdf_file)
    floating = () if "z1" in urdf else (pin.JointModelFreeFlyer(),)
    model = pin.buildModelFromUrdf(str(file), *floating)
    pin.loadReferenceConfigurations(model, str(states), False)
    robot = Robot.from_urdf(file, "floating" if floating else "fixed", srdf=states)
    assert len(robot.named_poses) == count and srdf_beside(file) == states
    for name in robot.named_poses:
        expected, _ = robot.q_from_pinocchio(model, model.referenceConfigurations[name])
        assert np.array_equal(robot.named(name), expected)
        # The robot of the model has all joints in its pose; those of the SRDF are the same.
        other = Robot.from_pinocchio(model)
        positions = dict(zip(robot.joint_names, expected.tolist(), strict=True))
        assert np.array_equal(other.named(name), other.q(positions))


def test_every_published_srdf_is_read() -> None:
    folder = robots.example("panda_description/srdf/panda.srdf").parents[2]
    files = sorted(folder.glob("**/*.srdf"))
    assert len(files) >= 37
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = {file.stem: group_states(file) for file in files}
    assert len(found["talos"]["half_sitting"]) == 31
    assert list(found["solo"]) == ["standing", "straight_standing"]
