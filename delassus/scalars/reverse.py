"""Reverse mode: the gradient of a weighted sum of a graph's results, added to the same graph.

Expressions are straight-line code, so that the gradient is straight-line code as well: each node
passes its adjoint to its operands, results first. The number of operations is at most some four
times that of the nodes, whatever the number of variables.
"""

from __future__ import annotations

from collections.abc import Sequence

from delassus.errors import CompilerError
from delassus.scalars.functions import Scalar, select
from delassus.scalars.graph import (
    ADD,
    CONSTANT,
    COS,
    DIV,
    MUL,
    NEG,
    SELECT,
    SIN,
    SQRT,
    SUB,
    Graph,
    Symbol,
)


def gradient(
    graph: Graph, results: Sequence[Scalar], seeds: Sequence[Scalar], variables: Sequence[Symbol]
) -> list[Scalar]:
    """Return the derivatives of Σ seed · result with respect to variables.

    Parameters
    ----------
    results : symbols of the graph, or numbers, which have no derivatives.
    seeds : weights of the results.
    variables : symbols of inputs.

    Raises
    ------
    CompilerError
        If a result depends on a call of a routine, which has no derivative.
    """
    roots = [result.index for result in results if isinstance(result, Symbol)]
    live, varying = graph.live(roots), {variable.index for variable in variables}
    for n in live:
        if any(k in varying for k in graph.operands[n]):
            varying.add(n)
    adjoints: dict[int, Scalar] = {}

    def add(n: int, value: Scalar) -> None:
        if n in varying:
            adjoints[n] = adjoints[n] + value if n in adjoints else value

    for result, seed in zip(results, seeds, strict=True):
        if isinstance(result, Symbol):
            add(result.index, seed)
    wanted = {variable.index for variable in variables}
    for n in reversed(live):
        if n in adjoints and n not in wanted:
            for operand, value in _passed(graph, n, adjoints.pop(n)):
                add(operand, value)
    return [adjoints.get(variable.index, 0.0) for variable in variables]


def _passed(graph: Graph, n: int, adjoint: Scalar) -> list[tuple[int, Scalar]]:
    """Return the parts of a node's adjoint that go to its operands."""
    kind, *operands = graph.nodes[n]
    if kind == NEG:
        return [(operands[0], -adjoint)]
    if kind == ADD:
        return [(operands[0], adjoint), (operands[1], adjoint)]
    if kind == SUB:
        return [(operands[0], adjoint), (operands[1], -adjoint)]
    if kind == MUL:
        a, b = (_value(graph, k) for k in operands)
        return [(operands[0], adjoint * b), (operands[1], adjoint * a)]
    if kind == DIV:
        above, below = (_value(graph, k) for k in operands)
        result = Symbol(graph, n)
        if above == 1.0 if isinstance(above, float) else False:
            return [(operands[1], -(adjoint * (result * result)))]
        part = adjoint / below
        return [(operands[0], part), (operands[1], -(part * result))]
    if kind == SQRT:
        return [(operands[0], adjoint * (0.5 / Symbol(graph, n)))]
    if kind == SIN:
        return [(operands[0], adjoint * Symbol(graph, graph.node(COS, operands[0])))]
    if kind == COS:
        return [(operands[0], -(adjoint * Symbol(graph, graph.node(SIN, operands[0]))))]
    if kind == SELECT:
        x, positive, otherwise = operands
        switch = Symbol(graph, x)
        return [
            (positive, select(switch, adjoint, 0.0)),
            (otherwise, select(switch, 0.0, adjoint)),
        ]
    raise CompilerError(f"an expression of kind {kind!r} has no derivative")


def _value(graph: Graph, n: int) -> Scalar:
    """Return a node as a symbol, or its number if it is constant."""
    node = graph.nodes[n]
    return node[1] if node[0] == CONSTANT else Symbol(graph, n)
