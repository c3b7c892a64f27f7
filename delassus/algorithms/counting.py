"""Exact operation counts of ways to compute one matrix, for algorithms that choose a way."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Generic, TypeVar

from delassus.algorithms.registry import DelassusFunction
from delassus.problem import Problem
from delassus.rbda.propagation import InputsWithSweeps
from delassus.rbda.spatial import contact_rows
from delassus.rbda.tree import Tree
from delassus.rbda.unknown_constants import tree_of_unknown_constants, unknown_constants
from delassus.scalars.counts import operations
from delassus.scalars.graph import Graph
from delassus.scalars.routines import Routines
from delassus.scalars.steps import recorded

W = TypeVar("W")
"""A way to compute the matrix: hashable; the fields decide the order of the operations."""


class CheapestSearch(Generic[W]):
    """Local search for the way with fewest operations; every way is counted once.

    Parameters
    ----------
    count : operations of a way.
    budget : approximate number of traced operations after which the search ends.
    """

    def __init__(self, count: Callable[[W], int], budget: int) -> None:
        self._count, self._budget = count, budget
        self._counts: dict[W, int] = {}

    def count(self, way: W) -> int:
        """Return the operations of a way."""
        if way not in self._counts:
            self._counts[way] = self._count(way)
        return self._counts[way]

    @property
    def spent(self) -> int:
        """Sum of the counts so far: approximately the number of traced operations."""
        return sum(self._counts.values())

    def cheapest(self, ways: Iterable[W]) -> W:
        """Return the first of the ways with fewest operations."""
        return min(ways, key=self.count)

    def improved(self, way: W, neighbours: Callable[[W], Iterable[W]], restart: bool = True) -> W:
        """Return a way without a neighbour that needs fewer operations.

        Parameters
        ----------
        neighbours : ways that differ from a way in one decision.
        restart : continue with the neighbours of a better way at once; if False, after all
            neighbours of the previous way.
        """
        budget = self.spent + self._budget
        found = True
        while found:
            found = False
            for neighbour in neighbours(way):
                if self.spent > budget:
                    return way
                if self.count(neighbour) < self.count(way):
                    way, found = neighbour, True
                    if restart:
                        break
        return way


class OperationCounter:
    """Counts the operations of ways to the matrix of one tree; shared parts are traced once.

    Parameters
    ----------
    generic : see :func:`delassus.compiler.ir.trace.trace`.
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


_LARGE = 45_000
"""Estimated number of operations above which a trace calls routines; see :func:`is_large`."""


def is_large(problem: Problem) -> bool:
    """Return whether the trace of a problem calls routines instead of inlining all steps.

    The decision uses the operations of PV-OSIMr for every algorithm, so that counts of algorithms
    are comparable.
    """
    robot, outputs = problem.robot, {port.name: port.shape for port in problem.outputs}
    estimate = 350 * len(robot.joints) + 6 * outputs.get("G", (0,))[0] ** 2
    if "J" in outputs:
        for _, contact in problem.ends:
            depth = len(robot.path(robot.frames[contact.frame].body))
            estimate += 20 * len(contact.selection) * depth
    if "MinvJT" in outputs:
        estimate += 25 * math.prod(outputs["MinvJT"])
    if "dG" in outputs:
        estimate += 8 * math.prod(outputs["dG"])
    if outputs.keys() & {"M", "h", "a0", "qdd0"}:
        estimate += 250 * len(robot.joints)
    return estimate > _LARGE
