"""Superword-level parallelism: instructions that compute the same on other numbers become one.

:class:`Packing` walks down a program from instructions that correspond, its seeds, and combines
them and what corresponds below them into wide values; which instructions may be combined is what
limbs (:mod:`delassus.compiler.passes.lanes`) and rows
(:mod:`delassus.compiler.passes.widen`) differ in. The program is then built anew with the wide
values, and with the shuffles and joins that bring lanes to where they are wanted. Combining never
changes a rounding: each lane computes what its instruction computes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from delassus.compiler.ir.program import (
    EXTRACT,
    FLIP,
    GATHER,
    JOIN,
    SHUFFLE,
    SPLAT,
    Instruction,
    Program,
    padded,
)
from delassus.scalars.graph import ADD, CONSTANT, MUL, SUB

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
COMMUTATIVE = {ADD, SUB, MUL}
"""Kinds of instructions whose operands may be swapped; of a difference, with the sign changed."""
_COPIES = {EXTRACT, SHUFFLE, SPLAT}
"""Kinds of instructions whose lanes are lanes of their operand."""


T = TypeVar("T")


def at(values: Sequence[T], lane: int) -> T:
    """Return values[lane]; the last value stands for all later lanes."""
    return values[min(lane, len(values) - 1)]


class Packing(ABC):
    """Wide values of a program.

    Attributes
    ----------
    wides : all wide values.
    home : per instruction that became part of a wide one, that and its slot.
    gathers : whether lanes of several values are brought together one by one, else by joins of
        two vectors. For limbs, joins make ``ltl`` of Talos with two hands 10 % slower.
    """

    gathers: ClassVar[bool] = False

    def __init__(self, program: Program) -> None:
        self.wides: list[Wide] = []
        self.home: dict[int, tuple[int, int]] = {}
        self._program = program
        self._instructions = program.instructions
        self._memo: dict[Members, int] = {}
        self._open: list[int] = []

    def combine(self, members: Members) -> None:
        """Combine instructions and, below them, all that corresponds."""
        self._reference(members)
        while self._open:
            self._fill(self._open.pop())

    def rebuilt(self) -> Program:
        """Return the program with the wide values."""
        if not self.home:
            return self._program
        return _Rebuilder(self._program, self).run()

    @abstractmethod
    def _new(self, members: Members) -> int:
        """Return the number of a wide value for instructions that have none yet."""

    @abstractmethod
    def _orient(self, kinds: list[str | None], operands: list[list[int] | None]) -> None:
        """Swap operands of commutative instructions so that corresponding ones stand together."""

    def _reference(self, members: Members) -> int:
        """Return the number of a wide value; its operands are filled in later."""
        index = self._memo.get(members)
        if index is None:
            index = self._memo[members] = self._new(members)
        return index

    def _add(self, wide: Wide) -> int:
        self.wides.append(wide)
        return len(self.wides) - 1

    def _collect(self, members: Members, width: int) -> int:
        """Return the number of a wide value whose members are computed one by one."""
        return self._add(Wide(COLLECT, members, width))

    def _combined(self, members: Members) -> int:
        """Return the number of a wide value that is computed as one."""
        found = [m for m in members if m is not None]
        kind = min({self._instructions[m].kind for m in found})
        index = self._add(Wide(kind, members, self._instructions[found[0]].width))
        for slot, m in enumerate(members):
            if m is not None:
                self.home[m] = index, slot
        self._open.append(index)
        return index

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
        elif wide.kind in COMMUTATIVE:
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


def _padded_to_power(values: list[int]) -> list[int]:
    return values + [0] * (padded(len(values)) - len(values))


class _Rebuilder:
    """Puts what remains and what became wide in an order in which operands come first.

    Values are keyed by the instruction for what remains and by ~wide, which is negative.
    """

    def __init__(self, program: Program, packing: Packing) -> None:
        self._source, self._old = program, program.instructions
        self._wides, self._home = packing.wides, packing.home
        self._gathers = packing.gathers
        self._new: list[Instruction] = []
        self._position: dict[int, int] = {}
        self._made: dict[Instruction, int] = {}

    def run(self) -> Program:
        """Return the program."""
        old = self._source
        kept = [*old.outputs, *old.guards, *old.regular, *old.checked]
        for i, instruction in enumerate(self._old):
            if i in self._home:
                self._require(~self._home[i][0])
            elif instruction.kind not in _COPIES and instruction.kind != CONSTANT:
                self._require(i)
        for i in kept:
            self._require(i)
        return old.rebuilt(self._new, self._position.__getitem__)

    def _emit(self, instruction: Instruction) -> int:
        position = self._made.get(instruction)
        if position is None:
            position = self._made[instruction] = len(self._new)
            self._new.append(instruction)
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
        if self._old[index].kind in _COPIES:
            index, _ = self._origin(index, lane)
        home = self._home.get(index)
        return index if home is None else ~home[0]

    def _place(self, index: int, lane: int) -> tuple[int, int]:
        """Return the position in the new program, and the lane there, of a lane."""
        if self._old[index].kind in _COPIES:
            index, lane = self._origin(index, lane)
        home = self._home.get(index)
        if home is None:
            return self._position[index], lane
        return self._position[~home[0]], self._wides[home[0]].lane(home[1], lane)

    def _single(self, index: int) -> int:
        instruction = self._old[index]
        if index in self._home or instruction.kind in _COPIES:
            return self._collected([self._place(index, lane) for lane in range(instruction.width)])
        return self._emit(instruction.at(self._position))

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
        width, instructions = len(lanes), self._new
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
        if self._gathers:
            return self._gathered([lane and (self._collected([lane]), 0) for lane in lanes])
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
