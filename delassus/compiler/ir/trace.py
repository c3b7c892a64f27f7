"""Tracing: run an algorithm once on symbolic scalars and keep the graph."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from delassus.algorithms.counting import is_large
from delassus.algorithms.registry import TracedAlgorithm, evaluate
from delassus.compiler.ir.input_rules import InputRules
from delassus.errors import CompilerError, DelassusError
from delassus.model.clusters import groups_of_rows
from delassus.model.joint_group import JointGroup
from delassus.problem import Problem
from delassus.rbda.tree import Tree
from delassus.rbda.trees import tree_of
from delassus.rbda.unknown_constants import tree_of_unknown_constants, unknown_constants
from delassus.scalars.counts import OperationCount, operations
from delassus.scalars.graph import Graph, Guard
from delassus.scalars.routines import Routines
from delassus.scalars.steps import recorded


@dataclass(frozen=True)
class Trace:
    """The graph of one (problem, algorithm).

    Attributes
    ----------
    graph : all nodes.
    live : indices of the nodes that outputs and guards need, operands first.
    outputs : node of each entry of the output block, in order.
    guards : values that must be positive, those that the outputs depend on.
    inputs : what the input block has to be, where a status is to tell.
    """

    graph: Graph
    live: list[int]
    outputs: list[int]
    guards: list[Guard]
    inputs: InputRules | None = None

    @classmethod
    def of(cls, graph: Graph, outputs: list[int], inputs: InputRules | None = None) -> Trace:
        """Return the trace of a graph with these nodes as outputs."""
        live, guards = graph.needed(outputs)
        return cls(graph, live, outputs, guards, inputs)

    @cached_property
    def operations(self) -> OperationCount:
        """Operation count of one call: of what depends on the inputs."""
        return operations(self.graph, self.live)


def trace(
    problem: Problem,
    algorithm: TracedAlgorithm,
    generic: bool = False,
    tree: Tree | None = None,
) -> Trace:
    """Run `algorithm` on symbols, on the :func:`decided` problem.

    Parameters
    ----------
    generic : keep the robot's constants as unknown numbers of their structure: 0 and ±1 stay,
        every other one is a parameter. For counting, not for compilation.
    tree : stands in for the problem's own.

    Raises
    ------
    CompilerError
        If the algorithm raises something else than a DelassusError, or does not return every
        output of the problem in its shape.
    """
    if tree is None:
        problem = decided(problem, algorithm)
    # Other outputs repeat much of what the matrix takes.
    graph = Graph(repeats=len(problem.outputs) > 1)
    inputs = graph.input_block(problem.inputs)
    try:
        if generic:
            tree = tree_of_unknown_constants(tree or tree_of(problem), graph.parameter)
            with unknown_constants(graph.parameter):
                results = evaluate(problem, algorithm, inputs, tree)
        else:
            # Calls of routines have no derivatives.
            routines = is_large(problem) and not problem.seeded
            with recorded(Routines(graph) if routines else None):
                results = evaluate(problem, algorithm, inputs, tree)
    except ZeroDivisionError as error:
        raise CompilerError(
            f"algorithm {algorithm.name!r} divides by a constant zero of {problem.robot.name!r}"
        ) from error
    except DelassusError:
        raise
    except Exception as error:
        # Code of a third party may raise anything; a branch on a symbol raises a TypeError.
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
            outputs += [graph.index_of(value) for value in _flat(rows, len(port.shape))]
        except CompilerError as error:
            raise CompilerError(
                f"algorithm {algorithm.name!r}: output {port.name!r}: {error}"
            ) from error
    return Trace.of(graph, outputs, InputRules.of(problem.inputs, problem.robot))


@lru_cache(maxsize=16)
def decided(problem: Problem, algorithm: TracedAlgorithm) -> Problem:
    """Return the problem with the ways in which its loops are closed, if these are left open.

    Of a robot with ``loops_as="cheapest"`` each cluster of loops in turn is closed by rows if the
    operations of the algorithm become fewer, the clusters after it kept; then all by rows is
    compared, which algorithms for open chains need. The inputs and outputs are those of
    `problem`. Outputs besides G need clusters.
    """
    robot = problem.robot
    if not robot.cheapest_loops:
        return problem
    outputs = [port.name for port in problem.outputs]

    def closed(groups: list[JointGroup]) -> tuple[Problem, int]:
        found = problem.with_rows(groups)
        if algorithm.supports(found) is not None:
            return found, sys.maxsize
        return found, trace(found, algorithm).operations.total

    best, least = closed([])
    if outputs == ["G"]:
        taken: list[JointGroup] = []
        groups = groups_of_rows(robot)
        for group in groups:
            found, count = closed([*taken, group])
            if count < least:
                best, least, taken = found, count, [*taken, group]
        if len(taken) < len(groups) > 1:
            found, count = closed(groups)
            best = found if count < least else best
    return best


def _flat(rows: Any, axes: int) -> list[Any]:
    """Return the values of lists of rows with a number of axes, in order."""
    return rows if axes == 1 else [value for row in rows for value in _flat(row, axes - 1)]


def _has_shape(rows: Any, shape: tuple[int, ...]) -> bool:
    """Return whether an algorithm returned nested lists of this shape."""
    try:
        if len(rows) != shape[0]:
            return False
        return len(shape) == 1 or all(_has_shape(row, shape[1:]) for row in rows)
    except TypeError:
        return False
