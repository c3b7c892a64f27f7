"""Tracing: run an algorithm once on symbolic scalars and keep the graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property

from delassus_ros.algorithms.base import Inputs, TracedAlgorithm
from delassus_ros.algorithms.generic import generic as generic_tree
from delassus_ros.algorithms.generic import generic_constants
from delassus_ros.algorithms.outputs import evaluate
from delassus_ros.algorithms.propagation import Sweeps, sweeps_kept
from delassus_ros.algorithms.scalars import Matrix
from delassus_ros.algorithms.spatial import contact_rows
from delassus_ros.algorithms.steps import recorded
from delassus_ros.algorithms.tree import Tree
from delassus_ros.compiler.graph import (
    ADD,
    CALL,
    CONSTANT,
    COS,
    DIV,
    INPUT,
    MUL,
    NEG,
    PARAMETER,
    RESULT,
    SELECT,
    SIN,
    SQRT,
    SUB,
    Graph,
    Guard,
    Symbol,
)
from delassus_ros.compiler.routines import Routines
from delassus_ros.errors import CompilerError, DelassusError
from delassus_ros.problem import Problem


@dataclass(frozen=True)
class OperationCount:
    """Scalar operations of a kernel, the papers' measure.

    A fused multiply-add counts 2; addition, multiplication, division and square root count 1,
    negation and selection 0; sines and cosines are given apart.
    """

    additions: int
    multiplications: int
    divisions: int
    square_roots: int
    sines_cosines: int

    @property
    def total(self) -> int:
        """All operations but sines and cosines."""
        return self.additions + self.multiplications + self.divisions + self.square_roots

    def __str__(self) -> str:
        return (
            f"{self.total} operations ({self.additions} +, {self.multiplications} ×, "
            f"{self.divisions} ÷, {self.square_roots} √) and {self.sines_cosines} sin/cos"
        )


@dataclass(frozen=True)
class Trace:
    """The graph of one (problem, algorithm).

    Attributes
    ----------
    graph : all nodes.
    live : indices of the nodes that outputs and guards need, operands first.
    outputs : node of each entry of the output block, in order.
    guards : values that must be positive, those that the outputs depend on.
    inputs : size of the input block, where a status is to tell whether it is finite.
    """

    graph: Graph
    live: list[int]
    outputs: list[int]
    guards: list[Guard]
    inputs: int = 0

    @cached_property
    def early_angles(self) -> list[int]:
        """Angles that depend on no other sine or cosine."""
        nodes, operands = self.graph.nodes, self.graph.operands
        turned: set[int] = set()
        angles: dict[int, None] = {}
        for i in self.live:
            below = operands[i]
            if nodes[i][0] in (SIN, COS):
                if below[0] not in turned:
                    angles[below[0]] = None
                turned.add(i)
            elif not turned.isdisjoint(below):
                turned.add(i)
        return list(angles)

    @cached_property
    def operations(self) -> OperationCount:
        """Operation count of one call: of what depends on the inputs.

        What depends on the robot's constants alone is folded or, in a generic trace, computed
        once when the robot is loaded.
        """
        found = _kinds(self.graph, self.live)
        count = found.nodes
        for number, times in found.calls.items():
            routine = self.graph.routines[number]
            inside = _kinds(routine.graph, routine.graph.live(routine.outputs))
            for kind, each in inside.nodes.items():
                count[kind] += times * each
        known = {INPUT, NEG, SELECT, ADD, SUB, MUL, DIV, SQRT, SIN, COS, RESULT}
        if set(count) - known:
            raise CompilerError(f"node kinds without a cost: {sorted(set(count) - known)}")
        return OperationCount(
            additions=count[ADD] + count[SUB],
            multiplications=count[MUL],
            divisions=count[DIV],
            square_roots=count[SQRT],
            sines_cosines=count[SIN] + count[COS],
        )


@dataclass(frozen=True)
class _Kinds:
    """How many nodes there are by kind, and calls by routine."""

    nodes: Counter[str]
    calls: Counter[int]


def _kinds(graph: Graph, live: list[int]) -> _Kinds:
    """Count the nodes that depend on inputs."""
    nodes, operands = graph.nodes, graph.operands
    constant: set[int] = set()
    found = _Kinds(Counter(), Counter())
    kinds: list[str] = []
    for i in live:
        node = nodes[i]
        kind = node[0]
        if kind in (CONSTANT, PARAMETER):
            constant.add(i)
        elif kind == CALL:
            if constant.issuperset(node[2]):
                constant.add(i)
            else:
                found.calls[node[1]] += 1
        # The first operand tells of most nodes that not all are constant.
        elif kind != INPUT and node[1] in constant and constant.issuperset(operands[i]):
            constant.add(i)
        else:
            kinds.append(kind)
    found.nodes.update(kinds)
    return found


_LARGE = 45_000
"""Estimated operations from which a trace has calls of routines; see :func:`is_large`."""


def is_large(problem: Problem) -> bool:
    """Return whether the trace of a problem has calls of routines instead of all nodes.

    By what PV-OSIMr needs, whatever the algorithm, so that counts can be compared.
    """
    rows = max((port.shape[0] for port in problem.outputs if port.name == "G"), default=0)
    return 350 * len(problem.robot.joints) + 6 * rows**2 > _LARGE


def trace(problem: Problem, algorithm: TracedAlgorithm, generic: bool = False) -> Trace:
    """Run `algorithm` on symbols.

    Parameters
    ----------
    generic : keep the robot's constants as unknown numbers of their structure: 0 and ±1 stay,
        every other one is a parameter. For counting, not for compilation.

    Raises
    ------
    CompilerError
        If the algorithm raises something else than a DelassusError, or does not return every
        output of the problem in its shape.
    """
    # Other outputs repeat much of what the matrix takes.
    graph = Graph(repeats=len(problem.outputs) > 1)
    inputs = _inputs(graph, problem)
    try:
        if generic:
            tree = generic_tree(Tree.of(problem), graph.parameter)
            with tree.in_place(), generic_constants(graph.parameter):
                results = evaluate(problem, algorithm, inputs)
        else:
            with recorded(Routines(graph) if is_large(problem) else None):
                results = evaluate(problem, algorithm, inputs)
    except ZeroDivisionError as error:
        raise CompilerError(
            f"algorithm {algorithm.name!r} divides by a constant zero of {problem.robot.name!r}"
        ) from error
    except DelassusError:
        raise
    except Exception as error:
        # It may be somebody else's code, which may raise anything: what branches on a symbol, for
        # one, gets a TypeError.
        raise CompilerError(
            f"algorithm {algorithm.name!r} cannot be traced: {type(error).__name__}: {error}"
        ) from error
    outputs: list[int] = []
    for port in problem.outputs:
        rows = results.get(port.name)
        if rows is None:
            raise CompilerError(
                f"algorithm {algorithm.name!r} did not return output {port.name!r}; "
                f"it returned: {', '.join(results) or 'nothing'}"
            )
        if not _has_shape(rows, port.shape):
            raise CompilerError(
                f"algorithm {algorithm.name!r}: output {port.name!r} must have shape {port.shape}"
            )
        try:
            outputs += [graph.index_of(value) for row in rows for value in row]
        except CompilerError as error:
            raise CompilerError(
                f"algorithm {algorithm.name!r}: output {port.name!r}: {error}"
            ) from error
    live, guards = graph.needed(outputs)
    return Trace(graph, live, outputs, guards, sum(port.size for port in problem.inputs))


def _has_shape(rows: object, shape: tuple[int, ...]) -> bool:
    """Return whether what an algorithm returned is a list of rows of this shape."""
    try:
        return [len(row) for row in rows] == [shape[1]] * shape[0]  # type: ignore[attr-defined]
    except TypeError:
        return False


def _inputs(graph: Graph, problem: Problem) -> dict[str, list[Symbol]]:
    """Return the symbols of the input block, by port."""
    inputs, position = {}, 0
    for port in problem.inputs:
        inputs[port.name] = [graph.input(position + k) for k in range(port.size)]
        position += port.size
    return inputs


class OperationCounter:
    """Counts what several ways to the matrix of one tree need; what they share is traced once.

    Parameters
    ----------
    generic : see :func:`trace`.
    """

    def __init__(self, problem: Problem, tree: Tree, generic: bool) -> None:
        self._graph = graph = Graph()
        self._inputs = _inputs(graph, problem)
        self._generic = generic
        self._tree = generic_tree(tree, graph.parameter) if generic else tree
        outlined = not generic and is_large(problem)
        self._recorder = Routines(graph) if outlined else None
        self._sweeps: Sweeps = {}
        with self._context():
            self._rows = contact_rows(problem, self._inputs)

    @contextmanager
    def _context(self) -> Iterator[None]:
        constants = generic_constants(self._graph.parameter) if self._generic else nullcontext()
        with self._tree.in_place(), recorded(self._recorder), constants:
            with sweeps_kept(self._sweeps):
                yield

    def __call__(self, function: Callable[[Tree, dict[int, Matrix], Inputs], Matrix]) -> int:
        """Return the operations that a function of tree, contact rows and inputs needs for G."""
        with self._context():
            G = function(self._tree, self._rows, self._inputs)
        outputs = [self._graph.index_of(value) for row in G for value in row]
        live, guards = self._graph.needed(outputs)
        return Trace(self._graph, live, outputs, guards).operations.total
