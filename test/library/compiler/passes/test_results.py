"""Outputs beside each other are stored together: every one, once, from where it was before."""

from __future__ import annotations

import pytest
from programs import program
from seeds import seeds
from test_interleave import quadruped_problem

from delassus import Problem
from delassus.compiler.ir.program import EXTRACT, GATHER, Instruction, Part, Program
from delassus.compiler.passes.order import interleaved
from delassus.compiler.passes.partition import Lengths, split
from delassus.compiler.passes.results import Piece, Run, Zip, pieces
from delassus.scalars.graph import INPUT
from delassus.testing import random_problem

__all__ = ["quadruped_problem"]


def entries(piece: Piece) -> dict[int, tuple[int, int]]:
    """Return the value and the lane that a piece stores in each entry."""
    if isinstance(piece, Run):
        return {piece.entry + k: (piece.value, piece.lane + k) for k in range(piece.count)}
    found = {}
    for lane, entry in piece.entries:
        found[entry], found[entry + 1] = ((value, lane) for value in piece.values)
    return found


def expected(part: Part) -> dict[int, tuple[int, int]]:
    found = {}
    for k, entry in part.outputs:
        instruction = part.program.instructions[k]
        extracted = instruction.kind == EXTRACT
        value = (instruction.operands[0], instruction.lanes[0]) if extracted else (k, 0)
        found[entry] = value
    return found


def check(part: Part) -> list[Piece]:
    """Hold the pieces against the outputs; return them."""
    found: dict[int, tuple[int, int]] = {}
    code = part.program.instructions
    everything = []
    for position, some in pieces(part).items():
        for piece in some:
            everything.append(piece)
            places = entries(piece)
            assert not found.keys() & places.keys()
            found |= places
            assert position == max(value for value, _ in places.values())
            assert all(lane < code[value].width for value, lane in places.values())
            together = [len(places)] if isinstance(piece, Run) else [2] * len(piece.entries)
            firsts = [piece.entry] if isinstance(piece, Run) else [e for _, e in piece.entries]
            assert all(e % 8 + n <= 8 for e, n in zip(firsts, together, strict=True))
    assert found == expected(part)
    return everything


@pytest.mark.parametrize("seed", seeds(12))
@pytest.mark.parametrize("length", [10_000, 150])
def test_every_output_is_stored_once(seed: int, length: int) -> None:
    for part in split(program(random_problem(seed)), Lengths(length, length)):
        check(interleaved(part))


def test_columns_of_limbs_are_stored_in_pairs(quadruped_problem: Problem) -> None:
    (part,) = split(program(quadruped_problem), Lengths(10_000, 10_000))
    found = check(part)
    runs = [piece.count for piece in found if isinstance(piece, Run)]
    pairs = sum(len(piece.entries) for piece in found if isinstance(piece, Zip))
    # Of 144 entries.
    assert sum(runs) + 2 * pairs == 144 and len(runs) + pairs < 100


def vectors(outputs: list[tuple[int, int, int]], width: int = 4) -> Part:
    """Return a part with vectors of inputs; outputs are vector, lane and entry."""
    count = 1 + max(vector for vector, _, _ in outputs)
    code = [Instruction(INPUT, 1, lanes=(k,)) for k in range(width)]
    code += [Instruction(GATHER, width, tuple(range(width))) for _ in range(count)]
    part = Part(Program(code))
    for vector, lane, entry in outputs:
        code.append(Instruction(EXTRACT, 1, (width + vector,), lanes=(lane,)))
        part.outputs.append((len(code) - 1, entry))
    return part


def test_a_run_is_a_whole_vector_or_a_half_in_one_line() -> None:
    assert check(vectors([(0, k, 8 + k) for k in range(4)])) == [Run(4, 0, 4, 8)]
    assert check(vectors([(0, k, k) for k in (1, 2, 3)])) == [Run(4, 2, 2, 2), Run(4, 1, 1, 1)]
    # The line ends after entry 7.
    crossing = check(vectors([(0, k, 6 + k) for k in range(4)]))
    assert crossing == [Run(4, 0, 2, 6), Run(4, 2, 2, 8)]
    crossing = check(vectors([(0, k, 7 + k) for k in range(2)]))
    assert crossing == [Run(4, 0, 1, 7), Run(4, 1, 1, 8)]


def test_a_column_is_stored_in_pairs_of_the_same_lane() -> None:
    column = [(vector, lane, 10 * lane + vector) for vector in range(2) for lane in range(4)]
    assert check(vectors(column)) == [Zip((4, 5), [(0, 0), (1, 10), (2, 20), (3, 30)])]
    # Lanes that differ stay apart.
    assert check(vectors([(0, 0, 0), (1, 1, 1)])) == [Run(4, 0, 1, 0), Run(5, 1, 1, 1)]
