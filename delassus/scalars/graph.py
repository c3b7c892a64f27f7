"""The expression graph of a trace: shared sub-expressions, folded constants.

Nodes are created in topological order and never changed. Equal expressions are one node
(hash-consing). Folding is exact: only ``x·0``, ``x·±1``, ``x ± 0`` and signs are simplified; the
exception are consecutive constant factors, which are multiplied during the trace. ``0·x = 0``
holds for finite inputs: an input that is not finite affects only results that depend on the input.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from delassus.errors import CompilerError
from delassus.scalars import functions as scalars
from delassus.scalars.ports import Port, Status, places

# Node kinds: (kind, operand, operand[, operand]); operands are node indices, except for
# "input" (position in the input block) and "constant" (the value).
INPUT, CONSTANT, NEG, ADD, SUB, MUL, DIV, SQRT, SIN, COS, SELECT = (
    "input", "constant", "neg", "add", "sub", "mul", "div", "sqrt", "sin", "cos", "select",
)  # fmt: skip
PARAMETER = "parameter"
"""An unknown constant of the robot; only in graphs that are counted, not compiled."""

CALL, RESULT = "call", "result"
"""A call: number of the routine, its operands, its constants; and the k-th result of a call."""

Node: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True)
class Guard:
    """A node that must be positive at run time.

    Attributes
    ----------
    index : the node.
    what : its name, for messages.
    owner : the node that the guard validates; the guard is kept if an output needs this node.
    status : of the kernel if the node is not positive.
    """

    index: int
    what: str
    owner: int
    status: Status = Status.NOT_POSITIVE_DEFINITE


class Graph:
    """A growing expression graph.

    Attributes
    ----------
    repeats : whether long expressions occur repeatedly and are shared: a multiple is then
        written as at its first occurrence, even where its opposite exists by now.
    alone : whether the graph holds a single step, which is compared with other steps for any
        constants: the opposite of a multiple is then a separate multiple.
    nodes : the nodes, operands before users.
    operands : operands of nodes, by index of the node.
    guards : values that must be positive for the result to be valid.
    routines : the routines of the graph's calls; see :mod:`delassus.scalars.routines`.
    """

    def __init__(self, repeats: bool = False, alone: bool = False) -> None:
        self.repeats, self.alone = repeats, alone
        self.nodes: list[Node] = []
        self.operands: list[tuple[int, ...]] = []
        self.guards: list[Guard] = []
        self.routines: list[Any] = []
        self._index: dict[Node, int] = {}

    def node(self, *key: object) -> int:
        """Return the index of the node `key`, adding the node if it is new."""
        index = self._index.get(key)
        if index is None:
            index = self._index[key] = len(self.nodes)
            self.nodes.append(key)
            self.operands.append(_operands(key))
        return index

    def find(self, *key: object) -> int | None:
        """Return the index of the node `key`, or None if it does not exist."""
        return self._index.get(key)

    def input(self, position: int) -> Symbol:
        """Return the symbol of an entry of the input block."""
        return Symbol(self, self.node(INPUT, position))

    def input_block(self, ports: Iterable[Port]) -> dict[str, list[Symbol]]:
        """Return the symbols of an input block, by port."""
        return {
            port.name: [self.input(k) for k in range(place.start, place.stop)]
            for port, place in places(ports)
        }

    def parameter(self) -> Symbol:
        """Return a new unknown constant."""
        return Symbol(self, self.node(PARAMETER, len(self.nodes)))

    def index_of(self, value: object) -> int:
        """Return the node of a symbol or of a constant number."""
        if isinstance(value, Symbol):
            return value.index
        if isinstance(value, (int, float)):
            return self.node(CONSTANT, float(value) + 0.0)
        raise CompilerError(
            f"an algorithm returned {type(value).__name__}; expected floats or the symbolic "
            "scalars it was given"
        )

    def live(self, roots: Iterable[int]) -> list[int]:
        """Return the indices of all nodes that `roots` depend on, operands first."""
        seen: set[int] = set()
        self._reach(roots, seen)
        return sorted(seen)

    def needed(self, outputs: list[int]) -> tuple[list[int], list[Guard]]:
        """Return the nodes that outputs and guards depend on, operands first, and the guards."""
        seen: set[int] = set()
        self._reach(outputs, seen)
        guards = [guard for guard in dict.fromkeys(self.guards) if guard.owner in seen]
        self._reach((guard.index for guard in guards), seen)
        return sorted(seen), guards

    def _reach(self, roots: Iterable[int], seen: set[int]) -> None:
        """Add to `seen` all roots and the nodes that they depend on."""
        operands = self.operands
        stack = [n for n in roots if n not in seen]
        seen.update(stack)
        while stack:
            for n in operands[stack.pop()]:
                if n not in seen:
                    seen.add(n)
                    stack.append(n)


def _operands(node: Node) -> tuple[int, ...]:
    kind = node[0]
    if kind in _LEAVES:
        return ()
    if kind == CALL:
        called: tuple[int, ...] = node[2]
        return called
    return node[1:2] if kind == RESULT else node[1:]


_LEAVES = frozenset((INPUT, CONSTANT, PARAMETER))


_NUMBERS = (float, int)
"""Types of constants; operations with further scalars, such as duals, are theirs."""


class Symbol:
    """A symbolic scalar: behaves like a float in an algorithm and records the operations.

    Comparing or branching on a symbol raises TypeError: a trace has no values to branch on. Use
    :func:`delassus.scalars.functions.select`.
    """

    __slots__ = ("graph", "index")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, graph: Graph, index: int) -> None:
        self.graph = graph
        self.index = index

    def __bool__(self) -> bool:
        raise TypeError("a traced scalar has no truth value; use select(x, positive, otherwise)")

    def __eq__(self, other: object) -> bool:
        raise TypeError("traced scalars cannot be compared; use is_zero(x) or select(…)")

    __lt__ = __le__ = __gt__ = __ge__ = __eq__

    def __float__(self) -> float:
        raise TypeError("a traced scalar has no value; keep it a scalar")

    def __neg__(self) -> Symbol:
        graph = self.graph
        node = graph.nodes[self.index]
        if node[0] == NEG:
            return Symbol(graph, node[1])
        if node[0] == SUB and (
            graph.alone
            or not any(map(self._is_multiple, node[1:]))
            or graph.find(SUB, node[2], node[1]) is not None
        ):
            return Symbol(graph, graph.node(SUB, node[2], node[1]))
        if graph.alone and self._is_multiple(self.index):
            return Symbol(
                graph, graph.node(MUL, graph.node(CONSTANT, -graph.nodes[node[1]][1]), node[2])
            )
        # Multiples by constants share a node, too: both signs may be needed, and a sign is free.
        return Symbol(graph, graph.node(NEG, self.index))

    def _is_multiple(self, index: int) -> bool:
        """Return whether a node is a multiple by a constant."""
        node = self.graph.nodes[index]
        return bool(node[0] == MUL and self.graph.nodes[node[1]][0] == CONSTANT)

    def __pos__(self) -> Symbol:
        return self

    def __add__(self, other: Symbol | float) -> Symbol:
        graph = self.graph
        if isinstance(other, Symbol):
            return _add(graph, self.index, other.index)
        if not isinstance(other, _NUMBERS):
            return NotImplemented
        if other == 0.0:
            return self
        return _add(graph, self.index, graph.node(CONSTANT, float(other)))

    __radd__ = __add__

    def __sub__(self, other: Symbol | float) -> Symbol:
        if isinstance(other, Symbol):
            return _sub(self.graph, self.index, other.index)
        return self + (-other)

    def __rsub__(self, other: float) -> Symbol:
        return -self if other == 0.0 else (-self) + other

    def __mul__(self, other: Symbol | float) -> Symbol | float:
        graph = self.graph
        if not isinstance(other, Symbol):
            if not isinstance(other, _NUMBERS):
                return NotImplemented
            return _scale(graph, float(other), self.index)
        a, b, negative = self.index, other.index, False
        nodes = graph.nodes
        if nodes[a][0] == NEG:
            a, negative = nodes[a][1], not negative
        if nodes[b][0] == NEG:
            b, negative = nodes[b][1], not negative
        product = Symbol(graph, graph.node(MUL, a, b) if a < b else graph.node(MUL, b, a))
        return -product if negative else product

    __rmul__ = __mul__

    def __truediv__(self, other: Symbol | float) -> Symbol:
        graph = self.graph
        if isinstance(other, Symbol):
            return Symbol(graph, graph.node(DIV, self.index, other.index))
        if not isinstance(other, _NUMBERS):
            return NotImplemented
        if other == 1.0:
            return self
        if other == 0.0:
            raise ZeroDivisionError("a traced scalar is divided by zero")
        return Symbol(graph, graph.node(DIV, self.index, graph.node(CONSTANT, float(other))))

    def __rtruediv__(self, other: float) -> Symbol | float:
        graph = self.graph
        if other == 0.0:
            return 0.0
        return Symbol(graph, graph.node(DIV, graph.node(CONSTANT, float(other)), self.index))


def _add(graph: Graph, a: int, b: int) -> Symbol:
    nodes = graph.nodes
    negative_a, negative_b = nodes[a][0] == NEG, nodes[b][0] == NEG
    if negative_a and negative_b:
        return -_add(graph, nodes[a][1], nodes[b][1])
    if negative_b:
        return _sub(graph, a, nodes[b][1])
    if negative_a:
        return _sub(graph, b, nodes[a][1])
    return Symbol(graph, graph.node(ADD, a, b) if a < b else graph.node(ADD, b, a))


def _sub(graph: Graph, a: int, b: int) -> Symbol:
    nodes = graph.nodes
    if nodes[b][0] == NEG:
        return _add(graph, a, nodes[b][1])
    if nodes[a][0] == NEG:
        return -_add(graph, nodes[a][1], b)
    return Symbol(graph, graph.node(SUB, a, b))


def _scale(graph: Graph, factor: float, index: int) -> Symbol | float:
    """Return factor · node, merged with constant factors of the node.

    The sign stays in the constant: mirrored limbs then differ in constants only, not in the
    shape of their expressions, which is what lane packing looks for.
    """
    if factor == 0.0:
        return 0.0
    if factor == 1.0:
        return Symbol(graph, index)
    node = graph.nodes[index]
    if node[0] == NEG:
        return _scale(graph, -factor, node[1])
    if factor == -1.0:
        return -Symbol(graph, index)
    if node[0] == MUL and graph.nodes[node[1]][0] == CONSTANT:
        merged = factor * graph.nodes[node[1]][1]
        # No merge where the product of the constants overflows, or is subnormal and has fewer
        # digits.
        if sys.float_info.min <= abs(merged) < math.inf:
            return _scale(graph, merged, node[2])
    constant, opposite = graph.find(CONSTANT, factor), graph.find(CONSTANT, -factor)
    again = graph.repeats and constant is not None and graph.find(MUL, constant, index) is not None
    if opposite is not None and not again:
        twin = graph.find(MUL, opposite, index)
        if twin is not None:
            return Symbol(graph, graph.node(NEG, twin))
    # A constant factor comes first, where the merge above looks.
    return Symbol(graph, graph.node(MUL, graph.node(CONSTANT, factor), index))


@scalars.sincos.register
def _(angle: Symbol) -> tuple[Symbol, Symbol]:
    graph = angle.graph
    return (
        Symbol(graph, graph.node(SIN, angle.index)),
        Symbol(graph, graph.node(COS, angle.index)),
    )


@scalars.sqrt.register
def _(x: Symbol) -> Symbol:
    return Symbol(x.graph, x.graph.node(SQRT, x.index))


@scalars.select.register
def _(x: Symbol, positive: object, otherwise: object) -> Symbol:
    graph = x.graph
    branches = graph.index_of(positive), graph.index_of(otherwise)
    return Symbol(graph, graph.node(SELECT, x.index, *branches))


@scalars.positive.register
def _(x: Symbol, what: str, of: Symbol | None = None) -> Symbol:
    x.graph.guards.append(Guard(x.index, what, (x if of is None else of).index))
    return x


@scalars.regular.register
def _(pivot: Symbol, least: float, what: str) -> Symbol:
    margin = scalars.absolute(pivot) - least
    guard = Guard(margin.index, what, pivot.index, Status.SINGULAR_LOOP)
    pivot.graph.guards.append(guard)
    return pivot
