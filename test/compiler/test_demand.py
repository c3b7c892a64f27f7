"""Instructions on demand: the same values, fewer of which wait for a later part."""

from __future__ import annotations

import numpy as np
import pytest
from test_interleave import run

from benchmarks import mechanisms
from delassus_ros import algorithms
from delassus_ros.compiler import emit
from delassus_ros.compiler.build import checked_positions
from delassus_ros.compiler.demand import on_demand
from delassus_ros.compiler.parts import BATCH, Lengths, interleaved, split, whole
from delassus_ros.compiler.program import Instruction, Program
from delassus_ros.compiler.schedule import batch_program, scalar_program
from delassus_ros.compiler.trace import trace
from delassus_ros.compiler.writer import KernelWriter
from delassus_ros.scalars.graph import INPUT
from delassus_ros.testing import random_problem


@pytest.mark.parametrize("name", ["pv_osimr", "ltl", "kjr", "dense"])
@pytest.mark.parametrize("seed", range(4))
def test_every_value_is_the_same(name: str, seed: int) -> None:
    problem = random_problem(seed)
    traced = trace(problem, algorithms.get(name))
    before = scalar_program(traced, checked_positions(problem), block=1)
    after = on_demand(before)
    inputs = np.random.default_rng(seed).uniform(-1.0, 1.0, 1000)
    for what in ("outputs", "guards", "regular", "checked"):
        values = [
            run(Program(each.instructions, getattr(each, what)), inputs)
            for each in (before, after)
        ]
        np.testing.assert_array_equal(*values)
    assert after.instructions != before.instructions
    assert sorted(i.kind for i in before.instructions) == sorted(
        i.kind for i in after.instructions
    )
    for k, instruction in enumerate(after.instructions):
        assert all(operand < k for operand in instruction.operands)


def test_what_has_the_longest_way_behind_it_comes_first() -> None:
    """Its result waits for the short one alone, not every one of the short ones for it."""
    x, y = (Instruction(INPUT, 1, lanes=(k,)) for k in range(2))
    short, long, longer = (Instruction("add", 1, (k, k)) for k in (0, 1, 3))
    total = Instruction("mul", 1, (2, 4))
    unused = Instruction("add", 1, (0, 1))
    found = on_demand(Program([x, y, short, long, longer, total, unused], [5], guards=[2]))
    assert [i.operands for i in found.instructions] == [
        (), (0, 0), (1, 1), (), (3, 3), (4, 2), (3, 0)
    ]  # fmt: skip
    assert found.outputs == [5] and found.guards == [4]


def test_an_output_may_be_part_of_another() -> None:
    x = Instruction(INPUT, 1, lanes=(0,))
    twice, four = Instruction("add", 1, (0, 0)), Instruction("add", 1, (1, 1))
    found = on_demand(Program([x, twice, four], [2, 1, 2]))
    assert found.instructions == [x, twice, four] and found.outputs == [2, 1, 2]


def test_a_short_program_for_one_configuration_is_on_demand_and_interleaved() -> None:
    problem = random_problem(1)
    program = scalar_program(trace(problem, algorithms.get("dense")), checked_positions(problem))
    on_its_own = interleaved(whole(on_demand(program)))
    assert emit.functions(program, "kernel")[0] == [KernelWriter(on_its_own).text("kernel")]


def test_so_are_the_parts_of_a_longer_one(monkeypatch) -> None:
    monkeypatch.setattr(emit, "SINGLE", Lengths(100, 100))
    problem = random_problem(1)
    program = scalar_program(trace(problem, algorithms.get("dense")), checked_positions(problem))
    texts, _ = emit.functions(program, "kernel")
    parts = split(on_demand(program), Lengths(100, 100))
    assert len(texts) == len(parts) + 1 > 3
    for k, part in enumerate(parts):
        text = KernelWriter(interleaved(part)).text(f"kernel_part{k}", part is parts[-1])
        assert texts[k] == text


def test_long_programs_are_short_parts_that_are_not_interleaved() -> None:
    problem = random_problem(1)
    program = scalar_program(trace(problem, algorithms.get("dense")), checked_positions(problem))
    texts, _ = emit.functions(program, "kernel", long=Lengths(300, 100))
    parts = split(on_demand(program), Lengths(300, 100))
    assert len(texts) == len(parts) + 1 > 3
    for k, part in enumerate(parts):
        assert texts[k] == KernelWriter(part).text(f"kernel_part{k}", part is parts[-1])


@pytest.mark.parametrize(
    ("triple", "features", "short"),
    [
        ("x86_64-linux-gnu", "", True),
        ("x86_64-linux-gnu", "+avx2,+fma,-avx512f", True),
        ("x86_64-linux-gnu", "+avx2,+avx512f,+avx512vl", False),
        ("i686-linux-gnu", "+sse2", True),
        ("aarch64-linux-gnu", "", False),
    ],
)
def test_with_few_registers_programs_are_long_earlier(
    monkeypatch, triple: str, features: str, short: bool
) -> None:
    problem = random_problem(1)
    program = scalar_program(trace(problem, algorithms.get("dense")), checked_positions(problem))
    monkeypatch.setattr(emit, "LONG_OF_FEW", Lengths(300, 100))
    module = emit.bare_module(program, "kernel", "slice", triple, features)
    parts = len(split(on_demand(program), Lengths(300, 100)))
    assert parts > 3
    assert module.ir.count("_part2(") == (2 if short else 0)  # defined and called


def test_batches_are_on_demand() -> None:
    problem = mechanisms.chain(6, "both ends")
    traced = trace(problem, algorithms.get("pv_osimr"))
    program = batch_program(traced, checked_positions(problem))
    assert isinstance(program, Program)
    assert emit.stages(program, "block", 4) == emit.stages(on_demand(program), "block", 4)
    first, *_ = split(program, BATCH)
    as_traced = KernelWriter(first, 4).text("block_part0", last=False)
    assert as_traced not in emit.stages(program, "block", 4)[0]


def test_fewer_values_wait_for_a_later_part() -> None:
    problem = mechanisms.chain(6, "both ends")
    traced = trace(problem, algorithms.get("pv_osimr"))
    as_traced = scalar_program(traced, checked_positions(problem), block=1)

    def waiting(program: Program) -> int:
        return sum(len(part.stores) for part in split(program, BATCH._replace(longest=0)))

    assert waiting(on_demand(as_traced)) < 0.75 * waiting(as_traced)
