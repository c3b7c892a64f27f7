"""Derivatives of dynamics: against Pinocchio, and differences with 50 digits where it has none."""

from __future__ import annotations

import mpmath
import numpy as np
import pinocchio as pin
import pytest
import robots
from cluster_robots import coupled, random_problem
from linkages import closed_four_bar, four_bar
from oracles import GRAVITY
from oracles.pinocchio_models import PinocchioDynamics
from passive import with_passive

import delassus.testing.mpmath_numbers  # noqa: F401 (mpmath numbers as scalars)
from delassus import Robot
from delassus.dynamics import Dynamics
from delassus.dynamics.derivatives import derivatives_of_forward, derivatives_of_inverse
from delassus.dynamics.methods import recursive_forward, recursive_inverse
from delassus.model import JointKind
from delassus.rbda.robot_tree import RobotTree
from delassus.rbda.tangents import directions

STEP = mpmath.mpf(10) ** -20


def close(value: np.ndarray, expected: np.ndarray, tolerance: float) -> None:
    assert np.linalg.norm(value - expected) <= tolerance * np.linalg.norm(expected)


def state(tree: RobotTree, q: np.ndarray, given: str) -> dict[str, list[float]]:
    rng = np.random.default_rng(1)
    return {
        "q": q.tolist(), "rates": rng.normal(size=tree.size).tolist(),
        given: rng.normal(size=tree.size).tolist(), "gravity": GRAVITY.tolist(),
    }  # fmt: skip


def matrices(values: list[float], n: int) -> np.ndarray:
    return np.array(values, dtype=float).reshape(3, n, n)


@pytest.mark.parametrize("base", ["floating", "fixed"])
def test_derivatives_of_a_quadruped_agree_with_pinocchio(base: str) -> None:
    robot = Robot.from_urdf(robots.quadruped(), base=base)
    robot = robot.with_armature({j.name: 0.0 for j in robot.joints if j.armature})
    tree = RobotTree(robot)
    q = np.random.default_rng(0).uniform(-1, 1, robot.nq)
    # Results of Pinocchio are views of the data.
    peer = PinocchioDynamics(robot, q)
    model, data, at = peer.model, peer.data, peer.q
    for derivatives, theirs, given in (
        (derivatives_of_inverse, pin.computeRNEADerivatives, "accelerations"),
        (derivatives_of_forward, pin.computeABADerivatives, "torques"),
    ):
        x = state(tree, q, given)
        found = matrices(derivatives(tree, x), tree.size)
        expected = theirs(model, data, at, np.array(x["rates"]), np.array(x[given]))
        close(found[0], expected[0], 1e-10)
        close(found[1], expected[1], 1e-10)
        close(np.triu(found[2]), np.triu(expected[2]), 1e-10)


@pytest.mark.parametrize(
    ("derivatives", "function", "given"),
    [(derivatives_of_inverse, recursive_inverse, "accelerations"),
     (derivatives_of_forward, recursive_forward, "torques")],
)  # fmt: skip
@pytest.mark.parametrize(
    "robot", [random_problem(0).robot, with_passive(random_problem(2).robot, 2)],
    ids=["fixed", "floating, passive"],
)  # fmt: skip
def test_derivatives_of_geared_robots_agree_with_50_digits(
    derivatives, function, given, robot: Robot
) -> None:
    tree = RobotTree(robot)
    q = coupled(robot, np.random.default_rng(0).uniform(-1, 1, robot.nq))
    x = state(tree, q, given)
    found = matrices(derivatives(tree, x), tree.size)
    along = directions(tree.problem, x)
    if robot.joints[0].kind is JointKind.ROOT:
        # Gravity, along the axes of the base, turns with the base.
        along[3:6] = [
            {("gravity", i): value for i, value in enumerate(np.cross(GRAVITY, axis))}
            for axis in np.eye(3)
        ]
    with mpmath.workdps(50):
        for k, change in enumerate(along):
            close(found[0][:, k], difference(function, tree, x, change), 1e-9)
        for matrix, name in zip(found[1:], ("rates", given), strict=True):
            for k in range(tree.size):
                close(matrix[:, k], difference(function, tree, x, {(name, k): 1.0}), 1e-9)


def difference(function, tree: RobotTree, x, change) -> np.ndarray:
    """Return the derivative of a function along a change of its inputs."""
    moved = []
    for sign in (1, -1):
        there = {name: [mpmath.mpf(value) for value in values] for name, values in x.items()}
        for (name, i), rate in change.items():
            there[name][i] += sign * STEP * mpmath.mpf(rate)
        moved.append(function(tree, there))
    ahead, behind = moved
    return np.array([float((a - b) / (2 * STEP)) for a, b in zip(ahead, behind, strict=True)])


@pytest.mark.parametrize("passive", [False, True])
def test_derivatives_of_a_four_bar_contain_how_the_loop_turns(passive: bool) -> None:
    tree, h = RobotTree(with_passive(four_bar(), 0) if passive else four_bar()), 1e-5
    x = state(tree, np.array(closed_four_bar(0.7)), "accelerations")
    found = matrices(derivatives_of_inverse(tree, x), 1)[0]
    ahead, behind = (
        recursive_inverse(tree, {**x, "q": closed_four_bar(0.7 + step)})[0] for step in (h, -h)
    )
    close(found, np.array([[(ahead - behind) / (2 * h)]]), 1e-8)


def test_compiled_derivatives_are_named_and_shaped() -> None:
    robot: Robot = four_bar()
    dynamics, q = Dynamics(robot), np.array(closed_four_bar(0.7))
    by_q, by_rates, M = dynamics.inverse_derivatives(q, [0.7], [0.3], GRAVITY)
    x = {"q": q.tolist(), "rates": [0.7], "accelerations": [0.3], "gravity": GRAVITY.tolist()}
    expected = matrices(derivatives_of_inverse(RobotTree(robot), x), 1)
    close(np.array([by_q, by_rates, M]), expected, 1e-12)
    *_, response = dynamics.forward_derivatives(q, [0.7], [0.3], GRAVITY)
    close(response @ M, np.eye(1), 1e-12)
