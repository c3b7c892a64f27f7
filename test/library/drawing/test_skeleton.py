"""Where bodies, frames and bones are: against Pinocchio and the tests' own kinematics."""

from __future__ import annotations

import numpy as np
import pytest
import robots
from oracles.textbook import body_poses as reference
from urdf_text import joint, link, robot_xml

from delassus import Robot
from delassus.drawing.skeleton import Skeleton, completed
from delassus.testing.random_trees import ALL, random_robot


def test_poses_of_every_kind_of_joint() -> None:
    for seed in range(6):
        robot = random_robot(np.random.default_rng(seed), ALL)
        q = np.random.default_rng(seed).normal(size=robot.nq)
        for k, each in enumerate(robot.joints):
            if each.kind.nq == 7:
                at = robot.q_offsets[k] + 3
                q[at : at + 4] /= np.linalg.norm(q[at : at + 4])
        poses = Skeleton(robot).poses(q)
        for found, expected in zip(poses, reference(robot, q), strict=True):
            np.testing.assert_allclose(found[:3, :3], expected.rotation, atol=1e-12)
            np.testing.assert_allclose(found[:3, 3], expected.translation, atol=1e-12)


def test_frames_of_a_humanoid_are_pinocchios() -> None:
    import pinocchio as pin
    model = pin.buildModelFromUrdf(str(robots.talos()))
    robot = Robot.from_urdf(robots.talos(), "floating")
    q = np.random.default_rng(1).uniform(-1, 1, robot.nq)
    fixed = Robot.from_urdf(robots.talos(), "fixed")
    data = model.createData()
    pin.framesForwardKinematics(model, data, fixed.q_to_pinocchio(model, q))
    skeleton = Skeleton(robot)
    poses = skeleton.poses(q)
    for name in ("left_sole_link", "right_sole_link", "base_link", "torso_2_link"):
        expected = data.oMf[model.getFrameId(name)]
        found = skeleton.frame(poses, name)
        np.testing.assert_allclose(found, expected.homogeneous, atol=1e-10)


def test_bones_join_up_to_the_ends_of_limbs() -> None:
    robot = Robot.from_urdf(robots.quadruped())
    skeleton = Skeleton(robot)
    poses = skeleton.poses(robot.neutral())
    lines = skeleton.bones(poses)
    assert len(lines) == 12 + 4
    foot = skeleton.frame(poses, "LF_FOOT")[:3, 3]
    assert any(np.allclose(end, foot) for _, end in lines)
    shank = robot.frames["LF_SHANK"].body
    ((_, end),) = skeleton.bones(poses, {shank})
    assert np.allclose(end, foot) and len(skeleton.bones(poses, {0, shank})) == 4 + 1


def test_joints_that_mimic_follow_and_others_are_named() -> None:
    mimic = '<axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="1" velocity="1"/>{}'
    text = robot_xml(
        *(link(name) for name in "abcd"),
        joint("first", "a", "b", "revolute", mimic.format("")),
        joint("second", "b", "c", "revolute",
              mimic.format('<mimic joint="first" multiplier="2" offset="0.1"/>')),
        joint("third", "c", "d", "revolute", mimic.format("")),
    )  # fmt: skip
    robot = Robot.from_urdf(text, "fixed")
    q, unknown = completed(robot, {"first": 0.3, "wheel_of_another": 1.0})
    assert q.tolist() == pytest.approx([0.3, 0.7, 0.0]) and unknown == ["third"]
    backwards, unknown = completed(robot, {"second": 0.7, "third": 0.2})
    assert backwards.tolist() == pytest.approx([0.3, 0.7, 0.2]) and unknown == []
