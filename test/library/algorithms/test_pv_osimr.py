"""The nodes of PV-OSIMr and of Algorithm 3; without any it is PV-OSIM, written for itself."""

from __future__ import annotations

from functools import cache

import numpy as np
from on_floats import flat
from test_algorithms import many_contacts

from benchmarks.mechanisms import SKEW, Links, rotation
from delassus import Contact, Problem, algorithms
from delassus.algorithms.pv_osimr import delassus, joining_nodes, wide_nodes
from delassus.algorithms.registry import TreeAlgorithm
from delassus.compiler.ir.trace import trace
from delassus.model import WORLD
from delassus.rbda.trees import tree_of
from delassus.samples import random_inputs
from delassus.testing import ALL, random_problem

WITHOUT = TreeAlgorithm(
    lambda tree, K, x: delassus(tree, K, x, frozenset()), clusters=True, version=1
)
PV_OSIM = algorithms.get("pv_osim")
PV_OSIMR = algorithms.get("pv_osimr")
STRICT = algorithms.get("pv_osimr_strict")


@cache
def several_contacts() -> list[Problem]:
    """Random trees, and one where nodes are nested; with one, few and many rows per link."""
    found = [random_problem(seed) for seed in range(0, 100, 8)]
    found += [random_problem(seed, ALL) for seed in range(104, 150, 8)]
    found += [random_problem(seed, ALL, "world") for seed in range(152, 200, 8)]
    rich = many_contacts(0)
    for size in (9, 6, 3):
        found.append(Problem(rich.robot, rich.contacts[-size:]))
    kinds = ("point", "surface")
    tips = [Contact(f"{kind}{k}", f"f{k}", kind) for k in (4, 5, 8) for kind in kinds]
    return [*found, rich, Problem(rich.robot, tips)]


def test_the_problems_have_nodes_with_one_few_and_many_rows() -> None:
    nodes = [len(wide_nodes(tree_of(problem))) for problem in several_contacts()]
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
    for number, problem in enumerate(several_contacts()):
        pv_osim, without = (trace(problem, a).operations for a in (PV_OSIM, WITHOUT))
        assert pv_osim == without, number


def test_without_nodes_the_matrix_of_pv_osim() -> None:
    for seed, problem in enumerate(several_contacts()):
        x = flat(random_inputs(problem, seed))
        pv_osim, without = (np.array(a.evaluate(problem, x)["G"]) for a in (PV_OSIM, WITHOUT))
        assert np.abs(without - pv_osim).max() <= 1e-14 * np.abs(pv_osim).max(), seed


def test_algorithm_3_has_a_node_wherever_paths_of_contacts_join() -> None:
    """Two arms meet at link 2; the contacts of one link are one end effector of the paper."""
    robot = many_contacts(0).robot

    def nodes(*contacts: Contact) -> frozenset[int]:
        return joining_nodes(tree_of(Problem(robot, contacts)))

    tips = [Contact(tip, tip, "point") for tip in ("f5", "f8")]
    assert nodes(*tips) == {2}
    assert nodes(*tips[:1]) == nodes(tips[0], Contact("again", "f5", "point")) == frozenset()
    # Nine rows on one link; and a link on the way to another contact.
    more = [Contact(f"more{k}", "f5", "point") for k in range(2)]
    assert nodes(tips[0], *more) == {5}
    assert nodes(tips[0], Contact("on the way", "f2", "point")) == {2}


def with_few_rows(problem: Problem) -> Problem:
    """Return the robot with contacts of two rows on up to six of its frames."""
    robot = problem.robot
    frames = [name for name, frame in robot.frames.items() if frame.body != WORLD][-6:]
    rows = np.eye(6)
    contacts = [Contact(f"c{k}", f, rows[k % 5 : k % 5 + 2]) for k, f in enumerate(frames)]
    return Problem(robot, contacts)


def test_algorithm_3_has_the_matrix_of_fewer_nodes() -> None:
    different = 0
    for seed, problem in enumerate([*several_contacts(), *map(with_few_rows, several_contacts())]):
        tree = tree_of(problem)
        assert wide_nodes(tree) <= joining_nodes(tree), seed
        different += wide_nodes(tree) != joining_nodes(tree)
        x = flat(random_inputs(problem, seed))
        fewer, strict = (np.array(a.evaluate(problem, x)["G"]) for a in (PV_OSIMR, STRICT))
        assert np.abs(strict - fewer).max() <= 1e-12 * np.abs(fewer).max(), seed
    assert different > 15


def test_few_rows_that_pass_unchanged_are_cheaper_than_a_node() -> None:
    """Two tips with one row each on a stem; where more than six rows meet, nodes are the same."""
    build, forward = Links(), np.array([1.0, 0.0, 0.0])
    top = build.chain(0, 4, rotation(SKEW, 1.0), forward)
    tips = [f"link{build.chain(top, 2, rotation(SKEW, 1.0), forward)}" for _ in range(2)]
    robot = build.robot("stem")

    def counts(rows: np.ndarray) -> list[int]:
        problem = Problem(robot, [Contact(tip, tip, rows) for tip in tips])
        return [trace(problem, a, generic=True).operations.total for a in (PV_OSIMR, STRICT)]

    fewer, strict = counts(np.eye(6)[5:])
    assert strict > 1.3 * fewer
    fewer, strict = counts(np.eye(6))
    assert strict == fewer
