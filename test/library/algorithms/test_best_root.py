"""Operations of `auto` from the best root of floating robots, beside those from the base."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
import robots
from on_floats import solver_on_floats
from oracles.counts import count
from seeds import but_slow

from benchmarks import mechanisms, operation_counts
from delassus import Contact, DelassusSolver, Problem, Robot
from delassus.algorithms import auto
from delassus.algorithms.root_choice import Roots, candidate_roots
from delassus.samples import random_inputs
from delassus.testing.random_trees import SIMPLE, random_contacts, random_robot


def published(name: str) -> Problem:
    if not operation_counts.RECOUNT.is_file():
        pytest.skip("no ../shared/oracle/operation_counts.json beside the repository")
    return next(row for row in operation_counts.rows() if row.name == name).make()


def atlas(frames: Sequence[str]) -> Problem:
    robot = Robot.from_urdf(robots.shared("atlas_v5"))
    return Problem(robot, [Contact(frame, frame, "surface") for frame in frames])


def trotting() -> Problem:
    robot = Robot.from_urdf(robots.shared("go1_unitree"))
    return Problem(robot, [Contact(f, f, "point") for f in ("FL_foot", "RR_foot")])


def quadruped() -> Problem:
    robot = Robot.from_urdf(robots.quadruped())
    feet = robots.FEET
    return Problem(robot, [Contact(f, f, "surface") for f in feet])


BEST: dict[str, tuple[Callable[[], Problem], int, int]] = {
    "Atlas, a Shadow hand": (
        lambda: published("Atlas + 1 Shadow hand 5x3D, K=[0 I]"), 10594, 7679,
    ),
    "Atlas, two Shadow hands": (
        lambda: published("Atlas + 2 Shadow hands 10x3D, K=[0 I]"), 21681, 18913,
    ),
    "Atlas, two Shadow hands, feet": (
        lambda: published("Atlas + 2 Shadow hands 10x3D + feet 2x6D, K=[0 I], I6"), 29968, 29541,
    ),
    "Atlas, one foot": (lambda: atlas(["l_foot"]), 4543, 3452),
    "Atlas, two hands": (lambda: atlas(["l_hand", "r_hand"]), 7862, 6379),
    "Atlas, two feet": (lambda: published("Atlas feet 2x6D, K=I6"), 6408, 5929),
    "Atlas, feet of four points": (
        lambda: published("Atlas feet 2x(4x3D), K=[-skew(p) I] numeric p"), 7308, 6826,
    ),
    "Atlas, feet and hands": (lambda: published("Atlas feet+hands 4x6D, K=I6"), 12333, 12318),
    "Go1, two feet": (trotting, 1946, 1788),
    "Go1, four feet": (lambda: published("Go1 (altered) 4x3D feet, K=[0 I]"), 3111, 3111),
    "quadruped, four soles": (quadruped, 6617, 5681),
    "stem of 10, branches of 7": (lambda: mechanisms.stem(10, 1, False), 4831, 4602),
    "stem of 50, 7 branches": (lambda: mechanisms.stem(50, 7, True), 108209, 107062),
    "chain of 32, tip": (lambda: mechanisms.chain(32, "tip"), 15771, 6528),
}  # fmt: skip
"""Problem, operations of the cheapest route from the base, and from the best root [1]."""


SLOW = (*list(BEST)[1:3], *list(BEST)[6:8], "stem of 50, 7 branches")


@pytest.mark.parametrize("name", but_slow([*BEST], *SLOW))
def test_operations_from_the_best_root(name: str) -> None:
    make, from_base, best = BEST[name]
    problem = make()
    found = count(problem, "auto")
    assert found <= best
    assert found <= from_base <= count(problem, "pv_osimr")


CHAINS = {
    (8, "every moving link"): 13405,
    (16, "every moving link"): 50952,
    (16, "last half of links"): 16827,
    (32, "last 6 links"): 20647,
    (32, "last half of links"): 58373,
}
"""Joints and links with contacts, and operations from the base with the best order of products."""


@pytest.mark.parametrize("chain", but_slow([*CHAINS], *[*CHAINS][1:]))
def test_chains_with_contacts_on_neighbouring_links(chain: tuple[int, str]) -> None:
    """Products spread through the nested nodes, as in KJR; without that up to 5 % more."""
    assert count(mechanisms.chain(*chain), "auto") <= CHAINS[chain]


def test_auto_has_the_matrix_of_the_base() -> None:
    """Of the base's tree and of a tree beside it, in world axes."""
    problem = quadruped()
    robot = problem.robot
    for axes in ("contact", "world"):
        turned = Problem(robot, problem.contacts, axes)
        routes = auto.decide(turned, False).routes
        assert [robot.bodies[route.root].name for _, route in routes] == ["LF_HIP"]
        given = random_inputs(turned, 1)
        expected, found = (
            solver_on_floats(turned, name).solve(**given).matrix for name in ("pv_osimr", "auto")
        )
        assert np.abs(found - expected).max() < 1e-12 * np.abs(expected).max()


def test_the_base_is_kept_where_other_outputs_share_more_with_it() -> None:
    """Derivatives repeat the articulated inertias of G, if both have the same root."""
    problem = quadruped()
    assert auto.decide(problem, False).routes[0][1].root != 0
    both = Problem(problem.robot, problem.contacts, outputs=("G", "dG"))
    assert auto.decide(both, False).routes[0][1].root == 0
    assert count(both, "auto") <= count(both, "pv_osimr")
    hand = published("Atlas + 1 Shadow hand 5x3D, K=[0 I]")
    jacobian = Problem(hand.robot, hand.contacts, outputs=("G", "J"))
    assert count(jacobian, "auto") < 0.9 * count(jacobian, "pv_osimr")


def test_starts_of_the_search_are_few() -> None:
    """Alike limbs have one start, chains their ends and meeting points."""
    names = {
        name: [problem.robot.bodies[k].name for k in roots(problem).starts]
        for name, problem in (
            ("one", atlas(["l_foot"])), ("two", atlas(["l_foot", "r_foot"])), ("trot", trotting()),
        )
    }  # fmt: skip
    assert names["one"] == ["l_foot"]
    assert names["two"] == ["l_foot"]
    assert len(names["trot"]) == 1
    chain = mechanisms.chain(32, "tip")
    assert roots(chain).starts == [32]


def test_the_search_walks_inside_one_of_alike_limbs() -> None:
    """On Atlas' left leg, from the pelvis to the foot."""
    problem = atlas(["l_foot", "r_foot"])
    bodies, beside = problem.robot.bodies, roots(problem).beside
    leg = ("pelvis", "l_uglut", "l_lglut", "l_uleg", "l_lleg", "l_talus", "l_foot")
    assert tuple(bodies[k].name for k in beside) == leg
    assert sum(map(len, beside.values())) == 2 * (len(leg) - 1)


def roots(problem: Problem) -> Roots:
    return candidate_roots(problem, all_of(problem))


def all_of(problem: Problem) -> frozenset[int]:
    return frozenset(range(len(problem.contacts)))


@pytest.mark.parametrize("seed", range(4))
def test_auto_is_never_above_its_count_from_the_base(seed: int) -> None:
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, SIMPLE, floating=True)
    problem = Problem(robot, random_contacts(rng, robot))
    routes = auto._routes(problem, generic=False, rooted=False)
    assert all(route.root == 0 for _, route in routes)
    at_base = auto.OperationCounter(problem, auto.tree_of(problem), False)(
        lambda tree, K, x: auto._combined(problem, tree, x, routes)
    )
    assert count(problem, "auto") <= at_base


def test_a_kernel_takes_the_root_of_the_shortest_program() -> None:
    """From the hip less operations, but the other limbs are no longer four alike."""
    problem, at_hip = quadruped(), count(quadruped(), "auto")
    solver, base = DelassusSolver(problem, "auto"), DelassusSolver(problem, "pv_osimr")
    assert at_hip < 0.87 * base.operations.total
    assert solver.operations == base.operations
    one = atlas(["l_foot"])
    solver, base = DelassusSolver(one, "auto"), DelassusSolver(one, "pv_osimr")
    assert solver.operations.total < 0.77 * base.operations.total
    q = random_inputs(one, 2)["q"]
    assert np.allclose(solver.solve(q).matrix, base.solve(q).matrix, rtol=1e-11, atol=1e-11)
    Q = np.array([random_inputs(one, seed)["q"] for seed in range(3)])
    found = solver.solve_batch(Q).matrix
    assert np.allclose(found, base.solve_batch(Q).matrix, rtol=1e-11, atol=1e-11)
