"""Default postures: inside the limits, with closed loops, below the hips."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import robots
from linkages import four_bar

from delassus import Closure, Contact, InputError, Problem, Robot
from delassus.algorithms.dense import definition
from delassus.drawing.skeleton import Skeleton
from delassus.robots.built_in.humanoid import humanoid_urdf
from delassus.robots.limbs import Limbs
from delassus.robots.pose import (
    computed_posture,
    default_posture,
    first_pose_name,
    named_posture,
    outside_limits,
    pose_of,
)
from delassus.robots.proposals import proposals
from delassus.robots.shapes import LinkShapes


def test_the_pose_is_inside_the_limits() -> None:
    robot = Robot.from_urdf(robots.panda(), "fixed")
    pose = pose_of(robot)
    assert all(joint.lower <= pose[joint.name] <= joint.upper for joint in robot.joints)
    assert pose["panda_joint1"] == 0.0 and pose["panda_joint4"] == pytest.approx(-1.5708)


def test_pose_ends_and_bones_are_the_same_however_loops_are_closed() -> None:
    made = four_bar()
    # A coupler that must bend turns the crank back, unless the joints are tied by a loop.
    joints = [
        replace(each, lower=0.5, upper=1.5) if each.name == "coupler" else each
        for each in made.joints
    ]
    robot = made.replaced(joints=joints)
    rows = robot.with_loops_as("rows")
    assert pose_of(rows) == pose_of(robot) == {"crank": 0.0, "coupler": 1.0, "rocker": 0.0}
    assert Limbs(rows).ends == Limbs(robot).ends
    assert proposals(rows, LinkShapes({})) == proposals(robot, LinkShapes({}))
    lines = [
        np.array(each.bones(each.poses(robot.neutral()))) for each in map(Skeleton, (robot, rows))
    ]
    assert np.array_equal(*lines)


@pytest.mark.parametrize(
    ("name", "feet"),
    [
        ("go1_description/urdf/go1.urdf", ("FR_foot", "FL_foot", "RR_foot", "RL_foot")),
        ("a1_description/urdf/a1.urdf", ("FR_foot", "FL_foot", "RR_foot", "RL_foot")),
    ],
)
def test_a_quadruped_whose_knees_must_bend_stands_below_its_hips(
    name: str, feet: tuple[str, ...]
) -> None:
    robot = Robot.from_urdf(robots.example(name))
    pose = pose_of(robot)
    assert all(joint.lower <= pose[joint.name] <= joint.upper for joint in robot.joints[1:])
    skeleton = Skeleton(robot)
    poses = skeleton.poses(robot.q(pose))
    names = [joint.name for joint in robot.joints]
    for foot in feet:
        hip = poses[names.index(f"{foot[:2]}_thigh_joint"), :3, 3]
        below = hip - skeleton.frame(poses, foot)[:3, 3]
        # Thigh and shank are about equally long.
        assert abs(below[0]) < 0.05 and below[2] > 0.2


def test_default_posture_is_inside_the_limits_and_says_how_it_was_chosen() -> None:
    robot = Robot.from_urdf(robots.panda(), "fixed")
    posture = default_posture(robot)
    assert np.array_equal(posture.q, robot.q(pose_of(robot))) and not posture.outside
    assert posture.why == "joints at 0, 1 joint in the middle of limits that exclude 0"
    (first, *_) = outside_limits(robot, robot.neutral())
    assert first.startswith("the position of joint 'panda_joint4' is 0 rad, and its limits are -3")
    quadruped = default_posture(Robot.from_urdf(robots.quadruped()))
    assert quadruped.why == (
        "joints at 0, 4 joints in the middle of limits that exclude 0, 4 joints turned back by "
        "half of the next joint"
    )
    arm = default_posture(Robot.from_urdf(robots.shared("ur5"), "fixed"))
    assert arm.why == "joints at 0" and not arm.q.any()


UR5 = "ur_description/urdf/ur5_robot.urdf"
SINGULAR = {
    # A straight arm and a wrist whose axes are parallel: all joints bend.
    "arm": (UR5, "fixed", [Contact("tool", "tool0", "surface")], 6, [5, 6]),
    # Straight legs: knees bend, and hips turn back.
    "quadruped": (
        "quadruped_description/urdf/quadruped.urdf", "floating",
        [Contact(leg, f"{leg}_contact") for leg in ("FL", "FR", "BL", "BR")], 8, [9, 10],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SINGULAR)
def test_default_posture_bends_joints_where_the_matrix_would_be_singular(case: str) -> None:
    file, base, contacts, count, ranks = SINGULAR[case]
    robot = Robot.from_urdf(robots.example(file), base)
    problem, straight = Problem(robot, contacts), default_posture(robot)
    posture = default_posture(robot, None, contacts)
    assert not np.linalg.norm(straight.q[-robot.nv + 6 :])
    assert posture.why == (
        f"joints at 0, but {count} joints are bent, as the matrix is singular there"
    )
    assert not outside_limits(robot, posture.q)
    found = [int(np.linalg.matrix_rank(definition(problem, {"q": x}), hermitian=True))
             for x in (straight.q, posture.q)]  # fmt: skip
    assert found == ranks
    assert computed_posture(robot).q.tolist() == straight.q.tolist()


def test_bent_legs_of_a_humanoid_keep_its_soles_level_and_bend_alike() -> None:
    robot = Robot.from_urdf(humanoid_urdf())
    ends = [f"{side}_{end}" for side in ("left", "right") for end in ("palm", "sole")]
    posture = default_posture(robot, None, [Contact(end, end, "surface") for end in ends])
    pose = dict(zip([joint.name for joint in robot.joints], robot.q_offsets, strict=True))
    for side in ("left", "right"):
        legs = [posture.q[pose[f"{side}_{name}_joint"]] for name in ("thigh", "shank", "ankle")]
        assert legs == [-0.3, 0.6, -0.3]
    assert np.count_nonzero(posture.q[7:]) == np.count_nonzero(posture.q) == 6


@pytest.mark.parametrize(
    ("file", "contacts"),
    [
        # Rank 1 of 3 rows in any posture.
        ("double_pendulum_description/urdf/double_pendulum.urdf", [Contact("tip", "link2")]),
        # Full rank with joints at 0.
        (UR5, [Contact("elbow", "forearm_link", [[0.0, 0.0, 1.0, 0.0, 0.0, 0.0]])]),
        (UR5, ()),
    ],
)
def test_joints_do_not_bend_where_that_does_not_raise_the_rank(
    file: str, contacts: Sequence[Contact]
) -> None:
    robot = Robot.from_urdf(robots.example(file), "fixed")
    joints = [replace(joint, lower=-2.0, upper=2.0) for joint in robot.joints]
    posture = default_posture(robot.replaced(joints=joints), None, contacts)
    assert posture.why == "joints at 0" and not posture.q.any()


def test_default_posture_of_a_mimic_gripper_is_inside_limits_that_exclude_0() -> None:
    robot = Robot.from_urdf(robots.example("panda_description/urdf/panda.urdf"), "fixed")
    posture = default_posture(robot, Closure(robot))
    assert not posture.outside and posture.why == (
        "independent joints at 0, 1 joint in the middle of limits that exclude 0; loops closed"
    )
    knee = robot.q_offsets[robot.joint_names.index("panda_joint4")]
    assert posture.q[knee] == pytest.approx(-1.5708)


def test_joint_outside_its_limits_in_the_default_posture_is_named() -> None:
    made = four_bar(rocker_limits=(-0.2, 0.2))
    closure = Closure(made)
    posture = default_posture(made, closure)
    assert np.array_equal(posture.q, closure.reference)
    assert posture.why.startswith("the reference of the loops, as they do not close elsewhere: ")
    (words,) = posture.outside
    assert words == (
        "the position of joint 'rocker' is 1.68367 rad, and its limits are -0.2 and 0.2"
    )  # fmt: skip


def test_default_posture_follows_a_stated_reference() -> None:
    robot = four_bar()
    closure = Closure(robot, {"crank": 0.7})
    posture = default_posture(robot, closure)
    assert posture.q[0] == 0.7 and "near their reference" in posture.why
    assert np.abs(posture.q - closure.reference).max() < 1e-9


def with_states(robot: Robot, **poses: dict[str, float]) -> Robot:
    return robot.replaced(named_poses=poses)


@pytest.mark.parametrize(
    ("names", "first"),
    [
        (("up", "default", "home"), "home"),
        (("up", "standing", "stand"), "stand"),
        (("default", "standing"), "standing"),
        (("up", "default"), "default"),
        (("half_sitting",), "half_sitting"),
        (("up", "down"), None),
        ((), None),
    ],
)
def test_first_pose_is_home_or_the_only_one(names: tuple[str, ...], first: str | None) -> None:
    arm = Robot.from_urdf(robots.shared("ur5"), "fixed")
    assert first_pose_name(with_states(arm, **dict.fromkeys(names, {"elbow_joint": 0.5}))) == first


def test_default_posture_is_a_named_pose_with_other_joints_as_computed() -> None:
    robot = with_states(
        Robot.from_urdf(robots.panda(), "fixed"),
        home={"panda_joint2": -0.785, "panda_joint6": 5.0},
    )
    posture = default_posture(robot)
    assert posture.why == "pose 'home' of the robot description"
    expected = robot.q(pose_of(robot) | {"panda_joint2": -0.785, "panda_joint6": 3.7525})
    assert posture.q == pytest.approx(expected)
    (words,) = posture.outside
    assert words.startswith("pose 'home': the position of joint 'panda_joint6' is 5 rad, and its ")
    assert words.endswith("; 3.7525 is taken")
    why = computed_posture(robot).why
    assert why == "joints at 0, 1 joint in the middle of limits that exclude 0"


@pytest.mark.parametrize(
    ("value", "taken"),
    [(-1.5707, 4.712485), (5.951573, 5.951573), (-0.5, 5.783185), (0.1, 0.331613)],
)
def test_joint_outside_its_limits_in_a_named_pose_is_a_turn_further_or_at_the_limit(
    value: float, taken: float
) -> None:
    kinova = robots.example("kinova_description/robots/kinova.urdf")
    robot = with_states(Robot.from_urdf(kinova, "fixed"), up={"j2s6s200_joint_3": value})
    posture = named_posture(robot, "up")
    position = posture.q[robot.q_offsets[robot.joint_names.index("j2s6s200_joint_3")]]
    assert position == pytest.approx(taken, abs=1e-5)
    assert not outside_limits(robot, posture.q)
    assert [words.rpartition("; ")[2] for words in posture.outside] == (
        [] if value == taken else [f"{position:.6g} is taken"]
    )


def test_loops_are_closed_at_a_named_pose() -> None:
    closure = Closure(four_bar())
    there = closure.solve({"crank": 1.1}).q
    rounded = dict(zip(closure.robot.joint_names, there.round(3).tolist(), strict=True))
    made = with_states(four_bar(), home=rounded)
    posture = default_posture(made, Closure(made))
    assert posture.why.startswith("pose 'home' of the robot description; loops closed")
    assert 1e-6 < np.abs(posture.q - [*rounded.values()]).max() < 1e-3
    assert Closure(made).solve({"crank": posture.q[0]}).q == pytest.approx(posture.q, abs=1e-9)
    # From a dependent joint alone: the independent one follows.
    made = with_states(four_bar(), home={"rocker": there[2]})
    expected = Closure(made).solve({"rocker": there[2]}).q
    assert default_posture(made, Closure(made)).q == pytest.approx(expected, abs=1e-9)


def test_named_pose_at_which_loops_do_not_close_is_no_default_posture() -> None:
    made = with_states(four_bar(), home={"rocker": 0.2})
    closure = Closure(made)
    with pytest.raises(InputError, match="pose 'home' of the robot description: the loops do not"):
        named_posture(made, "home", closure)
    posture = default_posture(made, closure)
    assert np.array_equal(posture.q, computed_posture(made, closure).q)
    assert "; not the pose 'home' of the robot description: the loops do not cl" in posture.why


def test_unknown_pose_refused() -> None:
    robot = with_states(four_bar(), home={"crank": 0.2})
    with pytest.raises(InputError, match="unknown pose 'hom'; did you mean 'home'. poses: home"):
        named_posture(robot, "hom")
