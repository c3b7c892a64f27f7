"""The widening pass: instructions for corresponding rows of a matrix become one wide instruction.

The rows of a contact go through the same recursion, so whatever is done to one of them is done
to the next, as is done to the columns of G. From the entries of a row of G this pass walks down
the program and combines instructions, each already a vector where limbs are alike, into
instructions over several rows (superword-level parallelism with known seeds). Unlike limbs, rows
differ where they begin, in zeros of their own: corresponding instructions need not be alike in
all that they depend on, only be as far from the results. Combining never changes a rounding:
each lane computes what its instruction computes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from delassus_ros.compiler.ir.program import (
    ANGLES,
    COSINES,
    EXTRACT,
    FLIP,
    GATHER,
    JOIN,
    SHUFFLE,
    SINES,
    SPLAT,
    Instruction,
    Program,
    padded,
)
from delassus_ros.scalars.graph import ADD, CONSTANT, INPUT, MUL, SUB

WIDEST = 8
_COMBINED = {ADD, SUB, MUL, FLIP}
_NEAR = 2
"""Operands correspond if what they depend on is alike down to this depth."""
_CHAIN = 3
"""Sums of sums up to this depth are looked at for what limbs add to them."""


class Widening:
    """What becomes one in a program.

    Attributes
    ----------
    wides : all wide values.
    home : per instruction that became part of a wide one, that and its slot.
    """

    def __init__(self, program: Program, limbs: Sequence[int]) -> None:
        self.wides: list[Wide] = []
        self.home: dict[int, tuple[int, int]] = {}
        self._instructions = program.instructions
        self._owner = _owners(program, limbs)
        self._height = _heights(program, self._owner)
        self._shape = _shapes(program, self._height)
        self._memo: dict[Members, int] = {}
        self._open: list[int] = []

    def meeting(self, limbs: Sequence[int]) -> list[Members]:
        """Return instructions, one of each limb, whose sum is formed outside of them."""
        found: list[Members] = []
        all_limbs, levels = set(limbs), min(len(limbs) - 1, _CHAIN)
        for i, instruction in enumerate(self._instructions):
            if instruction.kind not in (ADD, SUB) or self._owner[i] >= 0:
                continue
            terms = self._terms(i, levels)
            of = {self._owner[term]: term for term in terms}
            if len(of) == len(terms) and of.keys() == all_limbs:
                found.append(tuple(of[limb] for limb in limbs))
        return found

    def _terms(self, i: int, levels: int) -> list[int]:
        """Return what limbs add to a sum of sums; nothing below `levels` of them."""
        instruction = self._instructions[i]
        if self._owner[i] >= 0:
            return [i]
        if not levels or instruction.kind not in (ADD, SUB):
            return []
        return [term for o in instruction.operands for term in self._terms(o, levels - 1)]

    def leaving(self, limbs: Sequence[int]) -> list[Members]:
        """Return corresponding instructions that are used outside of the limbs they belong to."""
        found: dict[int, list[dict[int, None]]] = defaultdict(lambda: [{} for _ in limbs])
        for i, instruction in enumerate(self._instructions):
            for operand in instruction.operands:
                limb = self._owner[operand]
                if limb in limbs and self._owner[i] != limb:
                    found[self._shape[operand]][limbs.index(limb)][operand] = None
        return [
            members
            for per_limb in found.values()
            if len({len(some) for some in per_limb}) == 1
            for members in zip(*per_limb, strict=True)
        ]

    def combine(self, members: Members) -> None:
        """Combine instructions and, below them, all that corresponds."""
        self._reference(members)
        while self._open:
            self._fill(self._open.pop())

    def _reference(self, members: Members) -> int:
        index = self._memo.get(members)
        if index is None:
            index = self._memo[members] = self._new(members)
        return index

    def _add(self, wide: Wide) -> int:
        self.wides.append(wide)
        return len(self.wides) - 1

    def _new(self, members: Members) -> int:
        found = [m for m in members if m is not None]
        first = self._instructions[found[0]]
        homes = [None if m is None else self.home.get(m) for m in members]
        places = {home[0] for home in homes if home is not None}
        if len(places) == 1 and all(
            m is None or (home is not None and home[1] == slot)
            for slot, (m, home) in enumerate(zip(members, homes, strict=True))
        ):
            whole = places.pop()
            if padded(len(self.wides[whole].members)) == padded(len(members)):
                return whole
        combined = (
            not places
            and len(set(found)) == len(found) > 1
            and first.kind in _COMBINED
            and all(self._alike(found[0], m) for m in found)
        )
        if not combined:
            return self._add(Wide(COLLECT, members, first.width))
        kinds = {self._instructions[m].kind for m in found}
        index = self._add(Wide(min(kinds), members, first.width))
        for slot, m in enumerate(members):
            if m is not None:
                self.home[m] = index, slot
        self._open.append(index)
        return index

    def _alike(self, a: int, b: int) -> bool:
        one, other = self._instructions[a], self._instructions[b]
        return (
            {one.kind, other.kind} in ({one.kind}, {ADD, SUB})
            and one.width == other.width
            and self._height[a] == self._height[b]
        )

    def _fill(self, index: int) -> None:
        """Find the operands of a wide value."""
        wide = self.wides[index]
        kinds = [None if m is None else self._instructions[m].kind for m in wide.members]
        operands = [
            None if m is None else list(self._instructions[m].operands) for m in wide.members
        ]
        if wide.kind == FLIP:
            wide.mask = tuple(
                flipped
                for lane in range(wide.width)
                for flipped in _padded_to_power(
                    [
                        0 if m is None else at(self._instructions[m].lanes, lane)
                        for m in wide.members
                    ]
                )
            )
        else:
            self._orient(kinds, operands)
        count = len(self._instructions[next(m for m in wide.members if m is not None)].operands)
        sources = [
            self._reference(tuple(None if o is None else o[k] for o in operands))
            for k in range(count)
        ]
        if ADD in kinds and SUB in kinds:
            # a − b in some lanes: add, with the sign of b changed there.
            mask = _padded_to_power([int(kind == SUB) for kind in kinds]) * wide.width
            sources[1] = self._add(
                Wide(FLIP, wide.members, wide.width, (sources[1],), tuple(mask))
            )
        wide.sources = tuple(sources)

    def _orient(self, kinds: list[str | None], operands: list[list[int] | None]) -> None:
        """Swap operands of commutative instructions so that corresponding ones stand together."""
        pairs = [
            (kind, pair) for kind, pair in zip(kinds, operands, strict=True) if pair is not None
        ]
        _, wanted = next((pair for pair in pairs if pair[0] == SUB), pairs[0])
        if pairs[0][0] != SUB and len(pairs) > 1 and pairs[0][1] is wanted:
            # One operand in common with the next tells which it is.
            common = set(wanted) & set(pairs[1][1])
            if len(common) == 1 and wanted[0] not in common:
                wanted.reverse()
        shapes = [self._shape[o] for o in wanted]
        for kind, pair in pairs:
            if kind == SUB or pair is wanted:
                continue
            if pair[0] == wanted[0] or pair[1] == wanted[1]:
                continue
            swapped = [self._shape[o] for o in pair] == shapes[::-1] != shapes
            if pair[0] == wanted[1] or pair[1] == wanted[0] or swapped:
                pair.reverse()


def _padded_to_power(values: list[int]) -> list[int]:
    return values + [0] * (padded(len(values)) - len(values))


def _owners(program: Program, limbs: Sequence[int]) -> list[int]:
    """Return per instruction the limb that it belongs to, or -1."""
    instructions = program.instructions
    support: list[int] = []
    owners = []
    turned: list[list[int]] = []
    for instruction in instructions:
        bits = 0
        if instruction.kind == INPUT:
            bits = 1 << instruction.lanes[0]
        elif instruction.kind == ANGLES:
            angles = iter(instruction.operands)
            turned = [[support[next(angles)] for _ in range(n)] for n in instruction.lanes]
        elif instruction.kind in (EXTRACT, SHUFFLE) and instructions[
            instruction.operands[0]
        ].kind in (SINES, COSINES):
            # Sines of several limbs stand side by side: what counts is which ones are taken.
            block = turned[instructions[instruction.operands[0]].lanes[0]]
            for lane in instruction.lanes:
                bits |= block[lane]
        else:
            for operand in instruction.operands:
                bits |= support[operand]
        found = [k for k, mask in enumerate(limbs) if bits and not bits & ~mask]
        owners.append(found[0] if found else -1)
        support.append(bits)
    return owners


def _heights(program: Program, owner: list[int]) -> list[tuple[bool, int]]:
    """Return per instruction how many instructions follow it on the longest way to a result.

    Within a limb, the way ends where it leaves the limb: a limb comes before what is outside.
    Instructions of one height do not depend on each other, and combined ones of one height each
    cannot form a cycle.
    """
    height = [0] * len(program.instructions)
    for i in reversed(range(len(height))):
        for operand in program.instructions[i].operands:
            if owner[operand] == owner[i] or owner[operand] < 0:
                height[operand] = max(height[operand], height[i] + 1)
    return [(limb >= 0, k) for limb, k in zip(owner, height, strict=True)]


def _shapes(program: Program, height: list[tuple[bool, int]]) -> list[int]:
    """Return per instruction a number for its shape and that of the operands near it."""
    numbers: dict[object, int] = {}
    shape = []
    for i, instruction in enumerate(program.instructions):
        kind = ADD if instruction.kind == SUB else instruction.kind
        key: object = kind, instruction.width, None if kind == CONSTANT else height[i]
        shape.append(numbers.setdefault(key, len(numbers)))
    needs = [(instruction.operands, instruction.kind in (ADD, SUB, MUL))
             for instruction in program.instructions]  # fmt: skip
    for _ in range(_NEAR):
        deeper = []
        for own, (operands, commutes) in zip(shape, needs, strict=True):
            below = [shape[o] for o in operands]
            if commutes:
                below.sort()
            deeper.append(numbers.setdefault((own, *below), len(numbers)))
        shape = deeper
    return shape


def widened(
    program: Program, seeds: list[list[int]], limbs: Sequence[Sequence[int]] = ()
) -> Program:
    """Return a program with instructions over several rows, and over limbs that are nearly alike.

    Parameters
    ----------
    seeds : lists of positions in the output block, each of one row of a matrix.
    limbs : groups of limbs, each the inputs it depends on as a bit set. Of those that are not
        vectors yet, since they differ towards their ends, the rest is combined too.
    """
    widening = Widening(program, [mask for group in limbs for mask in group])
    start = 0
    for group in limbs:
        here = range(start, start + len(group))
        for members in [*widening.meeting(here), *widening.leaving(here)]:
            widening.combine(members)
        start += len(group)
    for positions in seeds:
        for members in _chunks(program, positions):
            widening.combine(members)
    return Rebuilder(program, widening.wides, widening.home).run() if widening.home else program


def _chunks(program: Program, positions: list[int]) -> list[Members]:
    """Return the instructions behind part of a row of a symmetric matrix, in chunks.

    Chunks begin at the same columns in all rows. Positions before the diagonal are -1.
    """
    sources = [None if p < 0 else _source(program, program.outputs[p]) for p in positions]
    widths = [None if s is None else program.instructions[s].width for s in sources]
    width = next((w for w in widths if w is not None), WIDEST)
    size = WIDEST // width
    chunks = []
    for start in range(0, len(sources) if size > 1 else 0, size):
        members: list[int | None] = []
        for source, w in zip(sources[start : start + size], widths[start:], strict=False):
            members.append(source if w == width and source not in members else None)
        if sum(m is not None for m in members) > 1:
            chunks.append(tuple(members))
    return chunks


def _source(program: Program, position: int) -> int:
    instruction = program.instructions[position]
    return instruction.operands[0] if instruction.kind == EXTRACT else position


Lane = tuple[int, int] | None
"""A lane of an instruction's result; None where any value will do."""
Members = tuple[int | None, ...]
"""Instructions that become one, None where any value will do."""


@dataclass
class Wide:
    """Instructions that are one.

    Attributes
    ----------
    kind : of the members, or collect.
    members : their positions in the program.
    width : of each member.
    sources : wide values that are operands.
    mask : of a flip.
    """

    kind: str
    members: Members
    width: int
    sources: tuple[int, ...] = ()
    mask: tuple[int, ...] = ()

    @property
    def lanes(self) -> int:
        """Number of lanes: those of the first limb for all members, then of the next limb."""
        return padded(len(self.members)) * self.width

    def lane(self, slot: int, lane: int) -> int:
        """Return where a lane of the member in a slot is."""
        return lane * padded(len(self.members)) + slot


COLLECT = "collect"
"""The kind of a wide value whose members are computed one by one."""
_COPIES = {EXTRACT, SHUFFLE, SPLAT}
"""Kinds of instructions whose lanes are lanes of their operand."""


T = TypeVar("T")


def at(values: Sequence[T], lane: int) -> T:
    """Return values[lane]; the last value stands for all later lanes."""
    return values[min(lane, len(values) - 1)]


class Rebuilder:
    """Puts what remains and what became wide in an order in which operands come first.

    Values are keyed by the instruction for what remains and by ~wide, which is negative.
    """

    def __init__(
        self, program: Program, wides: list[Wide], home: dict[int, tuple[int, int]]
    ) -> None:
        self._old = program.instructions
        self._source = program
        self._wides, self._home = wides, home
        self._program = Program()
        self._position: dict[int, int] = {}
        self._made: dict[Instruction, int] = {}

    def run(self) -> Program:
        """Return the program."""
        old, new = self._source, self._program
        kept = [*old.outputs, *old.guards, *old.regular, *old.checked]
        for i, instruction in enumerate(self._old):
            if i in self._home:
                self._require(~self._home[i][0])
            elif instruction.kind not in _COPIES and instruction.kind != CONSTANT:
                self._require(i)
        for i in kept:
            self._require(i)
        new.outputs, new.guards, new.regular, new.checked = (
            [self._position[i] for i in positions]
            for positions in (old.outputs, old.guards, old.regular, old.checked)
        )
        new.inputs = old.inputs
        return new

    def _emit(self, instruction: Instruction) -> int:
        position = self._made.get(instruction)
        if position is None:
            position = self._made[instruction] = len(self._program.instructions)
            self._program.instructions.append(instruction)
        return position

    def _require(self, root: int) -> None:
        """Emit a value after everything it needs; iterative, since programs are deep."""
        position = self._position
        stack = [root]
        while stack:
            value = stack[-1]
            if value in position:
                stack.pop()
                continue
            missing = [need for need in self._needs(value) if need not in position]
            if missing:
                stack += reversed(missing)
                continue
            stack.pop()
            position[value] = self._combined(~value) if value < 0 else self._single(value)

    def _needs(self, value: int) -> Sequence[int]:
        if value < 0:
            wide = self._wides[~value]
            if wide.kind != COLLECT:
                return [~source for source in wide.sources]
            return [
                self._owner(m, lane)
                for m in wide.members
                if m is not None
                for lane in range(wide.width)
            ]
        if value in self._home:
            return (~self._home[value][0],)
        instruction = self._old[value]
        if instruction.kind in _COPIES:
            return [self._owner(value, lane) for lane in range(instruction.width)]
        return instruction.operands

    def _origin(self, index: int, lane: int) -> tuple[int, int]:
        """Return the instruction, and its lane, that a lane is a copy of."""
        while True:
            instruction = self._old[index]
            if instruction.kind == SPLAT:
                index, lane = instruction.operands[0], 0
            elif instruction.kind in _COPIES:
                index, lane = instruction.operands[0], at(instruction.lanes, lane)
            else:
                return index, lane

    def _owner(self, index: int, lane: int) -> int:
        """Return the value that a lane is a copy of a lane of."""
        index, _ = self._origin(index, lane)
        home = self._home.get(index)
        return index if home is None else ~home[0]

    def _place(self, index: int, lane: int) -> tuple[int, int]:
        """Return the position in the new program, and the lane there, of a lane."""
        index, lane = self._origin(index, lane)
        home = self._home.get(index)
        if home is None:
            return self._position[index], lane
        return self._position[~home[0]], self._wides[home[0]].lane(home[1], lane)

    def _single(self, index: int) -> int:
        instruction = self._old[index]
        if index in self._home or instruction.kind in _COPIES:
            return self._collected([self._place(index, lane) for lane in range(instruction.width)])
        kind, width, operands, constant, lanes = instruction
        moved = tuple([self._position[operand] for operand in operands])
        return self._emit(Instruction(kind, width, moved, constant, lanes))

    def _combined(self, index: int) -> int:
        wide = self._wides[index]
        if wide.kind == COLLECT:
            lanes: list[Lane] = [None] * wide.lanes
            for slot, m in enumerate(wide.members):
                if m is not None:
                    for lane in range(wide.width):
                        lanes[wide.lane(slot, lane)] = self._place(m, lane)
            return self._collected(lanes)
        sources = tuple([self._position[~source] for source in wide.sources])
        return self._emit(Instruction(wide.kind, wide.lanes, sources, lanes=wide.mask))

    def _collected(self, lanes: Sequence[Lane]) -> int:
        """Emit a vector, or a scalar, of lanes of what is there already."""
        width, instructions = len(lanes), self._program.instructions
        known = [lane for lane in lanes if lane is not None]
        sources = list(dict.fromkeys(source for source, _ in known))
        if all(instructions[source].kind == CONSTANT for source in sources):
            values = tuple(
                0.0 if lane is None else at(instructions[lane[0]].constant, lane[1])
                for lane in lanes
            )
            return self._emit(Instruction(CONSTANT, width, constant=values))
        if width == 1:
            source, lane = known[0]
            if instructions[source].width == 1:
                return source
            return self._emit(Instruction(EXTRACT, 1, (source,), lanes=(lane,)))
        if len(sources) == 1:
            source = sources[0]
            if instructions[source].width == 1:
                return self._emit(Instruction(SPLAT, width, (source,)))
            if instructions[source].width == width and all(
                lane is None or lane[1] == k for k, lane in enumerate(lanes)
            ):
                return source
            return self._emit(Instruction(SHUFFLE, width, (source,), lanes=_filled(lanes)))
        scalars = [source for source in sources if instructions[source].width == 1]
        if len(scalars) > 1 or (scalars and len(scalars) == len(sources)):
            # Scalars first, in the lanes where they are wanted.
            rest = [lane if lane is not None and lane[0] in scalars else None for lane in lanes]
            gathered = self._gathered(rest)
            if len(scalars) == len(sources):
                return gathered
            lanes = [
                (gathered, k) if rest[k] is not None else lane for k, lane in enumerate(lanes)
            ]
            return self._collected(lanes)
        joined = sources[:2]
        if len(sources) > 2:
            part = self._collected(
                [lane if lane is not None and lane[0] in joined else None for lane in lanes]
            )
            return self._collected(
                [
                    (part, k) if lane is not None and lane[0] in joined else lane
                    for k, lane in enumerate(lanes)
                ]
            )
        first, second = sources
        offset = instructions[first].width
        where = tuple(
            -1 if lane is None else lane[1] + (offset if lane[0] == second else 0)
            for lane in lanes
        )
        return self._emit(Instruction(JOIN, width, (first, second), lanes=where))

    def _gathered(self, lanes: Sequence[Lane]) -> int:
        """Emit a vector of scalars."""
        anything = next(lane[0] for lane in lanes if lane is not None)
        scalars = tuple(anything if lane is None else lane[0] for lane in lanes)
        return self._emit(Instruction(GATHER, len(lanes), scalars))


def _filled(lanes: Sequence[Lane]) -> tuple[int, ...]:
    """Return lane numbers, -1 where any will do."""
    return tuple(-1 if lane is None else lane[1] for lane in lanes)
