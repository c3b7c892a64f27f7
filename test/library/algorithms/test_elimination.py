"""Elimination in any order: the same matrix; PV-OSIM's and LTL's orders cost what they cost."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from on_floats import flat
from seeds import but_slow, seeds

from benchmarks import cases
from delassus import Problem, algorithms
from delassus.algorithms.counting import OperationCounter
from delassus.algorithms.elimination import JointPlaces, decide, delassus
from delassus.algorithms.ltl import ltl
from delassus.algorithms.pv_osim import pv_osim
from delassus.compiler.ir.trace import trace
from delassus.model import WORLD
from delassus.rbda.spatial import contact_rows
from delassus.rbda.trees import tree_of
from delassus.samples import random_inputs
from delassus.testing import ALL, SIMPLE, random_problem
from delassus.testing.conformance import relative_error, textbook


def anywhere(tree, rng: np.random.Generator) -> JointPlaces:
    """Return an order in which each joint goes anywhere on its way to the root."""
    places = []
    for i, link in enumerate(tree.links):
        way = tree.path(i)
        free = tree.links[way[-1]].motion == "free"
        choices = [i] if link.motion == "free" else way if free else [*way, WORLD]
        places.append(int(rng.choice(choices)))
    return JointPlaces(tuple(places))


@pytest.mark.parametrize("seed", seeds(40))
def test_every_order_gives_the_same_matrix(seed: int) -> None:
    problem = random_problem(seed, ALL if seed % 2 else SIMPLE, "world" if seed % 3 else "contact")
    inputs = random_inputs(problem, seed)
    x = flat(inputs)
    tree, expected = tree_of(problem), textbook(problem, inputs)
    K = contact_rows(problem, tree, x)
    rng = np.random.default_rng(seed)
    for order in (
        JointPlaces.pv_osim(tree),
        JointPlaces.ltl(tree),
        *(anywhere(tree, rng) for _ in range(5)),
    ):
        G = np.array(delassus(tree, K, x, order), dtype=float)
        assert relative_error(problem, G, expected) < 1e-10, order
        assert np.array_equal(G, G.T)


def loaded(name: str) -> Problem:
    case = next(case for case in cases.CASES if case.name == name)
    try:
        return case.load()
    except cases.AbsentError as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize("generic", [False, True])
@pytest.mark.parametrize(
    "name", but_slow(["panda", "ur5", "quadruped", "talos", "atlas", "g1"], "talos", "atlas", "g1")
)
def test_an_order_costs_what_the_algorithm_costs_that_has_it(name: str, generic: bool) -> None:
    problem = loaded(name)
    tree = tree_of(problem)
    count = OperationCounter(problem, tree, generic)
    twins = {pv_osim: JointPlaces.pv_osim(tree), ltl: JointPlaces.ltl(tree)}
    for twin, order in twins.items():
        own = count(partial(delassus, order=order))
        assert own == pytest.approx(count(twin), rel=0.005), twin.__name__
    found = count(partial(delassus, order=decide(problem, generic, tree_of(problem))))
    assert found <= min(count(partial(delassus, order=order)) for order in twins.values())


@pytest.mark.parametrize(("name", "share"), [("panda", 0.96), ("ur5", 0.9)])
def test_an_arm_takes_fewer_operations_than_any_published_algorithm(
    name: str, share: float
) -> None:
    problem = loaded(name)
    own, auto = (
        trace(problem, algorithms.get(each)).operations.total for each in ("elimination", "auto")
    )
    assert own < share * auto


def test_an_arm_keeps_its_last_joints_for_later_ones_and_is_no_twin() -> None:
    problem = loaded("panda")
    tree, order = tree_of(problem), decide(problem, False, tree_of(problem))
    assert order not in (JointPlaces.pv_osim(tree), JointPlaces.ltl(tree))
    assert all(p == i or p == WORLD or p in tree.path(i) for i, p in enumerate(order.places))
