"""Operation counts of algorithms for G stage by stage, as figure 5 of the EFPA paper has them.

A stage counts what its results need beyond the results of the stages before it. Counts are
generic: the robot's constants are unknown numbers, and structural zeros are not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from delassus import Problem
from delassus.algorithms import efpa, kjr, ltl
from delassus.rbda.factored_inertia import factorise, products, solve_rows
from delassus.rbda.propagation import (
    FreeBody,
    Propagator,
    articulated_joints,
)
from delassus.rbda.spatial import contact_rows
from delassus.rbda.tree import Tree
from delassus.rbda.trees import tree_of
from delassus.rbda.unknown_constants import tree_of_unknown_constants, unknown_constants
from delassus.scalars.counts import operations
from delassus.scalars.functions import Matrix
from delassus.scalars.graph import Graph
from delassus.scalars.ports import Inputs

INERTIAS, PROPAGATORS = "inertias", "propagators; J and Y"
DIAGONAL, CROSS = "blocks on the diagonal", "blocks off the diagonal"
NAMES = (INERTIAS, PROPAGATORS, DIAGONAL, CROSS)
"""Stages: articulated inertias, or M and its factors; EFPA's inward propagators, or J and Y of
LTL; the outward recursion that ends at the diagonal of G; all other blocks."""

Stages: TypeAlias = Iterator[tuple[str, Any]]
"""Names of stages and nested lists of their scalars."""


def _efpa(tree: Tree, K: dict[int, Matrix], x: Inputs) -> Stages:
    # The sweep is run twice: equal scalars are one node of a graph.
    yield INERTIAS, _sweep(tree, x)
    joints, rows, KSD = efpa.propagators(tree, K, x)
    yield PROPAGATORS, [list(each.values()) for each in (*rows, *KSD)]
    found = list(efpa.blocks(tree, rows, efpa.accelerations(tree, joints, rows, KSD)))
    yield DIAGONAL, [block for first, second, block in found if first is second]
    yield CROSS, [block for _, _, block in found]


def _sweep(tree: Tree, x: Inputs) -> list[Any]:
    """Return D⁻¹ and H S D⁻¹ of all joints, and L and D⁻¹ of free bodies."""
    found: list[Any] = []
    for joint in articulated_joints(tree, x):
        if isinstance(joint, FreeBody):
            L, D_inverse = joint._factors
            found += [D_inverse, *(row[:k] for k, row in enumerate(L))]
        elif isinstance(joint, Propagator):
            found += [joint.D_inverse, *(h for k, h in enumerate(joint.HSD) if k != joint.S)]
    return found


def _kjr(tree: Tree, K: dict[int, Matrix], x: Inputs) -> Stages:
    yield INERTIAS, _sweep(tree, x)
    G = kjr.kjr(tree, K, x)
    yield DIAGONAL, _diagonal(tree, G)
    yield CROSS, G


def _diagonal(tree: Tree, G: Matrix) -> list[Any]:
    """Return the blocks of G of single contacts."""
    contacts = [contact for link in tree.links for contact in link.contacts]
    spans = [slice(each.first_row, each.first_row + len(each.K)) for each in contacts]
    return [[row[span] for row in G[span]] for span in spans]


def _ltl(tree: Tree, K: dict[int, Matrix], x: Inputs) -> Stages:
    M, J, freedoms = ltl.projected(tree, K, x)
    L, D_inverse = factorise(M, freedoms.names)
    yield INERTIAS, [L, D_inverse]
    Y = [solve_rows(L, row) for row in J]
    yield PROPAGATORS, Y
    G = products(Y, D_inverse)
    yield DIAGONAL, _diagonal(tree, G)
    yield CROSS, G


_ALGORITHMS: Mapping[str, Callable[[Tree, dict[int, Matrix], Inputs], Stages]] = {
    "efpa": _efpa, "kjr": _kjr, "ltl": _ltl,
}  # fmt: skip


def stages(problem: Problem, algorithm: str) -> dict[str, int]:
    """Return the operations of the stages of an algorithm, by name."""
    graph = Graph()
    x = graph.input_block(problem.inputs)
    tree = tree_of_unknown_constants(tree_of(problem), graph.parameter)
    found: dict[str, int] = {}
    before, outputs = 0, []
    with unknown_constants(graph.parameter):
        for name, values in _ALGORITHMS[algorithm](tree, contact_rows(problem, tree, x), x):
            outputs += [graph.index_of(value) for value in _flat(values)]
            total = operations(graph, graph.live(outputs)).total
            found[name], before = total - before, total
    return found


def _flat(values: Any) -> Iterator[Any]:
    if isinstance(values, list):
        for value in values:
            yield from _flat(value)
    else:
        yield values
