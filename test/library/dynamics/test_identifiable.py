"""Identifiable parameters: known numbers, 50 digits, and torques that do not change."""

from __future__ import annotations

import tracemalloc

import mpmath
import numpy as np
import pytest
import robots
from cluster_robots import coupled, random_problem
from linkages import closed_four_bar, four_bar

import delassus.testing.mpmath_numbers  # noqa: F401 (mpmath numbers as scalars)
from delassus import Robot, Transform
from delassus.dynamics import Dynamics
from delassus.dynamics.identifiable import IdentifiableParameters, identifiable
from delassus.dynamics.methods import recursive_inverse
from delassus.dynamics.regressor import (
    PARAMETERS,
    inertial_parameters,
    regressor,
    with_inertial_parameters,
)
from delassus.errors import InputError, NumericalError
from delassus.model import WORLD, Body, Frame, Inertia, Joint, JointKind
from delassus.rbda.robot_tree import RobotTree
from delassus.rbda.trees import spanning_tree
from delassus.testing import random_problem as random_open_problem

BOX = Inertia.from_com(2.0, (0.05, -0.1, 0.2), np.diag([0.04, 0.05, 0.06]))
TOLERANCE = 1e-10


def puma(count: int = 6) -> Robot:
    """Return an arm with the axes of a PUMA 560: waist, shoulder, elbow, spherical wrist."""
    places = [
        ((0, 0, 0), (0, 0, 0)), ((0, 0, 0), (-np.pi / 2, 0, 0)),
        ((0.4318, 0, 0.15), (0, 0, 0)), ((0.02, 0.4318, 0), (-np.pi / 2, 0, 0)),
        ((0, 0, 0), (np.pi / 2, 0, 0)), ((0, 0, 0), (-np.pi / 2, 0, 0)),
    ]  # fmt: skip
    joints = [
        Joint(f"j{i}", JointKind.REVOLUTE, i - 1 if i else WORLD, Transform.from_xyz_rpy(*place))
        for i, place in enumerate(places[:count])
    ]
    bodies = [Body(f"b{i}", BOX) for i in range(len(joints))]
    return Robot("puma", joints, bodies, [Frame("tool", count - 1, Transform())])


def unregrouped(robot: Robot) -> RobotTree:
    return RobotTree(robot, build=lambda problem: spanning_tree(problem, regrouped=False))


def random_state(robot: Robot, q: np.ndarray, n: int, rng: np.random.Generator) -> dict:
    gravity = rng.normal(size=3) if robot.joints[0].kind is JointKind.ROOT else [0.0, 0.0, -9.81]
    return {
        "q": q.tolist(), "rates": rng.normal(size=n).tolist(),
        "accelerations": rng.normal(size=n).tolist(), "gravity": [*map(float, gravity)],
    }  # fmt: skip


def stack(robot: Robot, seed: int, count: int) -> np.ndarray:
    """Return stacked regressors, on floats."""
    tree, rng = unregrouped(robot), np.random.default_rng(seed)
    rows = []
    for _ in range(count):
        q = coupled(robot, rng.uniform(-np.pi, np.pi, robot.nq))
        x = random_state(robot, q, tree.size, rng)
        rows.append(np.array(regressor(tree, x)).reshape(tree.size, -1))
    return np.vstack(rows)


def found_on_floats(robot: Robot) -> IdentifiableParameters:
    size = len(PARAMETERS) * len(robot.bodies)
    count = 3 * -(-size // RobotTree(robot).size)
    names = [f"{body.name} {name}" for body in robot.bodies for name in PARAMETERS]
    return identifiable(stack(robot, 0, count), names)


def assert_holds(robot: Robot, found: IdentifiableParameters) -> None:
    """Check bases and null space at fresh states."""
    Y = stack(robot, 99, 5)
    size = np.linalg.norm(Y)
    assert np.linalg.norm(Y - Y[:, list(found.columns)] @ found.B) <= TOLERANCE * size
    assert np.linalg.norm(Y @ found.null_space) <= TOLERANCE * size
    assert found.null_space.shape == (Y.shape[1], Y.shape[1] - found.rank)
    np.testing.assert_allclose(found.B[:, list(found.columns)], np.eye(found.rank), atol=1e-12)
    assert found.gap > 1e9


def test_an_arm_like_the_puma_has_36() -> None:
    """M. Gautier, W. Khalil, "Direct Calculation of Minimum Set of Inertial Parameters", 1990."""
    found = found_on_floats(puma())
    assert found.rank == 36
    assert_holds(puma(), found)


def test_the_panda_has_43() -> None:
    """C. Gaz, M. Cognetti, A. Oliva, P. Robuffo Giordano, A. De Luca, IEEE RA-L 4(4), 2019."""
    robot = Robot.from_urdf(robots.shared("panda_arm"), "fixed")
    found = found_on_floats(robot)
    assert found.rank == 43
    assert_holds(robot, found)


@pytest.mark.parametrize("seed", [pytest.param(0, marks=pytest.mark.slow), 2])
def test_a_joint_beyond_a_floating_base_has_seven_or_four(seed: int) -> None:
    """All motions of the base excite all but what a joint's axis hides."""
    robot = random_open_problem(seed).robot
    assert robot.joints[0].kind is JointKind.ROOT
    per_joint = {JointKind.ROOT: 10, JointKind.REVOLUTE: 7, JointKind.PRISMATIC: 4}
    found = found_on_floats(robot)
    assert found.rank == sum(per_joint[joint.kind] for joint in robot.joints)
    assert_holds(robot, found)


@pytest.mark.parametrize("seed", [pytest.param(0, marks=pytest.mark.slow), 5])
def test_torques_of_geared_robots_do_not_show_the_null_space(seed: int) -> None:
    robot = random_problem(seed).robot
    found = found_on_floats(robot)
    assert_holds(robot, found)
    assert 0 < found.rank < len(PARAMETERS) * len(robot.bodies)
    rng = np.random.default_rng(1)
    change = found.null_space @ rng.normal(size=found.null_space.shape[1])
    pi = inertial_parameters(robot)
    change *= 1e-3 * np.linalg.norm(pi) / np.linalg.norm(change)
    moved = with_inertial_parameters(robot, pi + change)
    assert np.linalg.norm(inertial_parameters(moved) - pi) > 1e-4 * np.linalg.norm(pi)
    tree, other = RobotTree(robot), RobotTree(moved)
    q = coupled(robot, rng.uniform(-1, 1, robot.nq))
    x = random_state(robot, q, tree.size, rng)
    torques, same = (np.array(recursive_inverse(t, x)) for t in (tree, other))
    assert np.linalg.norm(torques - same) <= TOLERANCE * np.linalg.norm(torques)
    # A change of a base parameter shows.
    seen = with_inertial_parameters(robot, pi + 1e-3 * np.eye(len(pi))[found.columns[0]])
    shown = np.array(recursive_inverse(RobotTree(seen), x))
    assert np.linalg.norm(torques - shown) > 1e-6 * np.linalg.norm(torques)


@pytest.mark.parametrize("name", ["open", pytest.param("geared", marks=pytest.mark.slow)])
def test_ranks_are_those_of_50_digits(name: str) -> None:
    """Without rounding, what is left has the size of the rounding of the robot's constants."""
    robot = random_problem(5).robot if name == "geared" else puma(3)
    tree, rng = unregrouped(robot), np.random.default_rng(3)
    size = len(PARAMETERS) * len(robot.bodies)
    rows: list[list] = []
    with mpmath.workdps(50):
        while len(rows) < size:
            q = coupled(robot, rng.uniform(-1, 1, robot.nq))
            x = random_state(robot, q, tree.size, rng)
            Y = regressor(tree, {key: [*map(mpmath.mpf, values)] for key, values in x.items()})
            rows += [Y[k * size : (k + 1) * size] for k in range(tree.size)]
        rank = eliminated(rows)
    assert rank == found_on_floats(robot).rank


def eliminated(rows: list[list]) -> int:
    """Return the rank by elimination with complete pivoting; pivots are above 1e-7 or noise."""
    rank = 0
    while rank < len(rows):
        size, r, c = max(
            (abs(value), r, c)
            for r, row in enumerate(rows[rank:], start=rank)
            for c, value in enumerate(row)
        )
        if size < 1e-7:
            assert size < 1e-14
            return rank
        rows[rank], rows[r] = rows[r], rows[rank]
        pivot = rows[rank]
        for k in range(rank + 1, len(rows)):
            factor = rows[k][c] / pivot[c]
            if factor:
                rows[k] = [a - factor * b for a, b in zip(rows[k], pivot, strict=True)]
                rows[k][c] = mpmath.mpf(0)
        rank += 1
    return rank


def test_a_four_bar_by_its_compiled_regressor() -> None:
    robot = four_bar()
    dynamics = Dynamics(robot)
    found = dynamics.identifiable()
    assert found.rank == len(found.names) == 4
    Y = dynamics.regressor(closed_four_bar(0.7), [0.3], [0.7])
    error = Y - Y[:, list(found.columns)] @ found.B
    assert np.linalg.norm(error) <= TOLERANCE * np.linalg.norm(Y)
    at_these = dynamics.identifiable([closed_four_bar(0.02 * k) for k in range(100)])
    assert at_these.rank == 4
    np.testing.assert_allclose(at_these.B @ found.null_space, 0.0, atol=1e-9)


def test_too_few_states_are_refused() -> None:
    """From few rows every parameter would seem identifiable."""
    too_few = "the states give 3 rows of regressors for (\\d+) inertial .* at least \\1 rows"
    with pytest.raises(NumericalError, match=too_few):
        Dynamics(puma(3)).identifiable([[0.3, -0.4, 0.5]])
    with pytest.raises(NumericalError, match="the states give 13 rows .* at least 14 rows"):
        identifiable(np.random.default_rng(0).normal(size=(13, 14)), [])


def test_memory_grows_with_the_rows_alone() -> None:
    rng = np.random.default_rng(0)
    stacked = rng.normal(size=(4000, 5)) @ rng.normal(size=(5, 12))
    tracemalloc.start()
    found = identifiable(stacked, [""] * 12)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.rank == 5
    assert peak < 20 * stacked.nbytes


def test_what_cannot_be_decided_or_read_is_refused() -> None:
    slope = 10.0 ** -np.arange(14.0)
    with pytest.raises(NumericalError, match="the largest step of singular values is from"):
        identifiable(np.tril(np.ones((14, 14))) @ np.diag(slope) @ np.triu(np.ones((14, 14))), [])
    with pytest.raises(InputError, match=r"shape \(3,\), expected \(30,\)"):
        with_inertial_parameters(four_bar(), [1.0, 2.0, 3.0])
