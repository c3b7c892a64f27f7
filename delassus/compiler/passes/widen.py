"""The widening pass: instructions for corresponding rows of a matrix become one wide instruction.

The rows of a contact go through the same recursion, so whatever is done to one of them is done
to the next, as is done to the columns of G. From the entries of a row of G this pass walks down
the program and combines instructions, each already a vector where limbs are alike, into
instructions over several rows (superword-level parallelism with known seeds). Unlike limbs, rows
differ where they begin, in their zeros: corresponding instructions need not be alike in all that
they depend on, only be as far from the results. Combining never changes a rounding:
each lane computes what its instruction computes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from delassus.compiler.ir.program import (
    ANGLES,
    COSINES,
    EXTRACT,
    FLIP,
    SHUFFLE,
    SINES,
    WIDEST,
    Program,
    padded,
)
from delassus.compiler.passes.superword import Members, Packing
from delassus.scalars.graph import ADD, CONSTANT, INPUT, MUL, SUB

_COMBINED = {ADD, SUB, MUL, FLIP}
_COMPARED_DEPTH = 2
"""Operands correspond if what they depend on is alike down to this depth."""
_SUM_DEPTH = 3
"""Sums of sums up to this depth are looked at for what limbs add to them."""


class Widening(Packing):
    """Instructions over rows of a matrix, and over limbs that are nearly alike."""

    def __init__(self, program: Program, limbs: Sequence[int]) -> None:
        super().__init__(program)
        self._owner = _owners(program, limbs)
        self._height = _heights(program, self._owner)
        self._shape = _shapes(program, self._height)

    def meeting(self, limbs: Sequence[int]) -> list[Members]:
        """Return instructions, one of each limb, whose sum is formed outside of them."""
        found: list[Members] = []
        all_limbs, levels = set(limbs), min(len(limbs) - 1, _SUM_DEPTH)
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
        return self._combined(members) if combined else self._collect(members, first.width)

    def _alike(self, a: int, b: int) -> bool:
        one, other = self._instructions[a], self._instructions[b]
        return (
            {one.kind, other.kind} in ({one.kind}, {ADD, SUB})
            and one.width == other.width
            and self._height[a] == self._height[b]
        )

    def _orient(self, kinds: list[str | None], operands: list[list[int] | None]) -> None:
        """Swap operands of commutative instructions so that corresponding ones stand together."""
        pairs = [
            (kind, pair) for kind, pair in zip(kinds, operands, strict=True) if pair is not None
        ]
        _, wanted = next((pair for pair in pairs if pair[0] == SUB), pairs[0])
        if pairs[0][0] != SUB and len(pairs) > 1 and pairs[0][1] is wanted:
            # The operand that the next pair shares corresponds to that pair's.
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
    for _ in range(_COMPARED_DEPTH):
        deeper = []
        for number, (operands, commutes) in zip(shape, needs, strict=True):
            below = [shape[o] for o in operands]
            if commutes:
                below.sort()
            deeper.append(numbers.setdefault((number, *below), len(numbers)))
        shape = deeper
    return shape


def widened(
    program: Program, seeds: Sequence[Sequence[int]], limbs: Sequence[Sequence[int]] = ()
) -> Program:
    """Return a program with instructions over several rows, and over limbs that are nearly alike.

    Parameters
    ----------
    seeds : lists of positions in the output block, each of one row of a matrix.
    limbs : groups of limbs, each given by the inputs that it depends on, as a bit set. Limbs that
        differ towards their ends are not vectors yet; their common instructions are combined here.
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
    return widening.rebuilt()


def _chunks(program: Program, positions: Sequence[int]) -> list[Members]:
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
