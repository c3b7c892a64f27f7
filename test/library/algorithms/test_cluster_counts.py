"""Counts of operations of the cluster algorithms: against each other, and how they grow."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import robots
from cluster_robots import LOOSE, OVAL, Builder, geared_chain
from oracles import paper_library
from oracles.counts import count

from benchmarks import oracle
from delassus import Contact, Problem, Robot, algorithms
from delassus.compiler.build import checked_positions
from delassus.compiler.ir.trace import trace
from delassus.compiler.passes.vectorize import scalar_program, vectorized
from delassus.model import WORLD, Body, Joint, JointKind, Transform
from delassus.rbda import rotors
from delassus.rbda.trees import rewritten_tree, tree_of
from delassus.testing.random_trees import random_inertia

HUMANOIDS = (
    "mit_humanoid_1ee", "mit_humanoid_feet", "mit_humanoid_limbs", "mit_humanoid_links",
    "tello_with_arms_1ee", "tello_feet", "tello_limbs", "jvrc1", "jvrc1_1ee", "jvrc1_feet",
)  # fmt: skip
FLOORS = {
    "chain_GT_12": 7510,
    "mini_cheetah_1ee": 2085,
    "mit_humanoid_1ee": 4008,
    "mit_humanoid_feet": 6220,
    "tello_with_arms_1ee": 3554,
    "tello_feet": 5411,
    "jvrc1_1ee": 5498,
    "jvrc1_feet": 7581,
}
"""What the prototype, the first, untuned pv_osimr, needed."""


WHERE = {"feet": ("toe", "heel"), "limbs": ("toe", "hand"), "links": ("toe", "hand")}
"""Which points of the file touch besides its end effector; ``links``: at their links' origins."""


@cache
def problem_of(name: str) -> Problem:
    """Return a robot of the oracle; with a suffix of WHERE, more of it touches.

    The differentials of Tello are couplings with their ratios at one state, so that counts are
    without those of the loop Jacobian, as the prototype's are; of ``tello_limbs`` they are whole.
    """
    if name.startswith("jvrc1"):
        return jvrc1(name)
    robot, _, where = name.rpartition("_")
    if where not in WHERE:
        return paper_library.problem_of(name)
    whole = {"mit_humanoid": "mit_humanoid_1ee", "tello": "tello_with_arms_1ee"}[robot]
    problem = paper_library.problem_of(whole)
    points = (
        point["name"] for point in paper_library.data(whole)["contact_points_not_ee"]
        if any(word in point["name"] for word in WHERE[where])
    )  # fmt: skip
    contacts = oracle.contacts_of(whole, *points)
    if where == "links":
        contacts = [Contact(c.name, c.frame, "surface") for c in contacts]
    problem = Problem(problem.robot, contacts)
    return paper_library.with_differentials(problem) if name == "tello_limbs" else problem


def jvrc1(name: str) -> Problem:
    """Return JVRC-1 with one toe, with toes and heels, or with its ankles in touch."""
    robot = Robot.from_urdf(robots.shared("grbda_jvrc1_humanoid"), "floating")
    ankles = ("left-ankle-pitch", "right-ankle-pitch")
    if name == "jvrc1":
        return Problem(robot, [Contact(each, each, "surface") for each in ankles])
    ends = (0.1,) if name == "jvrc1_1ee" else (0.1, -0.05)
    return Problem(robot, [
        Contact(f"{ankle} {x}", ankle, "surface", Transform(np.eye(3), np.array([x, 0.0, -0.1])))
        for ankle in (ankles[:1] if name == "jvrc1_1ee" else ankles)
        for x in ends
    ])  # fmt: skip


@pytest.mark.parametrize(
    "robot", dict.fromkeys([*paper_library.CONSTANT, *paper_library.VARYING, *HUMANOIDS])
)
def test_pv_osimr_needs_a_tenth_less_than_efpa(robot: str) -> None:
    problem = problem_of(robot)
    assert count(problem, "pv_osimr") <= 0.9 * count(problem, "efpa")


@pytest.mark.parametrize("robot", [*FLOORS, "tello_limbs", "jvrc1"])
def test_pv_osimr_needs_less_than_projection_on_legged_robots(robot: str) -> None:
    problem = problem_of(robot)
    assert count(problem, "pv_osimr") < count(problem, "ltl")


@pytest.mark.parametrize("robot", FLOORS)
def test_not_more_than_the_prototype(robot: str) -> None:
    assert count(problem_of(robot), "pv_osimr") <= FLOORS[robot]


def test_projection_needs_not_more_than_the_prototype() -> None:
    assert count(problem_of("mini_cheetah_4ee"), "ltl") <= 6610


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("links", [15, 18, 24])
@pytest.mark.parametrize("shape", ["round", LOOSE])
def test_pv_osimr_needs_less_than_projection_on_geared_chains(
    links: int, shape: str, seed: int
) -> None:
    problem = geared_chain(links, shape=shape, seed=seed)
    assert count(problem, "pv_osimr") < count(problem, "ltl")


@pytest.mark.parametrize(
    "robot", dict.fromkeys([*paper_library.CONSTANT, *paper_library.VARYING, *HUMANOIDS])
)
def test_auto_takes_the_least(robot: str) -> None:
    problem = problem_of(robot)
    best = min(count(problem, name) for name in ("efpa", "pv_osimr", "ltl"))
    assert count(problem, "auto") <= best


@pytest.mark.parametrize("robot", ["mini_cheetah_1ee", "mit_humanoid_1ee", "tello_feet"])
def test_redistribution_saves_operations(robot: str) -> None:
    problem = problem_of(robot)
    for name in ("efpa", "pv_osimr", "ltl"):
        spanning = rewritten_tree(problem, lambda given, held: rotors.spanning(given))
        whole = trace(problem, algorithms.get(name), tree=spanning).operations
        left = trace(problem, algorithms.get(name)).operations
        assert left.total < whole.total, name


def test_limbs_with_clusters_become_vector_lanes() -> None:
    """Four legs of one build with an unround rotor at the hip and a belt, at four places."""
    build = Builder(0, alike=True)
    build.joints.append(Joint("root", JointKind.ROOT, WORLD))
    build.bodies.append(Body("base", random_inertia(build.rng)))
    tips = []
    for corner in range(4):
        build.rng = np.random.default_rng(5)
        hip = build.gear(0, OVAL, parallel=False)
        place = build.joints[hip].placement
        elsewhere = Transform(place.rotation, place.translation + 0.1 * corner)
        build.joints[hip] = replace(build.joints[hip], placement=elsewhere)
        tips.append(build.belt(hip, LOOSE))
    contacts = [Contact(f"c{tip}", f"f{tip}", "surface") for tip in tips]
    problem = Problem(build.robot(), contacts)
    assert len(tree_of(problem).clusters) == 8
    for name in ("pv_osimr", "efpa", "ltl"):
        traced = trace(problem, algorithms.get(name))
        program = vectorized(problem, traced, checked_positions(problem))
        scalar = scalar_program(traced, checked_positions(problem))
        wide = [each for each in program.instructions if each.width >= 4]
        assert len(wide) > 1000, name
        assert len(program.instructions) < 0.6 * len(scalar.instructions), name
