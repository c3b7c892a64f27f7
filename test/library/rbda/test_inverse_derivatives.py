"""Derivatives of inverse dynamics in closed form, against C-RNEA on dual numbers."""

from __future__ import annotations

import numpy as np
import pytest
import robots
from cluster_robots import coupled, random_problem
from linkages import closed_four_bar, four_bar
from oracles import paper_library

from delassus import Robot
from delassus.model import WORLD, JointKind
from delassus.rbda.dynamics import c_rnea
from delassus.rbda.inverse_derivatives import inverse_derivatives
from delassus.rbda.joint_space import mass_matrix
from delassus.rbda.robot_tree import RobotTree
from delassus.rbda.spatial import cross
from delassus.rbda.tangents import directions, with_slopes
from delassus.scalars.duals import Dual
from delassus.testing import random_problem as random_open_problem

TOLERANCE = 1e-12


def by_dual_numbers(tree: RobotTree, x: dict[str, list[float]]) -> tuple[np.ndarray, np.ndarray]:
    """Return ∂τ/∂q and ∂τ/∂ẏ of C-RNEA; a floating base turns gravity."""
    n = tree.size
    changes = [dict(direction) for direction in directions(tree.problem, x)]
    if tree.problem.robot.joints[0].kind is JointKind.ROOT:
        for k, axis in enumerate(np.eye(3).tolist()):
            for i, value in enumerate(cross(x["gravity"], axis)):
                changes[3 + k]["gravity", i] = value
    slopes: dict[tuple[str, int], list[float]] = {}
    for column, change in enumerate(changes):
        for entry, value in change.items():
            slopes.setdefault(entry, [0.0] * (2 * n))[column] = value
    for k, unit in enumerate(np.eye(n).tolist()):
        slopes["rates", k] = [0.0] * n + unit
    motion = tree.motion(with_slopes(x, slopes))
    torques = c_rnea(motion, motion.accelerations(x["accelerations"]))
    rows = [t.slopes if isinstance(t, Dual) else [0.0] * (2 * n) for t in torques]
    found = np.array(rows, dtype=float)
    return found[:, :n], found[:, n:]


def assert_agrees_with_dual_numbers(robot: Robot, q: np.ndarray) -> None:
    moved = [name for name, frame in robot.frames.items() if frame.body != WORLD]
    tree = RobotTree(robot, [moved[-1]])
    rng = np.random.default_rng(1)
    x = {name: rng.normal(size=tree.size).tolist() for name in ("rates", "accelerations")}
    x |= {
        "q": np.asarray(q).tolist(), "gravity": [1.0, -2.0, -9.0],
        "wrenches": rng.normal(size=6).tolist(),
    }  # fmt: skip
    motion = tree.motion(x)
    found = inverse_derivatives(motion, motion.accelerations(x["accelerations"]))
    M = mass_matrix(tree.problem, tree.tree, x)
    for matrix, expected in zip(found[:3], (*by_dual_numbers(tree, x), M), strict=True):
        error = np.linalg.norm(np.array(matrix) - np.array(expected))
        assert error <= TOLERANCE * np.linalg.norm(expected)


def test_a_floating_quadruped() -> None:
    robot = Robot.from_urdf(robots.quadruped(), base="floating")
    assert_agrees_with_dual_numbers(robot, np.random.default_rng(0).uniform(-1, 1, robot.nq))


@pytest.mark.parametrize("seed", range(4))
def test_open_trees(seed: int) -> None:
    robot = random_open_problem(seed).robot
    assert_agrees_with_dual_numbers(robot, np.random.default_rng(seed).uniform(-1, 1, robot.nq))


@pytest.mark.parametrize("seed", range(6))
def test_robots_with_gears_belts_and_rotors(seed: int) -> None:
    robot = random_problem(seed).robot
    q = coupled(robot, np.random.default_rng(seed).uniform(-1, 1, robot.nq))
    assert_agrees_with_dual_numbers(robot, q)


def test_a_loop() -> None:
    assert_agrees_with_dual_numbers(four_bar(), np.array(closed_four_bar(0.7)))


def test_the_differentials_of_a_humanoid() -> None:
    name = "tello_with_arms_1ee"
    problem = paper_library.with_differentials(paper_library.problem_of(name))
    assert_agrees_with_dual_numbers(problem.robot, paper_library.positions(name, 0))


def test_a_linkage_of_the_paper() -> None:
    problem = paper_library.from_urdf("urdf_planar_leg_linkage")
    q = paper_library.positions_from_urdf(problem, "urdf_planar_leg_linkage", 0)
    assert_agrees_with_dual_numbers(problem.robot, q)
