"""Configurations that close loops, and the definition of G there."""

from __future__ import annotations

import numpy as np
import pytest
from cluster_robots import kkt
from cluster_robots import random_problem as random_clusters
from linkages import REFERENCE, closed_four_bar, four_bar, same_turn

from delassus_ros import Closure, Contact, Problem
from delassus_ros.algorithms.dense import definition
from delassus_ros.closure.samples import closed_inputs
from delassus_ros.errors import NumericalError
from delassus_ros.model import LoopKind
from delassus_ros.testing import random_problem
from delassus_ros.testing.conformance import ConformanceError, textbook


@pytest.mark.parametrize("seed", range(8))
def test_the_definition_is_that_of_the_dense_equations(seed):
    problem = random_clusters(seed)
    for inputs in closed_inputs(problem, 2, seed):
        expected = kkt(problem, inputs)
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


def test_what_hardly_ever_closes_is_named():
    """Independent crank, the rocker's limits shut it in."""
    at = REFERENCE["rocker"]
    robot = four_bar(rocker_limits=(at - 1e-13, at + 1e-13))
    problem = Problem(robot, [Contact("tip", "tip")])
    with pytest.raises(NumericalError, match="'four_bar': only .* of 4 .*outside_limits"):
        closed_inputs(problem, 4, closure=Closure(robot, REFERENCE))
