"""Long programs in parts: functions of a bounded length that hand values on through memory.

What a code generator does to one straight-line function grows faster than its length: registers
are allocated among all values that live at a time. So a long program is cut into parts, one
function each, and a value that a later part needs is stored in the work area, where a long
function would have spilled it anyway. The time to compile is then linear in the length. Inputs
and constants are not stored: each part loads them itself.
"""

from __future__ import annotations

from typing import NamedTuple

from delassus.compiler.ir.program import (
    ANGLES,
    COSINES,
    LOAD,
    SINES,
    Instruction,
    Part,
    Program,
    whole,
)
from delassus.compiler.passes.order import depth_first, interleaved
from delassus.scalars.graph import CONSTANT, INPUT


class Lengths(NamedTuple):
    """How long parts are.

    Attributes
    ----------
    longest : instructions of a program that stays in one part.
    length : instructions per part of a longer one.
    """

    longest: int
    length: int


SINGLE = Lengths(3000, 1500)
"""For one configuration."""
LONG = Lengths(7000, 250)
"""The same for programs above the first of these. Their code does not stay in the caches next to
the processor, so that the shortest is the fastest; short parts let places in the stack and in the
work area be used again."""
LONG_OF_FEW = Lengths(4500, 250)
"""The same with 16 vector registers instead of 32, see
:func:`~delassus.compiler.codegen.target.has_few_registers`. There, more values of an
interleaved part wait than have a register: of 4700 instructions short parts are 6 % faster, of
5800 12 %. With 32 registers they make these 5 to 8 % more instructions of the processor."""
BATCH = Lengths(1500, 180)
"""For vectors of configurations. Of its values a longer function would keep most in memory too,
and in a larger area: in parts, places come free. A program for an arm has so few that it gains
nothing. Parts of 180 suit humanoids best, those of 120 quadrupeds, by some percent."""


def split(program: Program, lengths: Lengths) -> list[Part]:
    """Return the parts of a program."""
    if len(program.instructions) <= lengths.longest:
        return [whole(program)]
    return _Cutter(program, lengths.length).run()


def single_parts(program: Program, long: Lengths = LONG) -> list[Part]:
    """Return the parts of a program for one configuration.

    Parameters
    ----------
    long : from which length on parts are short and not interleaved.
    """
    if len(program.instructions) > long.longest:
        # Not interleaved: values that wait would make the code longer.
        return split(program, long)
    return [interleaved(part) for part in split(program, SINGLE)]


def batch_parts(program: Program) -> list[Part]:
    """Return the parts of a program for vectors of configurations.

    Not interleaved: these keep a processor busy in any order.
    """
    return split(depth_first(program), BATCH)


def orders(program: Program, long: Lengths = LONG) -> list[Program]:
    """Return a program in each order that may be the fastest for one configuration.

    Of programs that are interleaved, the order of the trace was seen to be up to 26 % faster with
    ``pv_osimr``, and depth first up to 19 % with ``ltl``; of longer ones, depth first is by 5 to
    9 %.
    """
    deep = depth_first(program)
    return [deep] if len(program.instructions) > long.longest else [deep, program]


def work_size(parts: list[Part]) -> int:
    """Return how many doubles the parts store for each other."""
    return max(
        (place + part.program.instructions[k].width for part in parts for k, place in part.stores),
        default=0,
    )


class _Cutter:
    """Distributes the instructions of a program over parts, in their order."""

    def __init__(self, program: Program, length: int) -> None:
        self._program = program
        # Per instruction the part that computes it; None where every part does it itself.
        self._home: list[int | None] = []
        self._count = self._assign(length)
        self._last_use = self._uses()
        self._place: dict[int, int] = {}
        self._free: dict[int, list[int]] = {}
        self._size = 0

    def _assign(self, length: int) -> int:
        part, filled = 0, 0
        angles = 0
        for instruction in self._program.instructions:
            if instruction.kind in (INPUT, CONSTANT):
                self._home.append(None)
                continue
            if instruction.kind == ANGLES:
                angles = part
            if instruction.kind in (SINES, COSINES):
                # They name results of the other instruction.
                self._home.append(angles)
                continue
            if filled >= length:
                part, filled = part + 1, 0
            self._home.append(part)
            filled += 1
        return part + 1

    def _uses(self) -> dict[int, int]:
        """Return per instruction the last other part that needs it."""
        last: dict[int, int] = {}
        for i, instruction in enumerate(self._program.instructions):
            home = self._home[i]
            for k in instruction.operands:
                if home is not None and self._home[k] not in (None, home):
                    last[k] = max(last.get(k, 0), home)
        program = self._program
        for k in (*program.guards, *program.regular, *program.checked):
            if self._home[k] not in (None, self._count - 1):
                last[k] = self._count - 1
        return last

    def run(self) -> list[Part]:
        """Return the parts."""
        program = self._program
        members: list[list[int]] = [[] for _ in range(self._count)]
        for i, home in enumerate(self._home):
            if home is not None:
                members[home].append(i)
        results: list[list[tuple[int, int]]] = [[] for _ in range(self._count)]
        for entry, k in enumerate(program.outputs):
            home = self._home[k]
            results[self._count - 1 if home is None else home].append((k, entry))
        released: list[list[int]] = [[] for _ in range(self._count + 1)]
        parts = []
        for number, inside in enumerate(members):
            for k in released[number]:
                self._free.setdefault(program.instructions[k].width, []).append(self._place[k])
            part, at = Part(), _Positions(self, number)
            for i in inside:
                at.add(part, i)
            for k in inside:
                if k in self._last_use:
                    part.stores.append((at.known[k], self._take(k)))
                    released[self._last_use[k] + 1].append(k)
            part.outputs = [(at.of(part, k), entry) for k, entry in results[number]]
            if number == self._count - 1:
                for name in ("guards", "regular", "checked"):
                    values = [at.of(part, k) for k in getattr(program, name)]
                    setattr(part.program, name, values)
                part.program.inputs = program.inputs
            parts.append(part)
        return parts

    def _take(self, k: int) -> int:
        """Return a place in the work area for a value."""
        width = self._program.instructions[k].width
        free = self._free.setdefault(width, [])
        if free:
            self._place[k] = free.pop()
        else:
            # At a multiple of its width, so that it crosses no line of the cache.
            self._place[k] = -(-self._size // width) * width
            self._size = self._place[k] + width
        return self._place[k]

    def value(self, k: int, number: int) -> Instruction:
        """Return what gives the value of instruction k, from elsewhere, in part `number`."""
        instruction = self._program.instructions[k]
        if self._home[k] is None:
            return instruction
        return Instruction(LOAD, instruction.width, lanes=(self._place[k],))

    def instruction(self, k: int) -> Instruction:
        """Return instruction k of the program."""
        return self._program.instructions[k]


class _Positions:
    """Where values are in one part."""

    def __init__(self, cutter: _Cutter, number: int) -> None:
        self._cutter, self._number = cutter, number
        self.known: dict[int, int] = {}

    def add(self, part: Part, i: int) -> None:
        """Append instruction i of the program."""
        instruction = self._cutter.instruction(i)
        operands = tuple(self.of(part, k) for k in instruction.operands)
        if operands:
            instruction = instruction._replace(operands=operands)
        self._append(part, i, instruction)

    def of(self, part: Part, k: int) -> int:
        """Return the position of a value, loading it if it comes from elsewhere."""
        if k not in self.known:
            self._append(part, k, self._cutter.value(k, self._number))
        return self.known[k]

    def _append(self, part: Part, k: int, instruction: Instruction) -> None:
        self.known[k] = len(part.program.instructions)
        part.program.instructions.append(instruction)
