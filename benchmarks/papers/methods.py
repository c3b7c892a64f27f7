"""The methods that the cluster paper compares, each to be counted, evaluated and timed alike.

A quantity is ``"inverse"`` or ``"forward"`` dynamics, whose methods are those of
:mod:`delassus.dynamics.methods`, or ``"matrix"``, the inverse operational-space inertia: by
C-EFPA, by projection with sparse factors (``ltl``) and with dense matrices, which are counted
alone (:mod:`benchmarks.papers.dense_projection`), by EFPA on the independent tree
(``approximate``), and by C-PV-OSIMr, which the paper names as future work.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, TypeVar

import numpy as np

from benchmarks import machine, ours
from benchmarks.compare import compare, in_c
from benchmarks.papers import dense_projection
from benchmarks.timing import Routine
from delassus import Problem
from delassus.algorithms.registry import TracedAlgorithm, evaluate
from delassus.compiler.ir.input_rules import InputRules
from delassus.compiler.ir.trace import Trace, trace
from delassus.dynamics import Dynamics
from delassus.dynamics.methods import FORWARD, INVERSE, Method
from delassus.model.spatial import Array
from delassus.rbda.robot_tree import RobotTree
from delassus.rbda.rotors import independent_tree
from delassus.scalars.functions import Vector
from delassus.scalars.graph import Graph
from delassus.scalars.ports import Inputs, Port

State = Mapping[str, Vector]
"""Inputs by name: ``q``, and for dynamics ``rates``, ``gravity`` and what is given."""
GIVEN = {"inverse": "accelerations", "forward": "torques"}
"""The input that a quantity has beside positions, rates and gravity."""
MATRIX: Mapping[str, TracedAlgorithm] = {
    "efpa": ours.traced("efpa"), "projection": ours.traced("ltl"), **dense_projection.METHODS,
    "approximate": ours.traced("efpa"), "pv_osimr": ours.traced("pv_osimr"),
}  # fmt: skip
"""Methods of the matrix, the paper's own first, with the algorithm of each."""
APPROXIMATIONS = ("approximate", "unconstrained")
"""Methods that are not exact."""
T = TypeVar("T")
_LARGEST_DIFFERENCE = 1e-6
"""Relative; random chains are badly conditioned."""
_METHODS = {"inverse": INVERSE, "forward": FORWARD}


@dataclass(frozen=True)
class Contender:
    """A method for one robot.

    Attributes
    ----------
    count : operations without sines and cosines; of the matrix with unknown constants of the
        robot, of dynamics with its own.
    evaluate : the results at a state, on floats.
    routine : machine code for states; None for methods that are counted alone.
    """

    count: Callable[[], int]
    evaluate: Callable[[State], Vector]
    routine: Callable[[Sequence[State]], Routine] | None


def contenders(
    problem: Problem,
    quantity: str,
    names: Iterable[str] | None = None,
    near: Problem | None = None,
) -> Iterator[tuple[str, Contender]]:
    """Yield the methods of a quantity by name.

    Parameters
    ----------
    quantity : ``"inverse"``, ``"forward"`` or ``"matrix"``.
    names : of the methods; all of the quantity if None.
    near : the same with other independent joints, for :data:`APPROXIMATIONS`.

    Raises
    ------
    RobotError
        If a method refuses the robot.
    """
    for name in names or (MATRIX if quantity == "matrix" else _METHODS[quantity]):
        taken = near if near is not None and name in APPROXIMATIONS else problem
        if quantity == "matrix":
            yield name, _of_matrix(taken, name)
        else:
            yield name, _of_dynamics(taken, quantity, _METHODS[quantity][name], name)


def _of_dynamics(problem: Problem, quantity: str, method: Method, name: str) -> Contender:
    tree = RobotTree(problem.robot, build=method.build)

    def routine(states: Sequence[State]) -> Routine:
        ports = ("q", "rates", GIVEN[quantity], "gravity")
        rows = [list(chain.from_iterable(state[port] for port in ports)) for state in states]
        bound = Dynamics(problem.robot).bind(quantity, name)
        return ours.bound_routine(bound, np.array(rows))

    return Contender(
        partial(_count, tree, method, GIVEN[quantity]),
        partial(method.formula, tree),
        routine,
    )


def _count(tree: RobotTree, method: Method, given: str) -> int:
    """Return the count of a method of dynamics, without sines and cosines.

    Constants of the robot are folded: they are its own numbers.

    Parameters
    ----------
    tree : the one that the method builds.
    given : ``"accelerations"`` or ``"torques"``.
    """
    robot = tree.problem.robot
    ports = [
        Port("q", (robot.nq,)), Port("rates", (tree.size,)), Port(given, (tree.size,)),
        Port("gravity", (3,)),
    ]  # fmt: skip
    graph = Graph()
    results = method.formula(tree, graph.input_block(ports))
    outputs = [graph.index_of(value) for value in results]
    return Trace.of(graph, outputs, InputRules.of(ports, robot)).operations.total


def _of_matrix(problem: Problem, name: str) -> Contender:
    own, entries = problem, list(range(problem.robot.nq))
    if name == "approximate":
        own, entries = _approximated(problem)
    algorithm = MATRIX[name]

    def at(state: State) -> Inputs:
        return {"q": [state["q"][entry] for entry in entries]}

    def results(state: State) -> Vector:
        rows: Any = evaluate(own, algorithm, at(state))["G"]
        return [value for row in rows for value in row]

    def routine(states: Sequence[State]) -> Routine:
        inputs = np.array([at(state)["q"] for state in states], float)
        return ours.build(own, algorithm.name, inputs).routine

    def count() -> int:
        return trace(own, algorithm, generic=True).operations.total

    return Contender(count, results, None if name in dense_projection.METHODS else routine)


def _approximated(problem: Problem) -> tuple[Problem, list[int]]:
    """Return the problem of the independent tree, and the entries of q that it has."""
    robot = problem.robot
    held = {robot.frames[contact.frame].body for _, contact in problem.ends}
    tree = independent_tree(robot, held)
    entries = [
        robot.q_offsets[joint] + k
        for joint in tree.kept
        for k in range(robot.joints[joint].kind.nq)
    ]
    return Problem(tree.robot, problem.contacts, problem.axes), entries


def random_states(problem: Problem, Q: Array, seed: int = 0) -> list[dict[str, Vector]]:
    """Return states at positions (N, nq): rates, torques and accelerations within ±1."""
    rng, n = np.random.default_rng(seed), len(problem.velocities)
    moving = ("rates", *GIVEN.values())
    return [
        {"q": q.tolist(), "gravity": [0.0, 0.0, -9.81],
         **{name: rng.uniform(-1.0, 1.0, n).tolist() for name in moving}}
        for q in Q
    ]  # fmt: skip


def times_of(
    problem: Problem,
    quantity: str,
    states: Sequence[State],
    seconds: float,
    names: Iterable[str] | None = None,
    near: Problem | None = None,
) -> dict[str, float]:
    """Return the least time [s] of each method with a routine, all measured in turns.

    `names` and `near` as for :func:`contenders`.

    Raises
    ------
    WrongResultError
        If the kernels of two exact methods differ.
    """
    routines = {
        name: method.routine(states)
        for name, method in contenders(problem, quantity, names, near)
        if method.routine is not None
    }
    timed = {
        name: in_c(each, lambda i, each=each: [each.results(i)])  # type: ignore[misc]
        for name, each in routines.items()
    }
    timed |= {name: replace(timed[name], results=None) for name in APPROXIMATIONS if name in timed}
    ends = (0, len(states) - 1)
    times = compare(problem.robot.name, timed, seconds, _LARGEST_DIFFERENCE, ends)
    return {name: each.minimum for name, each in times.items()}


def in_process(function: Callable[[], T]) -> T:
    """Return the result of a function from a process of its own.

    Times of a kernel differ between processes by more than within one.
    """
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function).result()


def measured_here() -> str:
    """Return machine and day of a measurement."""
    return f"{machine.processor()}, {machine.day()}"
