"""Steps that are traced once: routines, and the calls of them in a graph.

The trace of a large system would have hundreds of thousands of nodes, most of them the same few
hundred again and again on other operands. So while a large system is traced, each call of a
:func:`~delassus_ros.scalars.steps.step` becomes one node of the graph: a routine, which is a
small graph of its own, with its operands. Calls share a routine if their arguments have one
*shape*: the same structure, the same zeros and ones, the same places that hold one and the same
scalar. Other constants that differ from call to call are operands as well.

:mod:`delassus_ros.compiler.passes.calls` makes code of it: a function per routine, a table of
calls.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from delassus_ros.errors import CompilerError
from delassus_ros.problem import Problem
from delassus_ros.scalars.graph import CALL, RESULT, Graph, Guard, Symbol
from delassus_ros.scalars.steps import recorded


@dataclass
class Routine:
    """A step for arguments of one shape.

    Attributes
    ----------
    graph : its nodes; the inputs are the scalars among the arguments, then the constants.
    outputs : nodes of its results, guarded values last.
    scalars, constants : how many of each it takes.
    template : its result, with a :class:`_Place` for each scalar.
    guards : what the last outputs are guarded against, in their order.
    texts : the texts among the arguments that it was traced with.
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
    """Where a scalar of a result comes from."""

    passed: bool
    """An argument is passed on; else it is an output."""
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
        """Return what the step returns, as symbols of the graph."""
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
    """The scalars and constants of arguments, each once, and the shape that is left.

    Attributes
    ----------
    scalars : nodes of the symbols.
    constants : numbers other than 0 and ±1.
    texts : names of what is computed; calls differ in them.
    key : the shape.
    """

    def __init__(self) -> None:
        self.scalars: dict[int, int] = {}
        self.constants: dict[float, int] = {}
        self.texts: list[str] = []
        self.key: list[Hashable] = []

    def add(self, value: Any) -> None:
        """Take an argument apart."""
        kind: Any = type(value)
        key = self.key
        if kind is Symbol:
            # Zeros and ones stand for themselves, so numbers of operands begin at ±2.
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
    """Return `value` with `scalar` applied to all that is not a list, tuple or object."""
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
    own = {symbol.index: k for k, symbol in enumerate([*scalars, *constants])}

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
        if value.index in own:
            return _Place(True, own[value.index])
        return _Place(False, numbers.setdefault(value.index, len(numbers)))

    routine.template = _mapped(result, outer)
    _, routine.guards = graph.needed(list(numbers))
    routine.outputs = [*numbers, *(guard.index for guard in routine.guards)]
    return routine


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
    if outputs.keys() & {"M", "h", "a0", "qdd0"}:
        estimate += 250 * len(robot.joints)
    return estimate > _LARGE
