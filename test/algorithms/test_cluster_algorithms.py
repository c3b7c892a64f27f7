"""EFPA, PV-OSIMr and LTL over clusters: the paper's library, dense equations, 50 digits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cluster_oracle
import mpmath
import numpy as np
import pytest
from cluster_robots import Builder, kkt, random_problem
from on_floats import solver_on_floats

from delassus_ros import Contact, DelassusSolver, Problem, Transform, algorithms
from delassus_ros.algorithms.registry import TracedAlgorithm, evaluate
from delassus_ros.compiler.ir.trace import trace
from delassus_ros.errors import AlgorithmError, InputError, ProblemError
from delassus_ros.model import WORLD
from delassus_ros.rbda import rotors
from delassus_ros.rbda.tree import Tree, Turn
from delassus_ros.rbda.trees import closed_tree, tree_of
from delassus_ros.rotor_report import approximation_error
from delassus_ros.samples import random_inputs
from delassus_ros.scalars.graph import PARAMETER
from delassus_ros.testing import mpmath_numbers as reference
from delassus_ros.testing import random_problem as random_open_problem

EXACT = ("auto", "efpa", "pv_osimr", "ltl")
OPEN_CHAIN = ("dense", "efpa_strict", "elimination", "kjr", "pv_osim", "pv_osimr_strict")
SEEDS = range(100)


def traced(name: str) -> TracedAlgorithm:
    algorithm = algorithms.get(name)
    assert isinstance(algorithm, TracedAlgorithm)
    return algorithm


def on_floats(name: str, problem: Problem, inputs: dict[str, np.ndarray]) -> np.ndarray:
    values = {port: np.ravel(array).tolist() for port, array in inputs.items()}
    return np.array(traced(name).evaluate(problem, values)["G"], dtype=float)


def error(G: np.ndarray, expected: np.ndarray) -> float:
    return float(np.linalg.norm(G - expected) / np.linalg.norm(expected))


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("robot", cluster_oracle.CONSTANT)
def test_agrees_with_the_papers_library_on_gears_and_belts(robot: str, name: str) -> None:
    solver = solver_on_floats(cluster_oracle.problem_of(robot), name)
    for state in cluster_oracle.states(robot):
        G = solver.solve(cluster_oracle.positions(robot, state)).matrix
        assert error(G, cluster_oracle.expected(robot, state)) < 1e-10


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("robot", cluster_oracle.VARYING)
def test_agrees_with_the_papers_library_with_each_states_jacobian(robot: str, name: str) -> None:
    for state in cluster_oracle.states(robot):
        problem = cluster_oracle.problem_of(robot, state)
        G = on_floats(name, problem, {"q": cluster_oracle.positions(robot, state)})
        assert error(G, cluster_oracle.expected(robot, state)) < 1e-9


@pytest.mark.parametrize(
    "seed", [*SEEDS[:25], *(pytest.param(k, marks=pytest.mark.slow) for k in SEEDS[25:])]
)
def test_agrees_with_the_dense_equations(seed: int) -> None:
    problem = random_problem(seed)
    inputs = random_inputs(problem, seed)
    expected = kkt(problem, inputs)
    for name in EXACT[1:]:
        assert error(on_floats(name, problem, inputs), expected) < 1e-9, name


@pytest.mark.parametrize("seed", [3, 8, 19])
def test_machine_code_agrees_with_the_dense_equations(seed: int) -> None:
    problem = random_problem(seed)
    inputs = random_inputs(problem, seed)
    for name in EXACT:
        solver = DelassusSolver(problem, name)
        solution = solver.solve(inputs["q"], base_orientation=inputs.get("base_orientation"))
        assert error(solution.matrix, kkt(problem, inputs)) < 1e-9, name


@pytest.mark.parametrize("seed", [2, 5, 11])
def test_agrees_with_fifty_digits_of_the_unreduced_tree(seed: int) -> None:
    """Redistribution and all three algorithms, with numbers that leave no room for luck."""
    problem = random_problem(seed)
    inputs = random_inputs(problem, seed)
    whole = closed_tree(problem, lambda robot, held: rotors.spanning(robot))
    with mpmath.workdps(50):
        whole = exactly(whole)
    exact = reference.evaluate(problem, traced("ltl"), inputs, tree=whole)["G"]
    for name in ("efpa", "pv_osimr"):
        G = reference.evaluate(problem, traced(name), inputs, tree=whole)["G"]
        assert largest_difference(G, exact) < 1e-40, name
    for name in EXACT[1:]:
        assert error(on_floats(name, problem, inputs), np.array(exact, dtype=float)) < 1e-12, name


def exactly(tree: Tree) -> Tree:
    """Return a tree whose constants are mpmath numbers, so that none of their products round."""

    def exact(value: Any) -> Any:
        if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
            return type(value)(exact(each) for each in value)
        return mpmath.mpf(value) if isinstance(value, float) and value else value

    def turned(turn: Turn) -> Turn:
        # As rounded numbers they are no rotation to fifty digits.
        size = mpmath.sqrt(mpmath.mpf(turn.sin) ** 2 + mpmath.mpf(turn.cos) ** 2)
        return turn._replace(sin=turn.sin / size, cos=turn.cos / size)

    fields = ("angle", "offset", "mass", "moment", "rotational", "armature", "couple")
    links = tuple(
        replace(
            link,
            **{field: exact(getattr(link, field)) for field in fields},
            turns=tuple(turned(t) for t in link.turns),
            contacts=tuple(replace(c, K=exact(c.K)) for c in link.contacts),
        )
        for link in tree.links
    )
    clusters = tuple(
        replace(c, jacobian=exact(c.jacobian), armature=exact(c.armature)) for c in tree.clusters
    )
    return replace(tree, links=links, clusters=clusters)


def largest_difference(G: list[list[mpmath.mpf]], expected: list[list[mpmath.mpf]]) -> float:
    size = max(abs(value) for row in expected for value in row)
    pairs = zip(sum(G, []), sum(expected, []), strict=True)
    return float(max(abs(a - b) for a, b in pairs) / size)


def test_contacts_on_both_links_of_a_belt() -> None:
    """Rows that leave one cluster by two links, six of them after a node inside it."""
    build = Builder(5)
    second = build.belt(build.add(WORLD))
    first = build.joints[second].parent
    tips = [build.add(second), build.add(second), build.gear(first)]
    problem = Problem(
        build.robot(), [Contact(f"c{i}", f"f{i}", "surface") for i in (*tips, first, second)]
    )
    inputs = random_inputs(problem, 0)
    for name in EXACT:
        assert error(on_floats(name, problem, inputs), kkt(problem, inputs)) < 1e-10, name


def test_open_chain_algorithms_take_geared_robots_that_are_ordinary_trees() -> None:
    build = Builder(7)
    tip = build.gear(build.gear(build.gear(WORLD)))
    problem = Problem(build.robot(), [Contact("tip", f"f{tip}", "surface")])
    assert tree_of(problem).is_ordinary
    inputs = random_inputs(problem, 1)
    for name in ("efpa", "kjr", "ltl", "pv_osim", "pv_osimr"):
        assert algorithms.get(name).supports(problem) is None
        assert error(on_floats(name, problem, inputs), kkt(problem, inputs)) < 1e-10, name


@pytest.mark.parametrize("name", OPEN_CHAIN)
def test_open_chain_algorithms_refuse_coupled_joints_with_the_reason(name: str) -> None:
    build = Builder(7)
    build.belt(WORLD)
    problem = Problem(build.robot(), [Contact("tip", "f1", "point")])
    reason = algorithms.get(name).supports(problem)
    assert reason is not None and "open chains" in reason
    with pytest.raises(AlgorithmError, match="open chains"):
        DelassusSolver(problem, name)


@pytest.mark.needs("pinocchio")
def test_back_ends_for_open_chains_refuse_every_closed_robot() -> None:
    build = Builder(7)
    build.gear(WORLD)
    problem = Problem(build.robot(), [Contact("tip", "f0", "point")])
    for name in ("pinocchio", "dense"):
        reason = algorithms.get(name).supports(problem)
        assert reason == (
            "it is for open chains, and 'random' has couplings or loops; use auto, efpa, "
            "ltl or pv_osimr"
        )
        for other in reason.partition("use ")[2].replace(" or ", ", ").split(", "):
            assert algorithms.get(other).supports(problem) is None


@pytest.mark.parametrize("robot", cluster_oracle.CONSTANT)
def test_the_approximation_is_the_papers(robot: str) -> None:
    key = "inv_osim_reflected_inertia_diag"
    if key not in cluster_oracle.data(robot)["states"][0]:
        pytest.skip(f"the library printed no approximation for {robot}")
    problem = cluster_oracle.problem_of(robot)
    for state in cluster_oracle.states(robot):
        q = cluster_oracle.positions(robot, state)
        approximate = cluster_oracle.expected(robot, state, key)
        assert error(on_floats("reflected_inertia", problem, {"q": q}), approximate) < 1e-10
        reported = approximation_error(problem, {"q": q.tolist()})
        off = error(approximate, cluster_oracle.expected(robot, state))
        assert reported == pytest.approx(off, rel=1e-9)


def test_the_approximation_is_exact_without_rotors() -> None:
    problem = random_open_problem(4)
    inputs = random_inputs(problem, 0)
    values = {port: np.ravel(array).tolist() for port, array in inputs.items()}
    assert approximation_error(problem, values) == 0.0


def test_what_is_no_configuration_has_no_approximation_error() -> None:
    build = Builder(7)
    frame = f"f{build.gear(build.gear(WORLD))}"
    problem = Problem(build.robot(), [Contact("tip", frame, "surface")])
    q = random_inputs(problem, 1)["q"]
    expected = rf"input 'q' has shape \(1,\), expected \({problem.robot.nq},\); joints: "
    for inputs, words in (
        ({"q": [0.0]}, expected),
        ({}, r"input 'q' is missing; it has shape \("),
        ({"q": q, "Q": q}, "input 'Q' is not used by this problem; inputs: q"),
        ({"q": [*q[:-1], np.nan]}, rf"q\[{len(q) - 1}\] \(joint '.*'\) is nan, expected a finite"),
        ({"q": "straight"}, "input 'q' must be numbers of shape"),
        (q.tolist(), r"inputs are \[.*; expected values by name: write \{'q': q\}"),
    ):
        with pytest.raises(InputError, match=words):
            approximation_error(problem, inputs)
    with pytest.raises(ProblemError, match=r"problem is .*; expected a Problem: write Problem\("):
        approximation_error(problem.robot, {"q": q})


def test_the_approximation_error_takes_moving_contacts_as_a_solve_does() -> None:
    build = Builder(7)
    frame = f"f{build.gear(build.gear(WORLD))}"
    place = Transform(np.eye(3), np.array([0.1, 0.2, 0.3]))
    robot, q = build.robot(), np.linspace(-1.0, 1.0, 4)
    moving, own, placed = (
        Problem(robot, [contact])
        for contact in (
            Contact("tip", frame, "surface", moving="position"),
            Contact("tip", frame, "surface"),
            Contact("tip", frame, "surface", place),
        )
    )
    there = {"q": q, "contact_positions": {"tip": place.translation}}
    for one, other in (({"q": q}, own), (there, placed)):
        found = approximation_error(moving, one)
        assert found == pytest.approx(approximation_error(other, {"q": q}), rel=1e-9)
        assert found > 0.0


def test_the_approximation_has_its_own_inertia_and_counts() -> None:
    """M⁻¹Jᵀ belongs to the approximate G; a generic trace knows none of its numbers."""
    build = Builder(7)
    tip = build.gear(build.gear(WORLD))
    contacts = [Contact("tip", f"f{tip}", "surface")]
    problem = Problem(build.robot(), contacts, outputs={"J", "MinvJT"})
    inputs = random_inputs(problem, 1)
    values = {port: np.ravel(array).tolist() for port, array in inputs.items()}
    G, J, W = (
        np.array(evaluate(problem, traced("reflected_inertia"), values)[name])
        for name in ("G", "J", "MinvJT")
    )
    assert error(J @ W, G) < 1e-12
    assert error(G, on_floats("pv_osimr", problem, inputs)) > 1e-6
    for generic in (False, True):
        found = trace(Problem(problem.robot, contacts), traced("reflected_inertia"), generic)
        kinds = {found.graph.nodes[i][0] for i in found.live}
        assert (PARAMETER in kinds) == generic
        assert found.operations.total > 0


def test_the_approximation_refuses_what_is_more_than_a_rotor() -> None:
    build = Builder(1)
    build.mimic(WORLD)
    problem = Problem(build.robot(), [Contact("tip", "f1", "point")])
    follower = problem.robot.joints[1].name
    reason = algorithms.get("reflected_inertia").supports(problem)
    assert reason is not None and follower in reason and "it has a contact" in reason
    with pytest.raises(AlgorithmError, match="it has a contact"):
        DelassusSolver(problem, "reflected_inertia")
