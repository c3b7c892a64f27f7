"""Exact operation counts of ways to one matrix, for the algorithms that choose between them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from delassus_ros.algorithms.registry import DelassusFunction
from delassus_ros.problem import Problem
from delassus_ros.rbda.propagation import InputsWithSweeps
from delassus_ros.rbda.spatial import contact_rows
from delassus_ros.rbda.tree import Tree
from delassus_ros.rbda.unknown_constants import tree_of_unknown_constants, unknown_constants
from delassus_ros.scalars.counts import operations
from delassus_ros.scalars.graph import Graph
from delassus_ros.scalars.routines import Routines, is_large
from delassus_ros.scalars.steps import recorded


class OperationCounter:
    """Counts what several ways to the matrix of one tree need; what they share is traced once.

    Parameters
    ----------
    generic : see :func:`delassus_ros.compiler.ir.trace.trace`.
    """

    def __init__(self, problem: Problem, tree: Tree, generic: bool) -> None:
        self._graph = graph = Graph()
        self._inputs = InputsWithSweeps(graph.input_block(problem.inputs))
        self._generic = generic
        self._tree = tree_of_unknown_constants(tree, graph.parameter) if generic else tree
        outlined = not generic and is_large(problem)
        self._recorder = Routines(graph) if outlined else None
        with self._context():
            self._rows = contact_rows(problem, self._tree, self._inputs)

    @contextmanager
    def _context(self) -> Iterator[None]:
        constants = unknown_constants(self._graph.parameter) if self._generic else nullcontext()
        with recorded(self._recorder), constants:
            yield

    def __call__(self, function: DelassusFunction) -> int:
        """Return the operations that a function of tree, contact rows and inputs needs for G."""
        with self._context():
            G = function(self._tree, self._rows, self._inputs)
        outputs = [self._graph.index_of(value) for row in G for value in row]
        live, _ = self._graph.needed(outputs)
        return operations(self._graph, live).total
