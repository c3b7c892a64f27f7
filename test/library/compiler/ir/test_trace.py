"""Tracing and operation counts, on cases counted by hand."""

from __future__ import annotations

import numpy as np
import pytest
from toy import ToyAlgorithm, ToyProblem, traced

from delassus import Contact, Problem, Robot, Transform, algorithms
from delassus.algorithms import TracedAlgorithm
from delassus.compiler import OperationCount, trace
from delassus.errors import CompilerError, NumericalError
from delassus.model import WORLD, Body, Frame, Inertia, Joint, JointKind
from delassus.scalars.functions import positive, select, sincos, sqrt


def count(formula, inputs: int, results: int = 1) -> tuple[int, int, int, int, int]:
    """Return (+, ×, ÷, √, sin/cos) of a formula."""
    operations = traced(formula, inputs, results).operations
    return (
        operations.additions,
        operations.multiplications,
        operations.divisions,
        operations.square_roots,
        operations.sines_cosines,
    )


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        (lambda q: [q[0]], (0, 0, 0, 0, 0)),
        (lambda q: [3.0], (0, 0, 0, 0, 0)),
        (lambda q: [-q[0]], (0, 0, 0, 0, 0)),
        (lambda q: [q[0] * q[1] + q[2]], (1, 1, 0, 0, 0)),
        (lambda q: [q[0] * q[1] - 4.0 * q[2]], (1, 2, 0, 0, 0)),
        (lambda q: [(q[0] + q[1]) * (q[1] + q[0])], (1, 1, 0, 0, 0)),
        (lambda q: [1.0 / q[0] + q[1] / q[0]], (1, 0, 2, 0, 0)),
        (lambda q: [sqrt(q[0]) + sqrt(q[0])], (1, 0, 0, 1, 0)),
        (lambda q: [sincos(q[0])[0] * sincos(q[0])[1]], (0, 1, 0, 0, 2)),
        (lambda q: [sincos(q[0])[0]], (0, 0, 0, 0, 1)),
        (lambda q: [select(q[0], q[1] + q[2], q[1])], (1, 0, 0, 0, 0)),
        (lambda q: [0.0 * (q[0] / q[1]) + q[2]], (0, 0, 0, 0, 0)),
    ],
)
def test_operations_counted_by_hand(formula, expected) -> None:
    assert count(formula, 3) == expected


def test_dead_code_is_not_counted() -> None:
    def formula(q):
        sqrt(q[0])
        sincos(q[1])
        return [q[0] + q[1]]

    assert count(formula, 2) == (1, 0, 0, 0, 0)


def test_total_and_text() -> None:
    operations = OperationCount(1, 2, 3, 4, 50)
    assert operations.total == 10
    assert str(operations) == "10 operations (1 +, 2 ×, 3 ÷, 4 √) and 50 sin/cos"


def test_guards_only_where_the_outputs_depend_on_them() -> None:
    def formula(q):
        a, b = positive(q[0] + 1.0, "a"), positive(q[1] + 1.0, "b")
        positive(q[0] + 1.0, "a")
        return [1.0 / a + 0.0 * b]

    assert [guard.what for guard in traced(formula, 2).guards] == ["a"]


def pendulum(axis=(0.0, 0.0, 1.0), inertia: Inertia | None = None) -> Problem:
    """Return a pendulum about an axis, point contact at (0, 0.5, 0), mass 2 kg at (0, 0.5, 0)."""
    joint = Joint("hinge", JointKind.REVOLUTE, WORLD, axis=np.array(axis))
    default = Inertia.from_com(2.0, (0.0, 0.5, 0.0), np.diag([0.1, 0.2, 0.3]))
    tip = Frame("tip", 0, Transform(np.eye(3), np.array([0.0, 0.5, 0.0])))
    robot = Robot("pendulum", [joint], [Body("arm", inertia or default)], [tip])
    return Problem(robot, [Contact("tip", "tip")])


def test_a_pendulum_in_contact_axes_needs_no_operation() -> None:
    """G = l²/(m l² + I) in one entry whatever q: all of it is known at compile time."""
    for name in ("dense", "pv_osimr"):
        this = trace(pendulum(), algorithms.get(name))
        assert this.operations == OperationCount(0, 0, 0, 0, 0)
        values = [this.graph.nodes[i] for i in this.outputs]
        assert values[0] == ("constant", pytest.approx(0.25 / (2.0 * 0.25 + 0.3), rel=1e-15))
        assert {value for _, value in values[1:]} == {0.0}


def test_a_double_pendulum_counted_by_hand() -> None:
    """Planar 2R arm, tip 1 m out, G in the last link's axes, by PV-OSIMr."""
    shift = Transform(np.eye(3), np.array([1.0, 0.0, 0.0]))
    joints = [
        Joint("shoulder", JointKind.REVOLUTE, WORLD),
        Joint("elbow", JointKind.REVOLUTE, 0, shift),
    ]
    point_mass = Inertia(1.0, np.zeros(3), np.eye(3))
    bodies = [Body("upper", point_mass), Body("fore", point_mass)]
    robot = Robot("arm", joints, bodies, [Frame("tip", 1, shift)])
    problem = Problem(robot, [Contact("tip", "tip", [[0, 1, 0, 0, 0, 0]])])
    this = trace(problem, algorithms.get("pv_osimr"))
    # The elbow adds 1²/1. Behind it a point mass on its axis is left, so that the shoulder sees
    # 1 + 1 kg·m² whatever q, and the tip's row, a unit force there, has the lever arm cos q.
    q = 0.7
    G = 1.0 / 1.0 + np.cos(q) ** 2 / 2.0
    floats = algorithms.get("pv_osimr").evaluate(problem, {"q": [0.3, q]})["G"]
    assert floats[0][0] == pytest.approx(G, rel=1e-14)
    operations = this.operations
    assert operations.sines_cosines == 1
    assert operations.divisions == operations.square_roots == 0
    # 1 + (c · ½) · c: one multiplication by the constant, one square, one addition.
    assert (operations.multiplications, operations.additions) == (2, 1)


def test_a_massless_leaf_fails_while_tracing_and_names_the_joint() -> None:
    with pytest.raises(NumericalError, match="joint 'hinge' is 0.0, expected > 0"):
        trace(pendulum(inertia=Inertia()), algorithms.get("pv_osimr"))


class Broken(TracedAlgorithm):
    """Returns what it is told to."""

    name = "broken"

    def __init__(self, result) -> None:
        self.result = result

    def evaluate(self, problem, x):
        return self.result


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ({}, "'broken' did not return output 'G'; it returned: nothing"),
        ({"L": [], "H": []}, "did not return output 'G'; it returned: L, H"),
        ({"G": [[1.0] * 3] * 2}, r"output 'G' must have shape \(3, 3\)"),
        ({"G": [[1.0] * 3, [1.0] * 3, [1.0] * 2]}, r"output 'G' must have shape \(3, 3\)"),
        ({"G": 1.0}, r"output 'G' must have shape \(3, 3\)"),
        ({"G": [["a"] * 3] * 3}, "'broken': output 'G': an algorithm returned str; "),
        (None, "'broken' returned None; expected outputs by name: write {'G': rows}"),
        ([[1.0]], r"'broken' returned \[\[1.0\]\]; expected outputs by name"),
    ],
)
def test_wrong_results_are_refused(result, words) -> None:
    with pytest.raises(CompilerError, match=words):
        trace(pendulum(), Broken(result))


class Branching(TracedAlgorithm):
    """Branches on what it must not."""

    name = "branching"

    def evaluate(self, problem, x):
        return {"G": 1.0 if x["q"][0] > 0.0 else 2.0}


def test_what_an_algorithm_raises_is_said_with_its_name() -> None:
    words = "'branching' cannot be traced: TypeError: traced scalars cannot be compared; use is_z"
    with pytest.raises(CompilerError, match=words):
        trace(pendulum(), Branching())


def test_the_graph_is_the_same_every_time() -> None:
    """Kernels must not depend on hash seeds: the nodes come in the order of the algorithm."""
    problem = ToyProblem(3, 1)
    formula = ToyAlgorithm(lambda q: [sincos(q[0])[0] * q[1] / (q[2] + 2.0)])
    first, second = trace(problem, formula), trace(problem, formula)
    assert first.graph.nodes == second.graph.nodes
    assert first.outputs == second.outputs
