"""Routines: steps that are traced once, and their calls in a graph.

The trace of a large system would have hundreds of thousands of nodes, mostly repetitions of a few
hundred nodes on different operands. So in the trace of a large system, a call of a
:func:`~delassus.scalars.steps.step` becomes one node of the graph: a routine, which is a
separate small graph, with its operands. Calls share a routine if their arguments have one
*shape*: the same structure, the same zeros and ones, the same places that hold equal scalars.
Constants that differ between calls are operands as well.

:mod:`delassus.compiler.passes.calls` generates the code: a function per routine and a table
of calls.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from delassus.errors import CompilerError
from delassus.scalars.graph import CALL, RESULT, Graph, Guard, Symbol
from delassus.scalars.steps import recorded


@dataclass
class Routine:
    """A step for arguments of one shape.

    Attributes
    ----------
    graph : graph of the step; its inputs are the scalars among the arguments, then the constants.
    outputs : nodes of the results, guarded values last.
    scalars, constants : numbers of scalar and constant inputs.
    template : the result, with a :class:`_Place` in place of every scalar.
    guards : guards of the last outputs, in their order.
    texts : the texts among the arguments of the trace.
    """

    graph: Graph
    scalars: int
    constants: int
    outputs: list[int] = field(default_factory=list)
    template: Any = None
    guards: list[Guard] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Place:
    """The source of a scalar of a result."""

    passed: bool
    """Whether the scalar is an argument of the step; otherwise an output of the routine."""
    number: int


class Routines:
    """Records steps as calls in a graph.

    Attributes
    ----------
    found : the routines, by number.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._known: dict[Hashable, int] = {}
        self.found: list[Routine] = []
        graph.routines = self.found

    def __call__(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        """Return the results of the step as symbols of the graph."""
        leaves = _Leaves()
        leaves.add(arguments)
        if not leaves.scalars:
            with recorded(None):
                return function(*arguments)
        key = (function, *leaves.key)
        number = self._known.get(key)
        if number is None:
            number = self._known[key] = len(self.found)
            self.found.append(_traced(function, arguments, leaves))
        routine = self.found[number]
        graph = self._graph
        scalars, constants = tuple(leaves.scalars), tuple(leaves.constants)
        call = graph.node(CALL, number, scalars, constants)
        first = len(routine.outputs) - len(routine.guards)
        for k, guard in enumerate(routine.guards, start=first):
            index, what = graph.node(RESULT, call, k), guard.what
            for first_text, text in zip(routine.texts, leaves.texts, strict=True):
                what = what.replace(first_text, text)
            graph.guards.append(Guard(index, what, call, guard.status))

        def scalar(place: object) -> Any:
            if not isinstance(place, _Place):
                return place
            if not place.passed:
                return Symbol(graph, graph.node(RESULT, call, place.number))
            if place.number < len(scalars):
                return Symbol(graph, scalars[place.number])
            return constants[place.number - len(scalars)]

        return _mapped(routine.template, scalar)


class _Leaves:
    """The distinct scalars and constants of arguments, and the shape of the arguments.

    Attributes
    ----------
    scalars : nodes of the symbols.
    constants : numbers other than 0 and ±1.
    texts : names for messages, which may differ between calls.
    key : the shape.
    """

    def __init__(self) -> None:
        self.scalars: dict[int, int] = {}
        self.constants: dict[float, int] = {}
        self.texts: list[str] = []
        self.key: list[Hashable] = []

    def add(self, value: Any) -> None:
        """Add the scalars and constants of an argument, and its shape."""
        kind: Any = type(value)
        key = self.key
        if kind is Symbol:
            # Zeros and ones are part of the shape, so numbers of operands begin at ±2.
            key.append(2 + self.scalars.setdefault(value.index, len(self.scalars)))
        elif isinstance(value, float):
            if value in (0.0, 1.0, -1.0):
                key.append(float(value))
            else:
                key.append(-2 - self.constants.setdefault(value, len(self.constants)))
        elif kind is str:
            self.texts.append(value)
            key.append(str)
        elif kind is list:
            key.append(("list", len(value)))
            for entry in value:
                self.add(entry)
        elif isinstance(value, tuple):
            key.append((kind, len(value)))
            for entry in value:
                self.add(entry)
        elif hasattr(kind, "__slots__"):
            key.append(kind)
            for name in kind.__slots__:
                self.add(getattr(value, name))
        else:
            key.append((kind, value))


def _mapped(value: Any, scalar: Callable[[Any], Any]) -> Any:
    """Return `value` with `scalar` applied to all leaves of lists, tuples and objects."""
    kind = type(value)
    if kind is list:
        return [_mapped(entry, scalar) for entry in value]
    if isinstance(value, tuple):
        entries = [_mapped(entry, scalar) for entry in value]
        return tuple(entries) if kind is tuple else kind(*entries)
    if kind is not Symbol and hasattr(kind, "__slots__"):
        copy = object.__new__(kind)
        for name in kind.__slots__:
            setattr(copy, name, _mapped(getattr(value, name), scalar))
        return copy
    return scalar(value)


def _traced(function: Callable[..., Any], arguments: tuple[Any, ...], leaves: _Leaves) -> Routine:
    """Return the routine of a step for arguments of this shape."""
    graph = Graph()
    scalars = [graph.input(k) for k in range(len(leaves.scalars))]
    first = len(scalars)
    constants = [graph.input(first + k) for k in range(len(leaves.constants))]
    inputs = {symbol.index: k for k, symbol in enumerate([*scalars, *constants])}

    def inner(value: Any) -> Any:
        if isinstance(value, Symbol):
            return scalars[leaves.scalars[value.index]]
        if isinstance(value, float) and value in leaves.constants:
            return constants[leaves.constants[value]]
        return value

    with recorded(None):
        result = function(*_mapped(arguments, inner))
    routine = Routine(graph, len(scalars), len(constants), texts=leaves.texts)
    numbers: dict[int, int] = {}

    def outer(value: Any) -> Any:
        if not isinstance(value, Symbol):
            return value
        if value.graph is not graph:
            raise CompilerError(f"step {function.__name__!r} uses scalars besides its arguments")
        if value.index in inputs:
            return _Place(True, inputs[value.index])
        return _Place(False, numbers.setdefault(value.index, len(numbers)))

    routine.template = _mapped(result, outer)
    _, routine.guards = graph.needed(list(numbers))
    routine.outputs = [*numbers, *(guard.index for guard in routine.guards)]
    return routine
