"""Long programs in parts: functions of a bounded length that hand values on through memory.

What a code generator does to one straight-line function grows faster than its length: registers
are allocated among all values that live at a time. So a long program is cut into parts, one
function each, and a value that a later part needs is stored in the work area, where a long
function would have spilled it anyway. The time to compile is then linear in the length. Inputs
and constants are not stored: each part loads them itself.

The order of instructions, at large. A trace computes whole matrices, of which the next step may
need an entry now and most much later. What waits is stored and loaded again: half of the work of
vectors of configurations was that. Depth first, an instruction comes just before the first that
uses it; of several operands the one with the longest chain of operands comes first: fewer values
are stored for a later part of a program, of humanoids half as many, and somewhat more are loaded.
The code becomes shorter, by a tenth for a humanoid. Which order is the faster one depends on
program and processor, see :func:`orders`.

The order nearby. Limbs, rows and joints are computed one after the other in a trace.
Much of that could be done at the same time, but a processor looks some hundred instructions ahead
only, and while it waits for the chain of divisions at a root, say, all that it sees may depend
on that. List scheduling takes at each cycle, of the instructions whose operands are there, the
one with the longest way to the end behind it. It looks ahead not too far either: what is computed
early occupies a register until it is needed.

Results. Most entries of G are lanes of vectors. Lanes side by side that are entries of one row are
stored at once, as a vector. In the other half of the symmetric matrix they are a column: there,
lanes of the vectors of two rows are entries side by side, and are stored in pairs.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from delassus_ros.compiler.ir.program import (
    ANGLES,
    COSINES,
    EXTRACT,
    FLIP,
    JOIN,
    LOAD,
    SHUFFLE,
    SINES,
    SPLAT,
    Instruction,
    Program,
    needs,
)
from delassus_ros.scalars.graph import CONSTANT, COS, DIV, INPUT, NEG, SIN, SQRT


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
:func:`~delassus_ros.compiler.runtime.jit.has_few_registers`. There, more values of an interleaved
part wait than have a register: of 4700 instructions short parts are 6 % faster, of 5800 12 %. With
32 registers they make these 5 to 8 % more instructions of the processor."""
BATCH = Lengths(1500, 180)
"""For vectors of configurations. Of its values a longer function would keep most in memory too,
and in a larger area: in parts, places come free. A program for an arm has so few that it gains
nothing. Parts of 180 suit humanoids best, those of 120 quadrupeds, by some percent."""


@dataclass
class Part:
    """A function of a program: a program of its own, and what it leaves behind.

    Attributes
    ----------
    program : the instructions; its results and guards are those of the whole program, and
        only the last part has any.
    stores : position and place in the work area of what later parts load; the part itself loads
        nothing from there.
    outputs : position and entry of the output block of what is written there.
    """

    program: Program = field(default_factory=Program)
    stores: list[tuple[int, int]] = field(default_factory=list)
    outputs: list[tuple[int, int]] = field(default_factory=list)


def whole(program: Program) -> Part:
    """Return a program as one part."""
    return Part(program, [], [(k, entry) for entry, k in enumerate(program.outputs)])


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


@dataclass(frozen=True)
class Run:
    """Lanes of a value that are entries of the output block, each after the one before.

    Attributes
    ----------
    value : position of the value.
    lane, count : the first lane, and how many there are.
    entry : that of the first lane.
    """

    value: int
    lane: int
    count: int
    entry: int


@dataclass
class Zip:
    """Pairs of entries, the first ones from one vector and the second ones from another.

    Attributes
    ----------
    values : positions of both vectors, of one width.
    entries : lane of both, and entry of the first.
    """

    values: tuple[int, int]
    entries: list[tuple[int, int]] = field(default_factory=list)


Piece = Run | Zip

_LINE = 8
"""Doubles in a line of the cache. To store pairs across two of them made a kernel of 42 rows 5 %
slower."""


def _in_a_line(entry: int, count: int) -> bool:
    return entry % _LINE + count <= _LINE


def pieces(part: Part) -> dict[int, list[Piece]]:
    """Return what to store of the outputs of a part, by the position after which it is there."""
    code = part.program.instructions
    # Per value what its lanes are; a scalar has one.
    lanes: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for k, entry in part.outputs:
        instruction = code[k]
        if instruction.kind == EXTRACT:
            lanes[instruction.operands[0]].append((entry, instruction.lanes[0]))
        else:
            lanes[k].append((entry, 0))
    found: dict[int, list[Piece]] = defaultdict(list)
    single: dict[int, tuple[int, int]] = {}
    for value, members in lanes.items():
        for run in _runs(value, sorted(members)):
            if run.count > 1:
                found[value].append(run)
            else:
                single[run.entry] = value, run.lane
    zips: dict[tuple[int, int], Zip] = {}
    paired: set[int] = set()
    for entry in sorted(single):
        (value, lane), (other, its_lane) = single[entry], single.get(entry + 1, (-1, -1))
        if entry in paired:
            continue
        alike = lane == its_lane and 1 < code[value].width == code[other].width
        if alike and _in_a_line(entry, 2):
            pair = zips.setdefault((value, other), Zip((value, other)))
            pair.entries.append((lane, entry))
            paired |= {entry, entry + 1}
        else:
            found[value].append(Run(value, lane, 1, entry))
    for pair in zips.values():
        found[max(pair.values)].append(pair)
    return found


def _runs(value: int, members: list[tuple[int, int]]) -> list[Run]:
    """Return runs of two, four and so on lanes, and single ones, from entries with their lanes."""
    runs = []
    start = 0
    while start < len(members):
        entry, lane = members[start]
        count = 1
        while members[start + count : start + count + 1] == [(entry + count, lane + count)]:
            count += 1
        # Of a vector register there are halves and quarters, beginning at their own size.
        while count & (count - 1) or lane % count or not _in_a_line(entry, count):
            count -= 1
        runs.append(Run(value, lane, count, entry))
        start += count
    return runs


_WINDOW = 96
"""Instructions that one may overtake."""
_USUAL = 4  # cycles of an addition or a multiplication
_LATENCY = {
    DIV: 14, SQRT: 18, SIN: 60, COS: 60, ANGLES: 60, INPUT: 5, LOAD: 5, SHUFFLE: 3, JOIN: 3,
    EXTRACT: 3, SPLAT: 3, FLIP: 1, CONSTANT: 0, SINES: 0, COSINES: 0,
}  # fmt: skip
"""Cycles until a result is there, on most processors; by kind, where it is not the usual."""
_FREE = {INPUT, CONSTANT, NEG, FLIP, SINES, COSINES}
"""What comes with another instruction, or takes no time to speak of."""


def interleaved(part: Part) -> Part:
    """Return a part that computes the same in another order."""
    program, at = part.program.in_order(_order(part.program.instructions))
    return Part(
        program,
        [(at[k], place) for k, place in part.stores],
        [(at[k], entry) for k, entry in part.outputs],
    )


def depth_first(program: Program) -> Program:
    """Return a program that computes the same, each instruction only when the next needs it."""
    needed = needs(program.instructions)
    depth = [0] * len(needed)
    for k, operands in enumerate(needed):
        depth[k] = 1 + max((depth[o] for o in operands), default=0)

    def deepest_first(k: int) -> Iterator[int]:
        return iter(sorted(needed[k], key=lambda o: (-depth[o], o)))

    order: list[int] = []
    begun = bytearray(len(needed))
    for root in (*program.outputs, *range(len(needed))):
        if begun[root]:
            continue
        begun[root] = True
        path = [(root, deepest_first(root))]
        while path:
            k, rest = path[-1]
            missing = next((o for o in rest if not begun[o]), None)
            if missing is None:
                order.append(k)
                path.pop()
            else:
                begun[missing] = True
                path.append((missing, deepest_first(missing)))
    return program.in_order(order)[0]


def _order(code: list[Instruction]) -> list[int]:
    """Return the positions of the instructions in their new order."""
    count = len(code)
    needed = needs(code)
    users: list[list[int]] = [[] for _ in code]
    for k, operands in enumerate(needed):
        for operand in operands:
            users[operand].append(k)
    latency = [_LATENCY.get(instruction.kind, _USUAL) for instruction in code]
    # Cycles from the beginning of an instruction to the end of all that depends on it.
    left = [0] * count
    for k in reversed(range(count)):
        left[k] = latency[k] + max([left[user] for user in users[k]], default=0)
    # Longest way first, then as before; the remainder is the instruction.
    rank = [k - count * left[k] for k in range(count)]
    missing = [len(operands) for operands in needed]
    there = [0] * count  # the cycle at which all operands are
    arriving: dict[int, list[int]] = {0: [k for k in range(count) if not missing[k]]}
    ready: list[int] = []  # ranks of what could be next
    ahead: list[int] = []  # what could be, but for the window
    order: list[int] = []
    done = bytearray(count)
    first = cycle = 0
    while len(order) < count:
        for k in arriving.pop(cycle, ()):
            heapq.heappush(ahead, k)
        takes_time = False
        while not takes_time:
            while first < count and done[first]:
                first += 1
            while ahead and ahead[0] < first + _WINDOW:
                heapq.heappush(ready, rank[heapq.heappop(ahead)])
            if not ready:
                break
            k = heapq.heappop(ready) % count
            order.append(k)
            done[k] = True
            end = cycle + latency[k]
            for user in users[k]:
                missing[user] -= 1
                if there[user] < end:
                    there[user] = end
                if not missing[user]:
                    if there[user] <= cycle:
                        heapq.heappush(ahead, user)
                    else:
                        arriving.setdefault(there[user], []).append(user)
            takes_time = code[k].kind not in _FREE
        cycle += 1
    return order
