"""∂G/∂y in closed form: against differences at 50 digits and duals, its rank, loops included."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
import robots
from cluster_robots import random_problem as random_geared
from on_floats import flat, outputs_on_floats
from oracles import paper_library
from seeds import but_slow, seeds

from delassus import Contact, Problem, Robot, algorithms
from delassus.algorithms.registry import TracedAlgorithm, evaluate
from delassus.compiler.ir.trace import trace
from delassus.model import JointKind
from delassus.rbda.tangents import along, directions, with_all_slopes
from delassus.samples import random_inputs
from delassus.scalars.duals import Dual
from delassus.testing import mpmath_numbers, random_problem
from delassus.testing.random_trees import ALL, random_contacts, random_robot

assert mpmath_numbers  # registers the functions over numbers of 50 digits
STEP = mpmath.mpf(10) ** -20


def algorithm(name: str = "pv_osimr") -> TracedAlgorithm:
    found = algorithms.get(name)
    assert isinstance(found, TracedAlgorithm)
    return found


def of(problem: Problem, outputs: Any, axes: str | None = None) -> Problem:
    return Problem(problem.robot, problem.contacts, axes or problem.axes, outputs)


def closed_form(problem: Problem, inputs: dict) -> np.ndarray:
    return outputs_on_floats(of(problem, ("dG",)), "pv_osimr", inputs)["dG"]


def by_duals(problem: Problem, inputs: dict) -> np.ndarray:
    """Return ∂G/∂y by forward mode through PV-OSIMr."""
    n, m = len(problem.velocities), problem.contacts.rows
    x = with_all_slopes(problem, flat(inputs))
    G = evaluate(of(problem, ("G",)), algorithm(), x)["G"]
    slopes = [[v.slopes if isinstance(v, Dual) else [0.0] * n for v in row] for row in G]
    return np.moveaxis(np.array(slopes, dtype=float).reshape(m, m, n), -1, 0)


def by_differences(problem: Problem, inputs: dict) -> np.ndarray:
    """Return ∂G/∂y by central differences at 50 digits, with a step of 1e-20."""
    with mpmath.workdps(50):
        x = {name: [mpmath.mpf(v) for v in values] for name, values in flat(inputs).items()}
        plain, found = of(problem, ("G",)), []
        for direction in directions(problem, x):
            sides = []
            for sign in (1, -1):
                moved = {name: list(values) for name, values in x.items()}
                for (name, i), rate in direction.items():
                    moved[name][i] += sign * STEP * rate
                sides.append(evaluate(plain, algorithm(), moved)["G"])
            found.append(
                [
                    [float((a - b) / (2 * STEP)) for a, b in zip(*rows, strict=True)]
                    for rows in zip(*sides, strict=True)
                ]
            )
    return np.array(found)


MOVING = ("JdotV", "a0", "h", "qdd0")


def changes(problem: Problem, inputs: dict, tangents: dict[str, list[float]]) -> np.ndarray:
    """Return the changes of the outputs MOVING along a direction, by forward mode."""
    wanted = of(problem, (*MOVING, *(f"{name}_dot" for name in MOVING)))
    zero = {port.name: [0.0] * port.size for port in wanted.inputs if "along" in port.name}
    found = evaluate(wanted, algorithm(), flat(inputs) | zero | tangents)
    return np.concatenate([np.array(found[f"{name}_dot"], dtype=float) for name in MOVING])


def changes_by_differences(
    problem: Problem, inputs: dict, tangents: dict[str, list[float]]
) -> np.ndarray:
    """Return the same by central differences at 50 digits, with a step of 1e-20."""
    with mpmath.workdps(50):
        x = {name: [mpmath.mpf(v) for v in values] for name, values in flat(inputs).items()}
        rates = dict(along(problem, x, tangents.get("along", [0.0] * len(problem.velocities))))
        for name, values in tangents.items():
            rates |= {(name.removesuffix("_along"), i): v for i, v in enumerate(values)}
        sides = []
        for sign in (1, -1):
            moved = {name: list(values) for name, values in x.items()}
            for (name, i), rate in rates.items():
                if name in moved:
                    moved[name][i] += sign * STEP * rate
            found = evaluate(problem, algorithm(), moved)
            sides.append([v for name in MOVING for v in found[name]])
        return np.array([float((a - b) / (2 * STEP)) for a, b in zip(*sides, strict=True)])


def error(found: np.ndarray, expected: np.ndarray) -> float:
    assert found.shape == expected.shape
    return float(np.linalg.norm(found - expected) / max(np.linalg.norm(expected), 1e-9))


@pytest.mark.parametrize("seed", seeds(30))
def test_random_trees_with_quaternions_and_both_axes(seed: int) -> None:
    problem = random_problem(np.random.default_rng(seed), ALL)
    inputs = random_inputs(problem, seed)
    assert error(closed_form(problem, inputs), by_duals(problem, inputs)) <= 1e-11


def test_fifty_digits() -> None:
    robot = Robot.from_urdf(robots.quadruped())
    contacts = [Contact("LF", "LF_FOOT"), Contact("RH", "RH_FOOT")]
    for axes in ("contact", "world"):
        problem = Problem(robot, contacts, axes)
        inputs = random_inputs(problem, 3)
        expected = by_differences(problem, inputs)
        assert error(closed_form(problem, inputs), expected) <= 1e-12
        # A floating base: only its rotation matters, and in world axes alone.
        assert np.abs(expected[:3]).max() <= 1e-15
        assert (np.abs(expected[3:6]).max() > 0.1) == (axes == "world")


def test_fifty_digits_with_joints_that_have_quaternions() -> None:
    rng = np.random.default_rng(4)
    robot = random_robot(rng, (JointKind.FLOATING, JointKind.REVOLUTE), floating=True)
    assert any(joint.kind is JointKind.FLOATING for joint in robot.joints)
    problem = Problem(robot, random_contacts(rng, robot), "world")
    inputs = random_inputs(problem, 4)
    assert error(closed_form(problem, inputs), by_differences(problem, inputs)) <= 1e-9


def quadruped() -> tuple[Problem, dict]:
    robot = Robot.from_urdf(robots.quadruped())
    contacts = [Contact("LF", "LF_FOOT"), Contact("RH", "RH_FOOT")]
    problem = Problem(robot, contacts, "world", MOVING)
    return problem, random_inputs(problem, 3)


def arm() -> tuple[Problem, dict]:
    robot = Robot.from_urdf(robots.shared("ur5"), "fixed")
    problem = Problem(robot, [Contact("tool", "ee_link", "surface")], outputs=MOVING)
    return problem, random_inputs(problem, 3)


def geared() -> tuple[Problem, dict]:
    problem = of(random_geared(2), MOVING)
    return problem, random_inputs(problem, 2)


def loop() -> tuple[Problem, dict]:
    state = next(iter(paper_library.states("urdf_four_bar")))
    problem = of(paper_library.problem_of("urdf_four_bar", state), MOVING)
    q = paper_library.positions("urdf_four_bar", state)
    return problem, random_inputs(problem, 1) | {"q": q}


CASES = {"floating base": quadruped, "open chain": arm, "gears": geared, "loop": loop}


@pytest.mark.parametrize("case", but_slow([*CASES], "floating base"))
def test_outputs_of_motion_in_fifty_digits(case: str) -> None:
    """Changes of a0, J̇ẏ, h and q̈0 along the configuration, the rates and the torques."""
    problem, inputs = CASES[case]()
    rng, n = np.random.default_rng(7), len(problem.velocities)
    for seed in ("along", "rates_along", "torques_along"):
        tangents = {seed: rng.normal(size=n).tolist()}
        expected = changes_by_differences(problem, inputs, tangents)
        assert np.abs(expected).max() > 1e-3
        tolerance = 1e-8 if case in ("gears", "loop") else 1e-9
        assert error(changes(problem, inputs, tangents), expected) <= tolerance, seed


@pytest.mark.parametrize("seed", seeds(30, every=8))
def test_gears_belts_and_differentials(seed: int) -> None:
    problem = random_geared(seed)
    for axes in ("contact", "world"):
        turned = of(problem, ("G",), axes)
        inputs = random_inputs(turned, seed)
        assert error(closed_form(turned, inputs), by_duals(turned, inputs)) <= 1e-9


@pytest.mark.parametrize("robot", [*paper_library.CONSTANT, *paper_library.VARYING])
def test_loops_of_published_robots(robot: str) -> None:
    state = next(iter(paper_library.states(robot)))
    problem = paper_library.problem_of(robot, state)
    inputs = {"q": paper_library.positions(robot, state)}
    found = closed_form(problem, inputs)
    assert error(found, by_duals(problem, inputs)) <= 1e-9
    if robot == "urdf_four_bar":
        assert error(found, by_differences(problem, inputs)) <= 1e-8


def test_the_rank_is_eight_per_joint() -> None:
    robot = Robot.from_urdf(robots.talos())
    soles = [Contact(f"{side}", f"{side}_sole_link", "surface") for side in ("left", "right")]
    hands = [Contact(f"{side} hand", f"gripper_{side}_base_link", "surface")
             for side in ("left", "right")]  # fmt: skip
    problem = Problem(robot, [*soles, *hands])
    found = closed_form(problem, random_inputs(problem, 1))
    size = np.abs(found).max()
    ranks = [np.linalg.matrix_rank(matrix, tol=1e-10 * size) for matrix in found]
    assert max(ranks) == 8 and ranks[:6] == [0] * 6
    assert all(np.array_equal(matrix, matrix.T) for matrix in found)


def test_counts() -> None:
    """∂G/∂q costs a fraction of central differences, and grows as its size."""
    robot = Robot.from_urdf(robots.talos())
    soles = [Contact(f"{side}", f"{side}_sole_link", "surface") for side in ("left", "right")]
    problem = Problem(robot, soles)
    G, dG = (
        trace(of(problem, outputs), algorithm()).operations.total for outputs in (("G",), ("dG",))
    )
    assert dG < 0.2 * (2 * robot.nq * G)
