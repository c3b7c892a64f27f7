"""Instructions in another order: the same values, a shorter wait, and not too far from before."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import robots
from programs import program, run

from delassus import Contact, Problem, Robot
from delassus.compiler.ir.program import Instruction, Part, Program, needs, whole
from delassus.compiler.passes import order as interleave
from delassus.compiler.passes.order import interleaved
from delassus.compiler.passes.partition import Lengths, split
from delassus.errors import CompilerError
from delassus.scalars.graph import CONSTANT, INPUT
from delassus.testing import random_problem


@pytest.fixture(scope="module")
def quadruped_problem() -> Problem:
    legs = ("LF", "RF", "LH", "RH")
    robot = Robot.from_urdf(robots.quadruped())
    return Problem(robot, [Contact(leg, f"{leg}_FOOT", "point") for leg in legs])


def cycles(code: Sequence[Instruction]) -> int:
    """Return how long a processor takes that begins one instruction per cycle, in order."""
    end: list[int] = []
    cycle = 0
    for instruction, needed in zip(code, needs(list(code)), strict=True):
        cycle = max([cycle, *(end[k] for k in needed)])
        latency = interleave._LATENCY_CYCLES.get(instruction.kind, interleave._USUAL_CYCLES)
        end.append(cycle + latency)
        cycle += instruction.kind not in interleave._FREE
    return max(end)


@pytest.mark.parametrize("name", ["pv_osimr", "ltl", "kjr", "dense"])
@pytest.mark.parametrize("seed", range(4))
def test_every_value_is_the_same(name: str, seed: int) -> None:
    before = program(random_problem(seed, largest=7), name)
    part = whole(before)
    after = interleaved(part)
    inputs = np.random.default_rng(seed).uniform(-1.0, 1.0, 1000)
    results = run(before, inputs)
    assert after.outputs == [(k, entry) for entry, k in enumerate(after.program.outputs)]
    np.testing.assert_array_equal(run(after.program, inputs), results)
    for what in ("guards", "regular", "checked"):
        asked = [
            Program(each.instructions, getattr(each, what)) for each in (before, after.program)
        ]
        first, second = (run(each, inputs) for each in asked)
        np.testing.assert_array_equal(first, second)


def test_stores_keep_their_places(quadruped_problem: Problem) -> None:
    """A long program hands values on from part to part."""
    before = program(quadruped_problem)
    parts = split(before, Lengths(100, 200))
    assert len(parts) > 3
    for part in parts:
        after = interleaved(part)
        for name in ("stores", "outputs"):
            pairs = zip(getattr(part, name), getattr(after, name), strict=True)
            for (k, place), (moved, same) in pairs:
                assert place == same
                assert after.program.instructions[moved].kind == part.program.instructions[k].kind


def test_nothing_is_overtaken_by_too_much(
    monkeypatch: pytest.MonkeyPatch, quadruped_problem: Problem
) -> None:
    part = whole(program(quadruped_problem))
    for window in (1, 20, 100):
        monkeypatch.setattr(interleave, "_WINDOW_INSTRUCTIONS", window)
        order = interleave._order(part.program.instructions)
        assert sorted(order) == list(range(len(order)))
        waiting = set(order)
        for k in order:
            assert k < min(waiting) + window
            waiting.remove(k)


def test_less_waiting(quadruped_problem: Problem) -> None:
    part = whole(program(quadruped_problem))
    before, after = (cycles(p.program.instructions) for p in (part, interleaved(part)))
    work = sum(i.kind not in interleave._FREE for i in part.program.instructions)
    assert before > 1.3 * work  # there is something to gain
    assert after < 1.1 * work


def test_two_chains_are_computed_together() -> None:
    code = [Instruction(INPUT, 1, lanes=(0,)), Instruction(CONSTANT, 1, constant=(1.0,))]
    for _ in range(2):
        last = 0
        for _ in range(5):
            code.append(Instruction("add", 1, (last, 1)))
            last = len(code) - 1
    order = interleave._order(code)
    assert [k - 2 for k in order if k >= 2] == [0, 5, 1, 6, 2, 7, 3, 8, 4, 9]
    assert interleaved(Part(Program(code))).program.instructions[3].operands == (0, 1)


def test_angles_are_turned_once() -> None:
    """Sines name blocks of the angles before them, which another order would change."""
    angles = [Instruction("angles", 1, (0,), lanes=(1,)) for _ in range(2)]
    with pytest.raises(CompilerError, match="turns angles twice"):
        interleaved(Part(Program([Instruction(INPUT, 1, lanes=(0,)), *angles])))
