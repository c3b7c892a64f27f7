"""Configurations that close loops, and the definition of G there."""

from __future__ import annotations

import numpy as np
import pytest
from cluster_robots import random_problem as random_clusters
from linkages import REFERENCE, closed_four_bar, four_bar, same_turn
from oracles.textbook import outputs
from urdf_text import joint, link, robot_xml

from delassus import Closure, Contact, Problem, Robot
from delassus.algorithms.dense import definition
from delassus.closure.samples import closed_inputs
from delassus.errors import NumericalError
from delassus.model import LoopKind
from delassus.testing import random_problem
from delassus.testing.conformance import ConformanceError, textbook


@pytest.mark.parametrize("seed", range(8))
def test_the_definition_is_that_of_the_dense_equations(seed):
    problem = random_clusters(seed)
    for inputs in closed_inputs(problem, 2, seed):
        expected = outputs(problem, inputs)["G"]
        error = np.linalg.norm(definition(problem, inputs) - expected)
        assert error < 1e-10 * np.linalg.norm(expected)


def test_of_open_chains_it_is_the_textbook():
    problem = random_problem(5)
    (inputs,) = closed_inputs(problem, 1, seed=3)
    expected = textbook(problem, inputs)
    error = np.linalg.norm(definition(problem, inputs) - expected)
    assert error < 1e-11 * np.linalg.norm(expected)


def test_the_textbook_is_for_open_chains():
    problem = Problem(four_bar(LoopKind.POINT), [Contact("tip", "tip")])
    with pytest.raises(ConformanceError, match="textbook: it is for open chains"):
        textbook(problem, {"q": np.zeros(problem.robot.nq)})


@pytest.mark.parametrize("kind", [LoopKind.POINT, LoopKind.HINGE])
def test_configurations_close_the_four_bar_near_its_reference(kind):
    robot = four_bar(kind)
    problem = Problem(robot, [Contact("tip", "tip")])
    closure = Closure(robot, REFERENCE)
    found = closed_inputs(problem, 20, closure=closure)
    cranks = {float(inputs["q"][0]) for inputs in found}
    assert len(cranks) == 20
    for inputs in found:
        assert abs(inputs["q"][0] - REFERENCE["crank"]) <= 0.5
        assert same_turn(inputs["q"], closed_four_bar(inputs["q"][0]))


def test_couplings_are_kept_within_the_limits_of_what_they_turn():
    problem = random_clusters(1)
    for inputs in closed_inputs(problem, 10):
        for coupling in problem.robot.couplings:
            places = {n: o for n, o in zip(
                (joint.name for joint in problem.robot.joints), problem.robot.q_offsets,
                strict=True,
            )}  # fmt: skip
            rest = sum(ratio * inputs["q"][places[name]] for name, ratio in coupling.ratios)
            assert abs(rest) < 1e-9


def test_grippers_that_are_shut_at_the_reference_open_as_far_as_they_can():
    def slide(name: str, lower: float, upper: float, mimic: str = "") -> str:
        inside = f'<axis xyz="0 1 0"/><limit lower="{lower}" upper="{upper}"/>{mimic}'
        return link(name) + joint(name, "palm", name, "prismatic", inside)

    text = robot_xml(
        link("palm"),
        slide("one", 0.0, 0.1),
        slide("ahead", 0.0, 0.04, '<mimic joint="one" multiplier="2"/>'),
        slide("against", -0.03, 0.0, '<mimic joint="one" multiplier="-1"/>'),
        slide("other", 0.0, 0.05),
        slide("third", -0.01, 0.0, '<mimic joint="other" multiplier="-0.5"/>'),
    )
    robot = Robot.from_urdf(text, "fixed")
    found = closed_inputs(Problem(robot, [Contact("tip", "ahead")]), 200)
    for name, least, most in (("one", 0.0, 0.02), ("other", 0.0, 0.02)):
        at = [float(inputs["q"][robot.joint_names.index(name)]) for inputs in found]
        assert least <= min(at) < 0.1 * most and 0.9 * most < max(at) <= most
    for inputs in found:
        one, ahead, against, other, third = (
            inputs["q"][robot.joint_names.index(name)]
            for name in ("one", "ahead", "against", "other", "third")
        )
        np.testing.assert_allclose([ahead, against, third], [2 * one, -one, -0.5 * other])


def test_what_hardly_ever_closes_is_named():
    """Independent crank, the rocker's limits shut it in."""
    at = REFERENCE["rocker"]
    robot = four_bar(rocker_limits=(at - 1e-13, at + 1e-13))
    problem = Problem(robot, [Contact("tip", "tip")])
    with pytest.raises(NumericalError, match="'four_bar': only .* of 4 .*outside_limits"):
        closed_inputs(problem, 4, closure=Closure(robot, REFERENCE))
