"""Operation counts of expression graphs, by the papers' conventions."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from delassus.errors import CompilerError
from delassus.scalars.graph import (
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
)


@dataclass(frozen=True)
class OperationCount:
    """Scalar operations of a kernel, the papers' measure.

    A fused multiply-add counts 2; addition, multiplication, division and square root count 1,
    negation and selection 0; sines and cosines are counted separately.
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


def operations(graph: Graph, live: list[int]) -> OperationCount:
    """Return the operations of nodes that depend on the inputs.

    Nodes that depend only on the robot's constants are folded or, in a generic trace, computed
    once when the robot is loaded.

    Parameters
    ----------
    live : the needed nodes, operands first.
    """
    found = _kinds(graph, live)
    count = found.nodes
    for number, times in found.calls.items():
        routine = graph.routines[number]
        inside = _kinds(routine.graph, routine.graph.live(routine.outputs))
        for kind, number in inside.nodes.items():
            count[kind] += times * number
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
    """Numbers of nodes by kind, and of calls by routine."""

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
        # For most nodes the first operand already shows that not all operands are constant.
        elif kind != INPUT and node[1] in constant and constant.issuperset(operands[i]):
            constant.add(i)
        else:
            kinds.append(kind)
    found.nodes.update(kinds)
    return found
