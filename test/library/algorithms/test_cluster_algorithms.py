"""EFPA, PV-OSIMr and LTL over clusters: the paper's library, dense equations, 50 digits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import mpmath
import numpy as np
import pytest
from cluster_robots import LOOSE, Builder, geared_chain, random_problem
from on_floats import flat, outputs_on_floats
from oracles import paper_library
from oracles import relative as error

from delassus import Contact, DelassusSolver, Problem, Transform, algorithms
from delassus.algorithms.registry import TracedAlgorithm
from delassus.compiler.ir.trace import trace
from delassus.errors import AlgorithmError, InputError, ProblemError
from delassus.model import WORLD
from delassus.rbda import rotors
from delassus.rbda.tree import Tree, Turn
from delassus.rbda.trees import rewritten_tree
from delassus.rotor_report import approximation_error
from delassus.samples import random_inputs
from delassus.scalars.graph import PARAMETER
from delassus.testing import mpmath_numbers as reference
from delassus.testing import random_problem as random_open_problem

EXACT = ("auto", "efpa", "pv_osimr", "ltl")
def traced(name: str) -> TracedAlgorithm:
    algorithm = algorithms.get(name)
    assert isinstance(algorithm, TracedAlgorithm)
    return algorithm


def on_floats(name: str, problem: Problem, inputs: dict[str, np.ndarray]) -> np.ndarray:
    return outputs_on_floats(problem, name, inputs)["G"]


@pytest.mark.parametrize("seed", [2, 5, 11])
def test_agrees_with_fifty_digits_of_the_unreduced_tree(seed: int) -> None:
    """Redistribution and all three algorithms, with numbers that leave no room for luck."""
    problem = random_problem(seed)
    inputs = random_inputs(problem, seed)
    whole = rewritten_tree(problem, lambda robot, held: rotors.spanning(robot))
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


REFUSED = {
    "belt": ("dense", "efpa_strict", "elimination", "kjr", "pv_osim", "pv_osimr_strict"),
    "gear": ("dense", "pinocchio"),
    "four-bar": ("dense", "kjr", "pv_osim"),
    "loose rotors": ("efpa_strict",),
}


@pytest.mark.parametrize(
    ("robot", "name"), [(robot, name) for robot, names in REFUSED.items() for name in names]
)
def test_open_chain_algorithms_refuse_closed_robots(robot: str, name: str) -> None:
    """By the coupled joints, or, back ends, whatever is closed; with algorithms to use instead."""
    if name == "pinocchio":
        pytest.importorskip("pinocchio")
    build = Builder(7)
    if robot == "four-bar":
        problem = paper_library.from_urdf("urdf_four_bar")
    elif robot == "loose rotors":
        problem = geared_chain(2, shape=LOOSE)
    else:
        getattr(build, robot)(WORLD)
        problem = Problem(build.robot(), [Contact("tip", "f0", "point")])
    reason = algorithms.get(name).supports(problem)
    assert reason is not None and "open chains" in reason and "efpa" in reason
    assert "are coupled" in reason or name in ("dense", "pinocchio")
    if robot == "gear":
        assert reason == (
            "it is for open chains, and 'random' has couplings or loops; use auto, efpa, "
            "ltl or pv_osimr"
        )
        for other in reason.partition("use ")[2].replace(" or ", ", ").split(", "):
            assert algorithms.get(other).supports(problem) is None
    with pytest.raises(AlgorithmError, match="open chains"):
        DelassusSolver(problem, name)


@pytest.mark.parametrize("robot", paper_library.CONSTANT)
def test_the_approximation_is_the_papers(robot: str) -> None:
    key = "inv_osim_reflected_inertia_diag"
    if key not in paper_library.data(robot)["states"][0]:
        pytest.skip(f"the library printed no approximation for {robot}")
    problem = paper_library.problem_of(robot)
    for state in paper_library.states(robot):
        q = paper_library.positions(robot, state)
        approximate = paper_library.expected(robot, state, key)
        assert error(on_floats("reflected_inertia", problem, {"q": q}), approximate) < 1e-10
        reported = approximation_error(problem, {"q": q.tolist()})
        off = error(approximate, paper_library.expected(robot, state))
        assert reported == pytest.approx(off, rel=1e-9)


def test_the_approximation_is_exact_without_rotors() -> None:
    problem = random_open_problem(4)
    inputs = random_inputs(problem, 0)
    assert approximation_error(problem, flat(inputs)) == 0.0


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
    found = outputs_on_floats(problem, "reflected_inertia", inputs)
    G, J, W = (found[name] for name in ("G", "J", "MinvJT"))
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
