"""Inverse kinematics of a contact: reached poses, limits, loops, and poses out of reach."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import robots

from delassus import Closure, Contact, InputError, Problem, Robot
from delassus.cli.page import q_at
from delassus.drawing.reach import Reach
from delassus.model.spatial import Array

LEG = Path(__file__).parents[3] / "docs" / "geared_leg.urdf"
CASES = {
    "point": (robots.quadruped(), "floating", Contact("LF", "LF_FOOT"), "LF_"),
    "surface": (robots.shared("ur5"), "fixed", Contact("tool", "tool0", "surface"), ""),
    "loop": (LEG, "fixed", Contact("sole", "sole"), ""),
}


def made(case: str) -> tuple[Reach, str, dict[str, float], dict[str, tuple[float, float]]]:
    """Return the inverse kinematics of a contact, its name, a posture, and ranges of joints."""
    file, base, contact, _ = CASES[case]
    robot = Robot.from_urdf(file, base)
    closure = Closure(robot) if robot.clustered.is_closed else None
    moving = [joint for joint in robot.joints if joint.kind.nq == 1]
    if closure is not None:
        moving = [joint for joint in moving if joint.name in closure.independent]
    ranges = {joint.name: (max(joint.lower, -1.5), min(joint.upper, 1.5)) for joint in moving}
    start = {name: low + 0.6 * (high - low) for name, (low, high) in ranges.items()}
    reach = Reach(Problem(robot, [contact]), ranges, lambda moved: q_at(robot, closure, moved))
    return reach, contact.name, start, ranges


def turned_and_moved(pose: Array, target: Array, is_surface: bool) -> float:
    parts = (pose - target)[:3, :] if is_surface else (pose - target)[:3, 3]
    return float(np.abs(parts).max())


@pytest.mark.parametrize("case", CASES)
def test_a_pose_within_reach_is_reached_by_the_joints_of_the_contact(case: str) -> None:
    reach, contact, start, ranges = made(case)
    rng = np.random.default_rng(1)
    chain = {name for name in ranges if name.startswith(CASES[case][3])}
    for _ in range(5):
        there = {name: start[name] + rng.uniform(-0.15, 0.15) * (name in chain) for name in start}
        target = reach.pose(contact, there)
        found = reach.moved(contact, target, start)
        assert turned_and_moved(reach.pose(contact, found), target, case == "surface") < 1e-5
        assert {name for name in found if found[name] != start[name]} <= chain


@pytest.mark.parametrize("case", CASES)
def test_joints_stay_in_their_limits_and_come_nearer_where_a_pose_is_out_of_reach(
    case: str,
) -> None:
    reach, contact, start, ranges = made(case)
    for direction in np.vstack([np.eye(3), -np.eye(3)]):
        target = reach.pose(contact, start)
        target[:3, 3] += 5.0 * direction
        found, before = start, np.inf
        for _ in range(6):
            found = reach.moved(contact, target, found)
            assert all(low <= found[name] <= high for name, (low, high) in ranges.items())
            error = target - reach.pose(contact, found)
            distance = float(np.linalg.norm(error[:3, 3]))
            assert distance <= before + 0.05
            before = distance
        first = target - reach.pose(contact, start)
        assert before < np.linalg.norm(first[:3, 3])


@pytest.mark.parametrize("end", [0, 1])
def test_a_contact_comes_as_near_as_any_posture_within_limits(end: int) -> None:
    reach, contact, start, ranges = made("point")
    at_limit = {**start, "LF_KFE": ranges["LF_KFE"][end]}
    names = ("LF_HAA", "LF_HFE", "LF_KFE")
    counts = dict(zip(names, (9, 41, 9), strict=True))
    axes = [np.linspace(*ranges[name], count) for name, count in counts.items()]
    scanned = np.array(np.meshgrid(*axes)).reshape(3, -1).T.tolist()
    places = np.array([
        reach.pose(contact, {**start, **dict(zip(names, x, strict=True))})[:3, 3] for x in scanned
    ])  # fmt: skip
    for direction in ((0.0, 0.0, 0.1), (-0.1, 0.0, 0.0), (0.1, 0.0, 0.1), (-0.1, 0.05, -0.1)):
        target, found = reach.pose(contact, at_limit), at_limit
        target[:3, 3] += direction
        for _ in range(4):
            found = reach.moved(contact, target, found)
        distance = np.linalg.norm(target[:3, 3] - reach.pose(contact, found)[:3, 3])
        assert distance < np.linalg.norm(places - target[:3, 3], axis=1).min() + 1e-3


def test_positions_at_which_loops_do_not_close_are_not_entered() -> None:
    file, base, contact, _ = CASES["point"]
    problem = Problem(Robot.from_urdf(file, base), [contact])
    ranges = {joint.name: (joint.lower, joint.upper) for joint in problem.robot.joints[1:]}
    start = dict.fromkeys(ranges, 0.1) | {"LF_KFE": -1.0}

    def closed(moved: dict[str, float]) -> Array:
        if moved["LF_KFE"] > -0.9:
            raise InputError("the loops do not close")
        return problem.robot.q(moved)

    reach = Reach(problem, ranges, closed)
    target = reach.pose("LF", start)
    target[2, 3] -= 1.0
    found = start
    for _ in range(5):
        found = reach.moved("LF", target, found)
    assert -1.0 <= found["LF_KFE"] <= -0.9
    assert reach.moved("LF", target, {**start, "LF_KFE": -0.5}) == {}
