"""PV-OSIMr and PV-OSIM as published, and the mixture that decides as they do."""

from __future__ import annotations

import numpy as np
import pytest
from test_algorithms import many_contacts, sample, trees
from test_large_systems import LARGE

from delassus_ros import Contact, Problem, algorithms
from delassus_ros.algorithms.base import Inputs, Outputs, TracedAlgorithm
from delassus_ros.algorithms.counting import is_large
from delassus_ros.algorithms.expressions.graph import CALL
from delassus_ros.algorithms.mixed_propagation import Decision, delassus, wide_nodes
from delassus_ros.algorithms.spatial import contact_rows
from delassus_ros.algorithms.tree import Tree
from delassus_ros.compiler.trace import trace
from delassus_ros.testing import random_problem


class Mixture(TracedAlgorithm):
    """The mixture with PV-OSIMr's nodes."""

    def decision(self, tree: Tree) -> Decision:
        return Decision(wide_nodes(tree))

    def evaluate(self, problem: Problem, x: Inputs) -> Outputs:
        """Compute G; see the base class."""
        tree = Tree.of(problem)
        return {"G": delassus(tree, contact_rows(problem, x), x, self.decision(tree))}


class NoNodes(Mixture):
    """The mixture without nodes."""

    def decision(self, tree: Tree) -> Decision:
        return Decision()


PUBLISHED, MIXTURE = algorithms.get("pv_osimr"), Mixture()


def several_contacts() -> list[Problem]:
    """Random trees, and one where nodes are nested; with one, few and many rows per link."""
    found = [random_problem(*tree) for tree in trees()[::8]]
    rich = many_contacts(0)
    for size in (9, 6, 3):
        found.append(Problem(rich.robot, rich.contacts[-size:]))
    kinds = ("point", "surface")
    tips = [Contact(f"{kind}{k}", f"f{k}", kind) for k in (4, 5, 8) for kind in kinds]
    return [*found, rich, Problem(rich.robot, tips)]


PROBLEMS = several_contacts()


def counts(problem: Problem, generic: bool) -> list[str]:
    return [str(trace(problem, each, generic).operations) for each in (PUBLISHED, MIXTURE)]


def test_the_problems_have_nodes_with_one_few_and_many_rows() -> None:
    nodes = [len(wide_nodes(Tree.of(problem))) for problem in PROBLEMS]
    assert nodes.count(0) >= 8 and sum(n > 0 for n in nodes) >= 8 and max(nodes) == 8


def matrices(problem: Problem, seed: int) -> list[np.ndarray]:
    x = sample(problem, seed)
    return [np.array(each.evaluate(problem, x)["G"]) for each in (PUBLISHED, MIXTURE)]


def test_equal_on_floats() -> None:
    for seed, problem in enumerate(PROBLEMS):
        published, mixture = matrices(problem, seed)
        assert np.array_equal(published, mixture), seed


@pytest.mark.parametrize("generic", [False, True])
def test_the_same_operations(generic: bool) -> None:
    for number, problem in enumerate(PROBLEMS):
        published, mixture = counts(problem, generic)
        assert published == mixture, number


def test_without_nodes_the_operations_of_pv_osim() -> None:
    for number, problem in enumerate(PROBLEMS):
        pv_osim, mixture = (
            trace(problem, each).operations for each in (algorithms.get("pv_osim"), NoNodes())
        )
        assert pv_osim == mixture, number


def test_the_same_operations_in_routines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small systems made to take the way of large ones."""
    monkeypatch.setattr("delassus_ros.algorithms.counting._LARGE", 0)
    for number, problem in enumerate(PROBLEMS):
        published, mixture = counts(problem, False)
        assert published == mixture, number


@pytest.mark.parametrize("which", ["tree of 150 on the world", "quadruped, m=120"])
def test_the_same_operations_and_calls_in_large_systems(which: str) -> None:
    problem = LARGE[which]()
    assert is_large(problem)
    traces = [trace(problem, each) for each in (PUBLISHED, MIXTURE)]
    assert traces[0].operations == traces[1].operations
    called = [sum(t.graph.nodes[i][0] == CALL for i in t.live) for t in traces]
    assert called[0] == called[1] > 50
    published, mixture = matrices(problem, 1)
    assert np.array_equal(published, mixture)
