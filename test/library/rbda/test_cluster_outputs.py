"""J and M⁻¹Jᵀ of closed robots: of the independent velocities, against the dense equations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from cluster_robots import LOOSE, OVAL, Builder, random_problem
from linkages import at, stretched_four_bar, within
from on_floats import outputs_on_floats
from oracles import relative
from oracles.cases import with_outputs

from delassus import Contact, DelassusSolver, Problem, Robot, algorithms
from delassus.closure import Closure
from delassus.compiler.ir.trace import trace
from delassus.dynamics import Dynamics
from delassus.model import WORLD, Body, Frame, Joint, JointKind
from delassus.samples import random_inputs
from delassus.testing.random_trees import random_inertia

EVERYTHING = ("G", "J", "MinvJT")
EXACT = ("auto", "efpa", "pv_osimr", "ltl")


def on_floats(problem: Problem, name: str, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    found = outputs_on_floats(problem, name, inputs)
    return [found[output] for output in EVERYTHING]


def test_an_independent_rotor_that_the_tree_has_lost() -> None:
    """Its rate is named and counted, though only the link is left."""
    build = Builder(2)
    link = build.add(build.add(WORLD))
    rotor = build.rotor(link)
    ratio = 6.5
    build.couple((rotor, 1.0), (link, -ratio))
    robot = build.robot()
    plain, by_rotor = (
        robot.with_constraints(independent=["j0", build.joints[i].name]) for i in (link, rotor)
    )
    contacts = [Contact("tip", f"f{link}", "surface")]
    of_link, of_rotor = (
        Problem(robot, contacts, outputs=EVERYTHING) for robot in (plain, by_rotor)
    )
    assert of_link.velocities == ("j0", build.joints[link].name)
    assert of_rotor.velocities == ("j0", build.joints[rotor].name)
    inputs = random_inputs(of_link, 0)
    (G, J, W), (G_r, J_r, W_r) = (
        on_floats(problem, "pv_osimr", inputs) for problem in (of_link, of_rotor)
    )
    assert relative(G_r, G) <= 1e-10
    assert relative(J_r * [1.0, ratio], J) <= 1e-10
    assert relative(W_r, W * [[1.0], [ratio]]) <= 1e-10


@pytest.mark.parametrize("shape", [OVAL, LOOSE])
def test_a_push_at_a_contact_is_what_forward_dynamics_says(shape: str) -> None:
    """M⁻¹ Jᵀ f by C-ABA: the difference that the torques Jᵀ f make."""
    build = Builder(11)
    tip = build.belt(build.gear(WORLD, shape), shape)
    problem = Problem(build.robot(), [Contact("tip", f"f{tip}", "surface")], outputs=EVERYTHING)
    inputs = random_inputs(problem, 4)
    _, J, W = on_floats(problem, "pv_osimr", inputs)
    dynamics = Dynamics(problem.robot)
    assert dynamics.joints == problem.velocities
    force = np.random.default_rng(0).normal(size=len(J))
    rest = np.zeros(dynamics.size)
    still = dynamics.forward(inputs["q"], rest, rest)
    pushed = dynamics.forward(inputs["q"], rest, J.T @ force)
    assert relative(pushed - still, W @ force) <= 1e-9


@pytest.mark.parametrize("name", EXACT)
def test_a_generic_trace_counts_them(name: str) -> None:
    problem = with_outputs(random_problem(3), EVERYTHING)
    algorithm = algorithms.get(name)
    counts = [trace(problem, algorithm, generic=g).operations.total for g in (False, True)]
    assert (
        counts[1]
        >= counts[0]
        > trace(Problem(problem.robot, problem.contacts, problem.axes), algorithm).operations.total
    )


def test_velocities_are_named_by_their_joints() -> None:
    build = Builder(4)
    build.joints.append(Joint("root", JointKind.ROOT, WORLD))
    build.bodies.append(Body("base", random_inertia(build.rng)))
    slide = build.add(0, kind=JointKind.PLANAR)
    link = build.add(slide)
    build.couple((build.rotor(link), 1.0), (link, -9.0))
    problem = Problem(build.robot(), [Contact("tip", f"f{link}", "point")], outputs={"J"})
    independent = problem.velocities[-1]
    assert independent in (build.joints[link].name, build.joints[link + 1].name)
    assert problem.velocities == ("root",) * 6 + (build.joints[slide].name,) * 3 + (independent,)
    assert [port.shape for port in problem.outputs] == [(3, 3), (3, 10)]


@pytest.fixture
def linkages(own_kernels: Path) -> tuple[list[Robot], np.ndarray]:
    """Return four-bars that differ in their limits alone, a closed q, and an empty cache."""
    plain = stretched_four_bar(rod=0.9)
    bar = Robot("bar", plain.joints, plain.bodies, [Frame("tip", 1, at(0.9))], loops=plain.loops)
    places = ((0.8, -1.4, -2.7), (-2.9, 1.9, 2.5))
    q = Closure(bar, dict(zip(bar.joint_names, places[0], strict=True))).reference
    return [within(bar, place) for place in places], q


def test_limits_that_choose_other_velocities_make_another_problem(linkages) -> None:
    robots, q = linkages
    contacts = [Contact("tip", "tip")]
    first, second = (Problem(robot, contacts, outputs=EVERYTHING) for robot in robots)
    assert (first.velocities, second.velocities) == (("rocker",), ("crank",))
    assert first != second
    assert first.canonical_bytes != second.canonical_bytes
    wider = within(robots[0], (0.8, -1.4, -2.7), 0.31)
    assert first == Problem(wider, contacts, outputs=EVERYTHING), "the choice is the same"
    for problem in (first, second):
        cached = DelassusSolver(problem, "pv_osimr").solve(q)
        fresh = DelassusSolver(problem, "pv_osimr", cache=False).solve(q)
        np.testing.assert_array_equal(cached.J, fresh.J)
        np.testing.assert_array_equal(cached.MinvJT, fresh.MinvJT)


def test_dynamics_from_the_cache_are_of_the_velocities_that_limits_choose(linkages) -> None:
    robots, q = linkages
    for robot in robots:
        results = [Dynamics(robot, cache).inverse(q, [1.0], [2.0]) for cache in (True, False)]
        np.testing.assert_array_equal(*results)
