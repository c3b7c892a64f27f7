"""Limb lanes: alike limbs are packed, unlike ones are not, and no result changes."""

from __future__ import annotations

import numpy as np
import pytest
import robots

from delassus import Contact, DelassusSolver, Problem, Robot, Transform, algorithms
from delassus.compiler.ir.program import padded
from delassus.compiler.ir.trace import trace
from delassus.compiler.passes.limbs import limb_groups
from delassus.compiler.passes.vectorize import scalar_program, vectorized
from delassus.contacts import ContactSet
from delassus.model import WORLD, Body, Frame, Joint, JointKind
from delassus.testing import random_problem
from delassus.testing.conformance import relative_error, textbook
from delassus.testing.random_trees import random_inertia

TRACED = [
    name
    for name in algorithms.names()
    if isinstance(algorithms.get(name), algorithms.TracedAlgorithm)
]


def limbed_robot(limbs: int, joints: int, mirrored: bool, turn: float = 0.0) -> Robot:
    """A free trunk with alike limbs; mirrored ones differ in signs of constants and axes.

    Parameters
    ----------
    turn : angle about the vertical by which each other limb is mounted.
    """
    rng = np.random.default_rng(limbs)
    trunk = [Joint("root", JointKind.ROOT, WORLD)]
    bodies = [Body("trunk", random_inertia(rng))]
    frames = []
    offset = rng.uniform(0.1, 0.3, 3)
    link = random_inertia(rng)
    axes = [np.eye(3)[k % 3] for k in range(joints)]
    for limb in range(limbs):
        side = -1.0 if mirrored and limb % 2 else 1.0
        parent = 0
        for k in range(joints):
            yaw = turn if limb % 2 and not k else 0.0
            position = offset * (1.0, side, 1.0) * (1 + 0.1 * limb)
            place = Transform.from_xyz_rpy(position, (0.0, 0.0, yaw))
            trunk.append(Joint(f"l{limb}j{k}", JointKind.REVOLUTE, parent, place, axes[k] * side))
            bodies.append(Body(f"l{limb}b{k}", link))
            parent = len(trunk) - 1
        frames.append(Frame(f"foot{limb}", parent, Transform(np.eye(3), offset)))
    return Robot("limbed", trunk, bodies, frames)


def problem_of(robot: Robot) -> Problem:
    feet = [name for name in robot.frames if name.startswith("foot")]
    return Problem(robot, ContactSet([Contact(foot, foot) for foot in feet]))


def vector_share(problem: Problem, name: str) -> float:
    """Return the share of arithmetic instructions that are vectors."""
    program = vectorized(problem, trace(problem, algorithms.get(name)), [])
    kinds = [i.width > 1 for i in program.instructions if i.kind in ("add", "sub", "mul")]
    return sum(kinds) / len(kinds)


@pytest.mark.parametrize("name", TRACED)
@pytest.mark.parametrize(
    ("limbs", "joints", "mirrored"),
    [(2, 3, True), (4, 2, False), pytest.param(5, 1, True, marks=pytest.mark.slow)],
)
def test_no_algorithm_changes_its_results(limbs, joints, mirrored, name):
    check_limbed(limbs, joints, mirrored, name)


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize(("limbs", "joints"), [(3, 2), (6, 2), (8, 2), (9, 1)])
def test_results_do_not_change(limbs, joints, mirrored):
    check_limbed(limbs, joints, mirrored, "pv_osimr")


def check_limbed(limbs: int, joints: int, mirrored: bool, name: str) -> None:
    problem = problem_of(limbed_robot(limbs, joints, mirrored))
    solver = DelassusSolver(problem, name)
    q = np.random.default_rng(3).uniform(-2, 2, problem.robot.nq)
    expected = textbook(problem, {"q": q})
    assert relative_error(problem, solver.solve(q).matrix, expected) < 1e-11


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("limbs", [2, 4])
def test_most_of_a_limbed_robot_is_vectors(limbs, mirrored):
    problem = problem_of(limbed_robot(limbs, 4, mirrored))
    assert vector_share(problem, "pv_osimr") > 0.5
    packed = vectorized(problem, trace(problem, algorithms.get("pv_osimr")), [])
    scalar = scalar_program(trace(problem, algorithms.get("pv_osimr")), [])
    arithmetic = [
        sum(i.kind in ("add", "sub", "mul", "div") for i in program.instructions)
        for program in (packed, scalar)
    ]
    # Ideal is a limb's share; the trunk and the coupling blocks stay scalar in part.
    assert arithmetic[0] < arithmetic[1] * (1 / limbs + 0.35)


@pytest.mark.parametrize("printed", [3.14159265359, -3.14159265358, 1.57079632679])
def test_limbs_that_a_file_turns_by_printed_angles_are_alike(printed):
    exact = round(printed / (np.pi / 2)) * np.pi / 2
    problem, same = (problem_of(limbed_robot(2, 4, False, turn)) for turn in (printed, exact))
    counts = [trace(p, algorithms.get("auto")).operations.total for p in (problem, same)]
    assert counts[0] == counts[1]
    # From the base: from another root, as auto may choose, the limbs are not alike.
    assert vector_share(problem, "pv_osimr") > 0.5


def test_quadruped_uses_four_lanes():
    robot = Robot.from_urdf(robots.quadruped())
    problem = problem_of_feet(robot, ("LF_FOOT", "RF_FOOT", "LH_FOOT", "RH_FOOT"))
    program = vectorized(problem, trace(problem, algorithms.get("pv_osimr")), [])
    assert sum(i.kind == "mul" and i.width == 4 for i in program.instructions) > 200


def test_blocks_between_arms_and_legs_are_vectors():
    robot = Robot.from_urdf(robots.talos())
    feet, hands = (
        [f"{kind}_{side}_{last}_link" for side in ("left", "right")]
        for kind, last in (("leg", 6), ("arm", 7))
    )
    problem = Problem(robot, [Contact(frame, frame, "surface") for frame in (*feet, *hands)])
    program = vectorized(problem, trace(problem, algorithms.get("pv_osimr")), [])
    for row in range(6):
        vectors = set()
        for foot, hand in ((0, 12), (0, 18), (6, 12), (6, 18)):
            entry = program.instructions[program.outputs[(foot + row) * 24 + hand + 3]]
            assert entry.kind == "extract"
            vectors.add(entry.operands[0])
        assert len(vectors) == 1


def problem_of_feet(robot: Robot, frames: tuple[str, ...]) -> Problem:
    return Problem(robot, [Contact(frame, frame) for frame in frames])


def test_a_chain_has_no_lanes():
    robot = limbed_robot(1, 6, False)
    problem = problem_of(robot)
    assert limb_groups(problem) == []
    program = vectorized(problem, trace(problem, algorithms.get("pv_osimr")), [])
    # What is left are vectors of the three rows of its contact.
    assert {i.width for i in program.instructions if i.kind == "mul"} <= {1, padded(3)}


@pytest.mark.parametrize("seed", range(8))
def test_random_trees_survive_the_pass(seed):
    problem = random_problem(seed, largest=10)
    solver = DelassusSolver(problem)
    q = np.random.default_rng(seed).uniform(-3, 3, problem.robot.nq)
    expected = textbook(problem, {"q": q})
    assert relative_error(problem, solver.solve(q).matrix, expected) < 1e-10


def test_groups_name_the_limbs_inputs_and_contacts():
    robot = Robot.from_urdf(robots.quadruped())
    problem = problem_of_feet(robot, ("LF_FOOT", "RF_FOOT", "LH_FOOT", "RH_FOOT"))
    (group,) = limb_groups(problem)
    assert sorted(sorted(inputs) for inputs in group.inputs) == [
        [0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11],
    ]  # fmt: skip
    assert sorted(group.contacts) == [(0,), (1,), (2,), (3,)]


@pytest.mark.parametrize(("lanes", "width"), [(1, 1), (2, 2), (3, 4), (4, 4), (5, 8), (8, 8)])
def test_padding(lanes, width):
    assert padded(lanes) == width
