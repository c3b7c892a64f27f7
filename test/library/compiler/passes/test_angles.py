"""Sines and cosines in blocks: the same values, in vectors as wide as asked for."""

from __future__ import annotations

import numpy as np
import pytest
from programs import run
from toy import traced

from delassus import algorithms
from delassus.compiler.ir.program import Instruction, Program, padded
from delassus.compiler.ir.trace import trace
from delassus.compiler.passes.angles import turned
from delassus.compiler.passes.vectorize import scalars_of
from delassus.scalars.functions import sincos
from delassus.testing import random_problem


@pytest.mark.parametrize("block", [1, 3, 8])
@pytest.mark.parametrize("seed", range(3))
def test_every_value_is_the_same(seed: int, block: int) -> None:
    before = scalars_of(trace(random_problem(seed), algorithms.get("pv_osimr")), [0])
    after = turned(before, block)
    inputs = np.random.default_rng(seed).uniform(-2.0, 2.0, 1000)
    np.testing.assert_allclose(run(after, inputs), run(before, inputs), rtol=1e-9, atol=1e-12)
    sizes = next(i.lanes for i in after.instructions if i.kind == "angles")
    assert max(sizes) <= block
    assert {i.kind for i in after.instructions}.isdisjoint({"sin", "cos"})
    assert all(
        i.width == padded(sizes[i.lanes[0]]) for i in after.instructions if i.kind == "sines"
    )


def test_a_sine_of_a_sine_is_left_to_the_library() -> None:
    program = turned(scalars_of(traced(lambda x: [sincos(sincos(x[0])[1] + x[1])[0]], 2), []))
    assert [i.kind for i in program.instructions if i.kind in ("angles", "sin")] == [
        "angles",
        "sin",
    ]
    assert run(program, np.array([0.3, 0.4]))[1] == pytest.approx(
        np.sin(np.cos(0.3) + 0.4), rel=1e-14
    )


def test_angles_of_one_vector_stand_side_by_side() -> None:
    inputs = [Instruction("input", 1, lanes=(k,)) for k in range(4)]
    sines = [Instruction("sin", 1, (k,)) for k in range(4)]
    gathered = Instruction("gather", 2, (7, 5))
    last = Instruction("extract", 1, (8,), lanes=(0,))
    program = Program([*inputs, *sines, gathered, last], [9])
    after = turned(program, 2)
    angles = next(i for i in after.instructions if i.kind == "angles")
    assert [after.instructions[k].lanes for k in angles.operands] == [(3,), (1,), (0,), (2,)]
    # The block is the vector that is wanted: neither a gather nor a shuffle.
    assert {i.kind for i in after.instructions}.isdisjoint({"gather", "shuffle"})
    assert run(after, np.array([0.1, 0.2, 0.3, 0.4])) == pytest.approx(np.sin([0.4]))


def test_a_program_without_angles_stays_as_it_is() -> None:
    program = scalars_of(traced(lambda x: [x[0] * x[1]], 2), [])
    assert turned(program) is program
