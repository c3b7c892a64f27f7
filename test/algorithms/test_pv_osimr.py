"""The nodes of PV-OSIMr; without any it is PV-OSIM, which is written for itself."""

from __future__ import annotations

import numpy as np
from test_algorithms import many_contacts, sample, trees

from delassus_ros import Contact, Problem, algorithms
from delassus_ros.algorithms.pv_osimr import delassus, wide_nodes
from delassus_ros.algorithms.registry import TreeAlgorithm
from delassus_ros.compiler.ir.trace import trace
from delassus_ros.rbda.trees import tree_of
from delassus_ros.testing import random_problem

WITHOUT = TreeAlgorithm(
    lambda tree, K, x: delassus(tree, K, x, frozenset()), clusters=True, version=1
)
PV_OSIM = algorithms.get("pv_osim")


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


def test_the_problems_have_nodes_with_one_few_and_many_rows() -> None:
    nodes = [len(wide_nodes(tree_of(problem))) for problem in PROBLEMS]
    assert nodes.count(0) >= 8 and sum(n > 0 for n in nodes) >= 8 and max(nodes) == 8


def test_no_node_where_at_most_six_rows_meet() -> None:
    """Two arms meet at link 2: Algorithm 3 has a node there, whatever the number of rows."""
    robot = many_contacts(0).robot

    def nodes(kind: str) -> frozenset[int]:
        tips = [Contact(tip, tip, kind) for tip in ("f5", "f8")]
        return wide_nodes(tree_of(Problem(robot, tips)))

    assert nodes("point") == frozenset()
    assert nodes("surface") == {2}


def test_without_nodes_the_operations_of_pv_osim() -> None:
    for number, problem in enumerate(PROBLEMS):
        pv_osim, without = (trace(problem, a).operations for a in (PV_OSIM, WITHOUT))
        assert pv_osim == without, number


def test_without_nodes_the_matrix_of_pv_osim() -> None:
    for seed, problem in enumerate(PROBLEMS):
        x = sample(problem, seed)
        pv_osim, without = (np.array(a.evaluate(problem, x)["G"]) for a in (PV_OSIM, WITHOUT))
        assert np.abs(without - pv_osim).max() <= 1e-14 * np.abs(pv_osim).max(), seed
