"""The program: what is emitted, as instructions over scalars and lane vectors.

A trace has scalar nodes only. The lane pass packs nodes of isomorphic limbs into vectors; the
program holds the result. Instructions are in an order in which operands come first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

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
    inputs : size of the input block, of which all must be finite; 0 for what gives no status.
    """

    instructions: list[Instruction] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    guards: list[int] = field(default_factory=list)
    regular: list[int] = field(default_factory=list)
    checked: list[int] = field(default_factory=list)
    inputs: int = 0


def padded(lanes: int) -> int:
    """Return the width of the vector that holds so many lanes: a power of two."""
    return 1 << (lanes - 1).bit_length()
