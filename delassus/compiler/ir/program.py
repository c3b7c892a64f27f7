"""The program: what is emitted, as instructions over scalars and lane vectors.

A trace has scalar nodes only. The lane pass packs nodes of isomorphic limbs into vectors; the
program holds the result. Instructions are in an order in which operands come first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from delassus.compiler.ir.input_rules import InputRules
from delassus.errors import CompilerError
from delassus.scalars.graph import CONSTANT, INPUT, Node

WIDEST = 8
"""Doubles in the widest vector register, of 512 bits; the code generator splits wider vectors."""
CACHE_LINE_BYTES = 64
"""Bytes that a processor moves at a time between its caches."""

# Instruction kinds beyond the arithmetic ones of the graph.
SPLAT = "splat"
"""One scalar operand in every lane."""
GATHER = "gather"
"""A vector of scalar operands, one per lane."""
EXTRACT = "extract"
"""Lane `lanes[0]` of a vector operand."""
SHUFFLE = "shuffle"
"""Lanes `lanes` of a vector operand; -1 where any value will do."""
JOIN = "join"
"""Lanes `lanes` of two operands side by side; -1 where any value will do."""
FLIP = "flip"
"""The operand with the sign of those lanes changed where `lanes` is 1."""
ANGLES = "angles"
"""Computes the sines and cosines of all operands, in blocks of `lanes[k]` operands each."""
LOAD = "load"
"""The value at place `lanes[0]` of the work area."""
SINES, COSINES = "sines", "cosines"
"""The vector of block `lanes[0]`; as wide as :func:`padded` of the block's size."""


class Instruction(NamedTuple):
    """One instruction; its result is known by its position in the program.

    Attributes
    ----------
    kind : of the graph (``add``, ``mul``, …) or of this module.
    width : number of lanes of the result; 1 for a scalar.
    operands : positions of the operands.
    constant : the values of a ``constant``, one per lane.
    lanes : see the kinds; the position in the input block for ``input``.
    """

    kind: str
    width: int
    operands: tuple[int, ...] = ()
    constant: tuple[float, ...] = ()
    lanes: tuple[int, ...] = ()

    @classmethod
    def of(cls, node: Node, operands: tuple[int, ...]) -> Instruction:
        """Return the scalar instruction of a node of a graph."""
        if node[0] == INPUT:
            return cls(INPUT, 1, lanes=(node[1],))
        if node[0] == CONSTANT:
            return cls(CONSTANT, 1, constant=(node[1],))
        return cls(node[0], 1, operands)

    def at(self, position: Mapping[int, int]) -> Instruction:
        """Return the instruction with its operands at other positions."""
        kind, width, operands, constant, lanes = self
        return Instruction(kind, width, tuple([position[k] for k in operands]), constant, lanes)


@dataclass
class Program:
    """Instructions, and where the results are.

    Attributes
    ----------
    instructions : operands before users.
    outputs : position of each entry of the output block.
    guards : positions of values that must be positive for G to exist.
    regular : positions of values that must be positive for the loops not to be singular.
    checked : positions of values whose sum must be finite.
    inputs : what the input block has to be; None for what gives no status.
    """

    instructions: list[Instruction] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    guards: list[int] = field(default_factory=list)
    regular: list[int] = field(default_factory=list)
    checked: list[int] = field(default_factory=list)
    inputs: InputRules | None = None

    def rebuilt(self, instructions: list[Instruction], position: Callable[[int], int]) -> Program:
        """Return a program with other instructions for the same results.

        Parameters
        ----------
        position : takes the position of a result in this program to that in the new one.
        """
        outputs, guards, regular, checked = (
            [position(k) for k in positions]
            for positions in (self.outputs, self.guards, self.regular, self.checked)
        )
        return Program(instructions, outputs, guards, regular, checked, self.inputs)

    def in_order(self, order: list[int]) -> tuple[Program, dict[int, int]]:
        """Return the same program with its instructions in another order.

        Parameters
        ----------
        order : positions, each once, operands before users.

        Returns
        -------
        The program, and where each position is now.
        """
        at = {k: position for position, k in enumerate(order)}
        moved = [self.instructions[k].at(at) for k in order]
        return self.rebuilt(moved, at.__getitem__), at


@dataclass
class Part:
    """A part of a program, which becomes one function, and the values that it stores.

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


def needs(code: list[Instruction]) -> list[set[int]]:
    """Return what each instruction needs; sines and cosines, the angles that they are of."""
    needed = []
    angles: set[int] = set()
    for k, instruction in enumerate(code):
        of_angles = instruction.kind in (SINES, COSINES)
        needed.append(angles if of_angles else set(instruction.operands))
        if instruction.kind == ANGLES:
            if angles:
                # Sines name blocks of the last one, which another order would change.
                raise CompilerError("a program turns angles twice")
            angles = {k}
    return needed


def padded(lanes: int) -> int:
    """Return the width of the vector that holds so many lanes: a power of two."""
    return 1 << (lanes - 1).bit_length()
