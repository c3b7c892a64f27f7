"""Large systems: a table of calls (what is run, in which order, on what), and its LLVM IR.

Every value has a place in the work area. An entry of the table calls either a
routine, for which it lists the places of its operands, its constants and, by its position, the
place of its results; or a part, straight-line code for the few nodes that are not in routines.
Such nodes are put together in as few parts as their dependence on calls allows: sines and
cosines of the joints first, in vectors. The code grows with the number of routines only, the
tables with the number of calls.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from delassus.compiler.ir.input_rules import InputRules
from delassus.compiler.ir.program import (
    ANGLES,
    COSINES,
    EXTRACT,
    LOAD,
    SINES,
    Instruction,
    Part,
    Program,
    padded,
)
from delassus.compiler.ir.trace import Trace
from delassus.scalars.graph import CALL, CONSTANT, COS, INPUT, RESULT, SIN
from delassus.scalars.ports import Status

_PART_NODES = 1000
"""Nodes per part."""
_PART_ANGLES = 64
"""Angles per part that turns them."""


@dataclass(frozen=True)
class Function:
    """Something to call: a routine or a part.

    Attributes
    ----------
    part : its instructions; the inputs of a routine are its operands, then its constants.
    scalars, constants, results : how many operands and results a call has; none for a part.
    is_routine : whether it is one.
    """

    part: Part
    scalars: int = 0
    constants: int = 0
    results: int = 0
    is_routine: bool = False


@dataclass
class Table:
    """All calls of a kernel, in order.

    Attributes
    ----------
    functions : what is called.
    calls : the function of each call, by number.
    scalars : places of the operands of all calls.
    constants : constants of all calls.
    first_result : place of the first result; those of all calls follow each other.
    size : places in the work area.
    outputs, guards, regular, checked, inputs : as in a program, by places.
    """

    functions: list[Function] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)
    scalars: list[int] = field(default_factory=list)
    constants: list[float] = field(default_factory=list)
    first_result: int = 0
    size: int = 0
    outputs: list[int] = field(default_factory=list)
    guards: list[int] = field(default_factory=list)
    regular: list[int] = field(default_factory=list)
    checked: list[int] = field(default_factory=list)
    inputs: InputRules | None = None


def table_of(trace: Trace, checked: list[int], block: int) -> Table:
    """Return the table of a trace with calls.

    Parameters
    ----------
    checked : positions in the output block whose sum must be finite.
    block : most angles in one vector.
    """
    return _Builder(trace, block).run(checked)


class _Builder:
    """Sorts the nodes of a trace into parts and calls."""

    def __init__(self, trace: Trace, block: int) -> None:
        self._trace, self._block = trace, block
        self._nodes, self._operands = trace.graph.nodes, trace.graph.operands
        self._table = Table()
        # Per plain node the part that computes it; per stored one, and per result, its place.
        self._home: dict[int, int] = {}
        self._place: dict[int, int] = {}
        # Nodes of each part, and whether they are sines and cosines; a call by its node.
        self._parts: list[tuple[list[int], bool]] = []
        self._order: list[tuple[bool, int]] = []

    def run(self, checked: list[int]) -> Table:
        """Return the table."""
        trace, table = self._trace, self._table
        self._arrange()
        self._choose_places()
        for number, (nodes, turned) in enumerate(self._parts):
            part = self._turning(nodes) if turned else self._straight(nodes, number)
            table.functions.append(Function(part))
        known: dict[int, int] = {}
        for is_call, item in self._order:
            if not is_call:
                table.calls.append(item)
                continue
            _, routine, scalars, constants = self._nodes[item]
            if routine not in known:
                known[routine] = len(table.functions)
                table.functions.append(self._function(routine))
            table.calls.append(known[routine])
            table.scalars += [self._place[n] for n in scalars]
            table.constants += constants
        table.outputs = [self._place[n] for n in trace.outputs]
        for guard in trace.guards:
            singular = guard.status is Status.SINGULAR_LOOP
            (table.regular if singular else table.guards).append(self._place[guard.index])
        table.checked = [table.outputs[position] for position in checked]
        table.inputs = trace.inputs
        return table

    def _arrange(self) -> None:
        """Put nodes into stages: in each one, parts, then calls, which may need each other."""
        stage: dict[int, int] = {}
        plain: dict[int, list[int]] = {}
        calls: dict[int, list[int]] = {}
        flat: set[int] = set()  # neither calls nor sines nor cosines below
        for i in self._trace.live:
            kind, below = self._nodes[i][0], self._operands[i]
            # What needs the result of a call comes after all calls of that stage, unless it is
            # a call itself.
            stage[i] = max(
                (stage[n] + (kind != CALL and self._nodes[n][0] == RESULT) for n in below),
                default=0,
            )
            if kind == CALL:
                calls.setdefault(stage[i], []).append(i)
            elif kind != RESULT:
                if kind not in (SIN, COS) and flat.issuperset(below):
                    flat.add(i)
                if kind not in (INPUT, CONSTANT):
                    plain.setdefault(stage[i], []).append(i)
        turned = [
            i
            for i in plain.get(0, [])
            if self._nodes[i][0] in (SIN, COS) and self._nodes[i][1] in flat
        ]
        first = set(turned)
        self._add_parts([i for i in plain.get(0, []) if i in flat])
        by_angle: dict[int, list[int]] = {}
        for i in turned:
            by_angle.setdefault(self._nodes[i][1], []).append(i)
        angles = list(by_angle)
        for start in range(0, len(angles), _PART_ANGLES):
            together = angles[start : start + _PART_ANGLES]
            self._add_part([i for angle in together for i in by_angle[angle]], turned=True)
        for s in range(max(stage.values()) + 1):
            rest = plain.get(s, [])
            self._add_parts([i for i in rest if i not in first and (s or i not in flat)])
            self._order += [(True, i) for i in calls.get(s, [])]

    def _add_parts(self, nodes: list[int]) -> None:
        for start in range(0, len(nodes), _PART_NODES):
            self._add_part(nodes[start : start + _PART_NODES], turned=False)

    def _add_part(self, nodes: list[int], turned: bool) -> None:
        number = len(self._parts)
        self._parts.append((nodes, turned))
        self._order.append((False, number))
        for i in nodes:
            self._home[i] = number

    def _choose_places(self) -> None:
        """Give a place to every value that is needed where it is not computed."""
        nodes, trace = self._nodes, self._trace
        wanted: dict[int, None] = {}
        for i in trace.live:
            for n in self._operands[i]:
                elsewhere = self._home.get(i) != self._home.get(n)
                if nodes[i][0] == CALL or (elsewhere and n in self._home):
                    wanted[n] = None
        for n in (*trace.outputs, *(guard.index for guard in trace.guards)):
            wanted[n] = None
        loose = [n for n in wanted if n not in self._home and nodes[n][0] != RESULT]
        if loose:
            # Inputs and constants that calls take or that are results: a part copies them.
            self._parts.append((loose, False))
            self._order.insert(0, (False, len(self._parts) - 1))
        for n in wanted:
            if nodes[n][0] != RESULT:
                self._place[n] = len(self._place)
        self._table.first_result = size = len(self._place)
        first: dict[int, int] = {}
        for is_call, i in self._order:
            if is_call:
                first[i] = size
                size += len(trace.graph.routines[nodes[i][1]].outputs)
        for i in trace.live:
            if nodes[i][0] == RESULT:
                self._place[i] = first[nodes[i][1]] + nodes[i][2]
        self._table.size = size

    def _straight(self, members: list[int], number: int) -> Part:
        """Return a part for plain nodes."""
        part = Part()
        known: dict[int, int] = {}
        for i in members:
            self._value(part, known, i, number)
        part.stores = [(known[i], self._place[i]) for i in members if i in self._place]
        return part

    def _value(self, part: Part, known: dict[int, int], i: int, number: int) -> int:
        """Return the position of a value in a part."""
        if i in known:
            return known[i]
        node = self._nodes[i]
        if node[0] in (INPUT, CONSTANT) or self._home.get(i) == number:
            below = tuple(self._value(part, known, n, number) for n in self._operands[i])
            instruction = Instruction.of(node, below)
        else:
            instruction = Instruction(LOAD, 1, lanes=(self._place[i],))
        part.program.instructions.append(instruction)
        known[i] = len(part.program.instructions) - 1
        return known[i]

    def _turning(self, members: list[int]) -> Part:
        """Return a part for sines and cosines."""
        part = Part()
        code = part.program.instructions
        angles = list(dict.fromkeys(self._nodes[i][1] for i in members))
        known: dict[int, int] = {}
        arguments = tuple(self._value(part, known, angle, -1) for angle in angles)
        sizes = tuple(
            min(self._block, len(angles) - start) for start in range(0, len(angles), self._block)
        )
        code.append(Instruction(ANGLES, 1, arguments, lanes=sizes))
        for i in members:
            block, lane = divmod(angles.index(self._nodes[i][1]), self._block)
            kind = SINES if self._nodes[i][0] == SIN else COSINES
            width = padded(sizes[block])
            code.append(Instruction(kind, width, lanes=(block,)))
            if width > 1:
                code.append(Instruction(EXTRACT, 1, (len(code) - 1,), lanes=(lane,)))
            if i in self._place:
                part.stores.append((len(code) - 1, self._place[i]))
        return part

    def _function(self, number: int) -> Function:
        """Return a routine as a function."""
        routine = self._trace.graph.routines[number]
        nodes, operands = routine.graph.nodes, routine.graph.operands
        program, position = Program(), {}
        for i in routine.graph.live(routine.outputs):
            position[i] = len(program.instructions)
            below = tuple(position[n] for n in operands[i])
            program.instructions.append(Instruction.of(nodes[i], below))
        outputs = [(position[n], entry) for entry, n in enumerate(routine.outputs)]
        return Function(
            Part(program, [], outputs),
            routine.scalars, routine.constants, len(routine.outputs), True,
        )  # fmt: skip
