"""Operation counts of ways to the matrix, before one of them is chosen."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

from delassus_ros.algorithms.base import Inputs
from delassus_ros.algorithms.expressions.graph import Graph
from delassus_ros.algorithms.expressions.operations import operations
from delassus_ros.algorithms.expressions.routines import Routines
from delassus_ros.algorithms.generic import generic as generic_tree
from delassus_ros.algorithms.generic import generic_constants
from delassus_ros.algorithms.propagation import Sweeps, sweeps_kept
from delassus_ros.algorithms.scalars import Matrix
from delassus_ros.algorithms.spatial import contact_rows
from delassus_ros.algorithms.steps import recorded
from delassus_ros.algorithms.tree import Tree
from delassus_ros.problem import Problem

_LARGE = 45_000
"""Estimated operations from which a trace has calls of routines; see :func:`is_large`."""


def is_large(problem: Problem) -> bool:
    """Return whether the trace of a problem has calls of routines instead of all nodes.

    By what PV-OSIMr needs, whatever the algorithm, so that counts can be compared.
    """
    robot, outputs = problem.robot, {port.name: port.shape for port in problem.outputs}
    estimate = 350 * len(robot.joints) + 6 * outputs.get("G", (0,))[0] ** 2
    if "J" in outputs:
        for contact in problem.contacts:
            depth = len(robot.path(robot.frames[contact.frame].body))
            estimate += 20 * len(contact.selection) * depth
    if "MinvJT" in outputs:
        estimate += 25 * math.prod(outputs["MinvJT"])
    return estimate > _LARGE


class OperationCounter:
    """Counts what several ways to the matrix of one tree need; what they share is traced once.

    Parameters
    ----------
    generic : see :func:`delassus_ros.compiler.trace.trace`.
    """

    def __init__(self, problem: Problem, tree: Tree, generic: bool) -> None:
        self._graph = graph = Graph()
        self._inputs = graph.input_block(problem.inputs)
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
        live, _ = self._graph.needed(outputs)
        return operations(self._graph, live).total
