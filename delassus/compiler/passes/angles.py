"""Sines and cosines of all angles at once, in blocks as wide as a vector.

An angle whose sine depends on another sine is left to the C library.
"""

from __future__ import annotations

from delassus.compiler.ir.program import (
    ANGLES,
    COSINES,
    EXTRACT,
    GATHER,
    SHUFFLE,
    SINES,
    WIDEST,
    Instruction,
    Program,
    padded,
)
from delassus.scalars.graph import COS, SIN


def turned(program: Program, block: int = WIDEST) -> Program:
    """Return a program with one instruction for all sines and cosines.

    Angles whose sines are gathered in one vector are side by side in a block, if they fit.

    Parameters
    ----------
    block : most angles in one vector; 1 leaves every sine and cosine a scalar.
    """
    code = program.instructions
    early, angles = _early(code)
    return _Turner(program, early, angles, block).run() if angles else program


def _early(code: list[Instruction]) -> tuple[set[int], list[int]]:
    """Return the sines and cosines that depend on no other, and their angles."""
    after: set[int] = set()
    early: set[int] = set()
    angles: dict[int, None] = {}
    for k, (kind, _, operands, _, _) in enumerate(code):
        late = not after.isdisjoint(operands)
        if kind in (SIN, COS):
            after.add(k)
            if not late:
                early.add(k)
                angles[operands[0]] = None
        elif late:
            after.add(k)
    return early, list(angles)


class _Turner:
    """Builds the program: the angles, one instruction that turns them, then the rest."""

    def __init__(self, program: Program, early: set[int], angles: list[int], size: int) -> None:
        self._old, self._early, self._size = program, early, size
        self._code = program.instructions
        self._new: list[Instruction] = []
        self._position: dict[int, int] = {}
        self._lanes: dict[tuple[int, int], int] = {}
        self._vectors: dict[tuple[str, int], int] = {}
        self._place: dict[int, tuple[int, int]] = {}
        self._blocks = self._arranged(angles)

    def _arranged(self, angles: list[int]) -> list[list[int]]:
        """Return the blocks of angles; note block and lane of each angle."""
        blocks: list[list[int]] = [[]]
        wanted = [
            [self._code[k].operands[0] for k in instruction.operands]
            for instruction in self._code
            if self._gathers_sines(instruction)
        ]
        for group in [*wanted, *([angle] for angle in angles)]:
            missing = [angle for angle in dict.fromkeys(group) if angle not in self._place]
            if len(blocks[-1]) + len(missing) > self._size:
                blocks.append([])
            for angle in missing:
                self._place[angle] = len(blocks) - 1, len(blocks[-1])
                blocks[-1].append(angle)
        return blocks

    def _gathers_sines(self, instruction: Instruction) -> bool:
        """Return True for a vector of early sines, or of early cosines."""
        return (
            instruction.kind == GATHER
            and self._early.issuperset(instruction.operands)
            and len({self._code[k].kind for k in instruction.operands}) == 1
        )

    def run(self) -> Program:
        """Return the program."""
        before = self._below_angles()
        for k in before:
            self._position[k] = self._emit(self._code[k].at(self._position))
        self._emit(
            Instruction(
                ANGLES,
                1,
                tuple(self._position[angle] for block in self._blocks for angle in block),
                lanes=tuple(map(len, self._blocks)),
            )
        )
        for k, instruction in enumerate(self._code):
            if k not in self._position:
                self._position[k] = self._turned(k, instruction)
        return self._old.rebuilt(self._new, self._position.__getitem__)

    def _below_angles(self) -> list[int]:
        """Return the angles and what they depend on, operands first."""
        seen = set(self._place)
        stack = list(seen)
        while stack:
            for k in self._code[stack.pop()].operands:
                if k not in seen:
                    seen.add(k)
                    stack.append(k)
        return sorted(seen)

    def _turned(self, k: int, instruction: Instruction) -> int:
        """Emit an instruction, or what stands for it, and return its position."""
        if k in self._early:
            block, lane = self._place[instruction.operands[0]]
            return self._lane(self._vector(instruction.kind, block), lane)
        if self._gathers_sines(instruction):
            kind = self._code[instruction.operands[0]].kind
            places = [self._place[self._code[o].operands[0]] for o in instruction.operands]
            if len({block for block, _ in places}) == 1:
                vector = self._vector(kind, places[0][0])
                lanes = tuple(lane for _, lane in places)
                whole = lanes == tuple(range(len(lanes)))
                if whole and self._new[vector].width == instruction.width:
                    return vector
                return self._emit(Instruction(SHUFFLE, instruction.width, (vector,), lanes=lanes))
        return self._emit(instruction.at(self._position))

    def _emit(self, instruction: Instruction) -> int:
        self._new.append(instruction)
        return len(self._new) - 1

    def _vector(self, kind: str, block: int) -> int:
        """Return the position of the sines or the cosines of a block."""
        name = SINES if kind == SIN else COSINES
        if (name, block) not in self._vectors:
            width = padded(len(self._blocks[block]))
            self._vectors[name, block] = self._emit(Instruction(name, width, lanes=(block,)))
        return self._vectors[name, block]

    def _lane(self, vector: int, lane: int) -> int:
        """Return the position of one lane of a vector."""
        if self._new[vector].width == 1:
            return vector
        if (vector, lane) not in self._lanes:
            extract = Instruction(EXTRACT, 1, (vector,), lanes=(lane,))
            self._lanes[vector, lane] = self._emit(extract)
        return self._lanes[vector, lane]
