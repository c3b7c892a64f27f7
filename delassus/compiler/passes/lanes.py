"""The lane pass: nodes of isomorphic limbs become 2-, 4- or 8-wide vectors.

The legs of a quadruped run the same recursion on other numbers, so their expressions have the
same shape. From values that leave the limbs, and from the blocks of G between them, the pass
walks down all limbs at once and packs what corresponds (superword-level parallelism with
known seeds). Packing never changes a rounding: each lane computes what its node computes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from delassus.compiler.ir.program import FLIP, WIDEST, Program
from delassus.compiler.passes.limbs import LimbGroup
from delassus.compiler.passes.superword import Members, Packing, Wide
from delassus.scalars.graph import ADD, CONSTANT, COS, DIV, INPUT, NEG, SIN, SUB

_SINGLE = {INPUT, CONSTANT, SIN, COS}
"""Kinds of instructions that are not combined; sines and cosines are vectors anyway."""


class Lanes(Packing):
    """Instructions over limbs of the same build; every value of the program is a scalar."""

    gathers = True

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self._shape = _shapes(program)

    def alike(self, members: Sequence[int]) -> bool:
        """Return True if the expressions of the instructions have one shape."""
        return len({self._shape[m] for m in members}) == 1

    def shape(self, position: int) -> int:
        """Return a number that is equal for expressions of one shape."""
        return self._shape[position]

    def _new(self, members: Members) -> int:
        found = [m for m in members if m is not None]
        if len(set(found)) == 1:
            return self._collect(members, 1)
        kinds = {self._instructions[m].kind for m in found}
        homes = [self.home.get(m) for m in found]
        places = {home[0] for home in homes if home is not None}
        if kinds == {CONSTANT} or (len(places) == 1 and None not in homes):
            return self._collect(members, 1)
        if NEG in kinds:
            mask = tuple([int(self._instructions[m].kind == NEG) for m in found])
            plain = tuple(
                [
                    self._instructions[m].operands[0] if flipped else m
                    for m, flipped in zip(found, mask, strict=True)
                ]
            )
            return self._add(Wide(FLIP, members, 1, (self._reference(plain),), mask))
        packable = (
            not places
            and len(set(found)) == len(found)
            and (len(kinds) == 1 or kinds == {ADD, SUB})
            and not kinds & _SINGLE
            and self.alike(found)
        )
        return self._combined(members) if packable else self._collect(members, 1)

    def _orient(self, kinds: list[str | None], operands: list[list[int] | None]) -> None:
        """Swap operands of commutative instructions; see the base class."""
        shape = self._shape
        pairs = [pair for pair in operands if pair is not None]
        first, second = pairs[kinds.index(SUB) if SUB in kinds else 0]
        swapped = shape[second], shape[first]
        for kind, pair in zip(kinds, pairs, strict=True):
            if kind != SUB and (shape[pair[0]], shape[pair[1]]) == swapped:
                pair.reverse()


def _shapes(program: Program) -> list[int]:
    """Return per instruction a number for the shape of its expression.

    Constants are alike whatever their value, a sign changes nothing, and sums and
    differences are alike: lanes can differ in them. Instructions of one shape are of one depth and
    do not depend on each other, so wide values of one shape each cannot form a cycle.
    """
    shape: list[int] = []
    numbers: dict[object, int] = {}
    for kind, _, operands, _, _ in program.instructions:
        if kind == NEG:
            shape.append(shape[operands[0]])
            continue
        key: object
        if len(operands) == 2:
            a, b = shape[operands[0]], shape[operands[1]]
            if b < a and kind != DIV:
                a, b = b, a
            key = (ADD if kind == SUB else kind, a, b)
        else:
            key = (kind, *[shape[k] for k in operands])
        shape.append(numbers.setdefault(key, len(numbers)))
    return shape


def packed(program: Program, groups: Sequence[LimbGroup], outputs: Sequence[list[int]]) -> Program:
    """Return a program of scalars with vectors over limbs.

    Parameters
    ----------
    groups : the limbs.
    outputs : lists of positions in the output block whose expressions may have one shape.
    """
    lanes = Lanes(program)
    instructions = program.instructions
    support = _support(program)
    # Only what depends on more than its operand can be outside of the operand's limb.
    edges = [
        (i, k)
        for i, instruction in enumerate(instructions)
        for k in instruction.operands
        if support[k] != support[i]
    ]
    for group in groups:
        for corresponding in _leaving(edges, lanes, support, group):
            _pack_in_chunks(lanes, corresponding)
    for positions in outputs:
        by_shape: dict[int, list[int]] = defaultdict(list)
        for k in dict.fromkeys(program.outputs[position] for position in positions):
            if instructions[k].kind not in (CONSTANT, INPUT):
                by_shape[lanes.shape(k)].append(k)
        for alike in by_shape.values():
            _pack_in_chunks(lanes, alike)
    return lanes.rebuilt()


def _pack_in_chunks(lanes: Lanes, positions: Sequence[int]) -> None:
    for start in range(0, len(positions), WIDEST):
        chunk = positions[start : start + WIDEST]
        if len(chunk) > 1 and lanes.alike(chunk):
            lanes.combine(tuple(chunk))


def _support(program: Program) -> list[int]:
    """Return per instruction the inputs that it depends on, as a bit set."""
    support: list[int] = []
    for instruction in program.instructions:
        bits = 1 << instruction.lanes[0] if instruction.kind == INPUT else 0
        for k in instruction.operands:
            bits |= support[k]
        support.append(bits)
    return support


def _limb_of(bits: int, masks: list[int]) -> int | None:
    """Return the limb that has all of some inputs, if any; limbs share none."""
    found = (limb for limb, mask in enumerate(masks) if bits and not bits & ~mask)
    return next(found, None)


def _leaving(
    edges: list[tuple[int, int]], lanes: Lanes, support: list[int], group: LimbGroup
) -> list[tuple[int, ...]]:
    """Return tuples of corresponding nodes that depend on one limb and are used outside it.

    Parameters
    ----------
    edges : nodes, each with an operand.
    """
    masks = [sum(1 << position for position in inputs) for inputs in group.inputs]
    leaving: list[dict[int, None]] = [{} for _ in masks]
    inside = {bits: _limb_of(bits, masks) for bits in set(support)}
    for i, n in edges:
        limb = inside[support[n]]
        if limb is not None and support[i] & ~masks[limb]:
            leaving[limb][n] = None
    by_shape: dict[int, list[list[int]]] = defaultdict(lambda: [[] for _ in masks])
    for limb, found in enumerate(leaving):
        for n in sorted(found):
            by_shape[lanes.shape(n)][limb].append(n)
    tuples = []
    for per_limb in by_shape.values():
        for count in {len(nodes) for nodes in per_limb} - {0}:
            alike = [nodes for nodes in per_limb if len(nodes) == count]
            tuples += [nodes for nodes in zip(*alike, strict=True) if len(nodes) > 1]
    return tuples
