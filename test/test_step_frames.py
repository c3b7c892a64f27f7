"""Each step over a joint in the frame in which it needs fewer operations."""

from __future__ import annotations

import numpy as np
import pytest
import robots
from cluster_robots import random_problem
from test_cluster_counts import HUMANOIDS, problem_of

from delassus_ros import Contact, Problem, Robot
from delassus_ros.algorithms.base import Inputs, Outputs, TracedAlgorithm
from delassus_ros.algorithms.mixed_propagation import Decision, delassus, wide_nodes
from delassus_ros.algorithms.spatial import contact_rows
from delassus_ros.algorithms.step_frames import cheaper_at_carriers, in_cheapest_frames
from delassus_ros.algorithms.tree import Tree
from delassus_ros.compiler.trace import trace
from delassus_ros.random_inputs import random_inputs

ROBOTS = (*HUMANOIDS, "mini_cheetah_1ee", "mini_cheetah_4ee", "urdf_mit_humanoid_leg")


class Stepping(TracedAlgorithm):
    """PV-OSIMr with the steps of a given tree."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    def evaluate(self, problem: Problem, x: Inputs) -> Outputs:
        """Compute G; see the base class."""
        rows = contact_rows(problem, x)
        return {"G": delassus(self._tree, rows, x, Decision(wide_nodes(self._tree)))}


def operations(problem: Problem, tree: Tree) -> int:
    return trace(problem, Stepping(tree)).operations.total


@pytest.mark.parametrize("name", ROBOTS)
def test_not_worse_than_one_kind_of_frame_for_all(name: str) -> None:
    problem = problem_of(name)
    tree = Tree.of(problem)
    chosen = operations(problem, in_cheapest_frames(problem, tree))
    assert chosen < operations(problem, tree)
    # A choice that is made joint by joint may miss what two steps share.
    assert chosen < 1.02 * operations(problem, tree.at_carriers(tree.single))


@pytest.mark.parametrize("name", ["mit_humanoid_limbs", "mini_cheetah_4ee"])
def test_every_chosen_step_is_cheaper_there(name: str) -> None:
    """The choice is made from each step's zeros alone, yet the count of the whole agrees."""
    problem = problem_of(name)
    tree = Tree.of(problem)
    chosen = cheaper_at_carriers(problem, tree)
    assert chosen and chosen < tree.single
    best = operations(problem, tree.at_carriers(chosen))
    for i in tree.single:
        assert operations(problem, tree.at_carriers(chosen ^ {i})) > best, i


@pytest.mark.parametrize("seed", range(20))
def test_the_matrix_is_the_same(seed: int) -> None:
    problem = random_problem(seed)
    inputs = random_inputs(problem, seed)
    values = {port: np.ravel(array).tolist() for port, array in inputs.items()}
    tree = Tree.of(problem)
    G, expected = (
        np.array(Stepping(each).evaluate(problem, values)["G"], dtype=float)
        for each in (in_cheapest_frames(problem, tree), tree)
    )
    assert np.linalg.norm(G - expected) < 1e-11 * np.linalg.norm(expected)


def test_mirrored_limbs_are_treated_alike() -> None:
    """The hands' frames of Atlas differ by half a turn, which is no reason to part its arms."""
    robot = Robot.from_urdf(robots.shared("atlas_v5"))
    ends = ("l_foot", "r_foot", "l_hand", "r_hand")
    problem = Problem(robot, [Contact(frame, frame, "surface") for frame in ends])
    tree = Tree.of(problem)
    chosen = {tree.links[i].name for i in cheaper_at_carriers(problem, tree)}
    sides = [{name[2:] for name in chosen if name.startswith(side)} for side in ("l_", "r_")]
    assert sides[0] == sides[1]
