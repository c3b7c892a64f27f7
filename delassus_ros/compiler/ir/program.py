"""The program: what is emitted, as instructions over scalars and lane vectors.

A trace has scalar nodes only. The lane pass packs nodes of isomorphic limbs into vectors; the
program holds the result. Instructions are in an order in which operands come first.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from delassus_ros.compiler.ir.input_rules import InputRules
from delassus_ros.errors import CompilerError

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

        def moved(instruction: Instruction) -> Instruction:
            kind, width, operands, constant, lanes = instruction
            return Instruction(kind, width, tuple(at[k] for k in operands), constant, lanes)

        def all_of(positions: Iterable[int]) -> list[int]:
            return [at[k] for k in positions]

        program = Program(
            [moved(self.instructions[k]) for k in order],
            all_of(self.outputs), all_of(self.guards), all_of(self.regular),
            all_of(self.checked), self.inputs,
        )  # fmt: skip
        return program, at


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
