"""Instructions depth first: the same values, fewer of which wait for a later part."""

from __future__ import annotations

import time

import numpy as np
import pytest
from programs import run

from benchmarks import mechanisms
from delassus import algorithms
from delassus.compiler import build, export
from delassus.compiler.build import checked_positions
from delassus.compiler.cache.cached_code import bound_at_random
from delassus.compiler.codegen import emit
from delassus.compiler.ir.program import Instruction, Part, Program, whole
from delassus.compiler.ir.trace import trace
from delassus.compiler.passes import partition as parts
from delassus.compiler.passes.order import depth_first, interleaved
from delassus.compiler.passes.partition import (
    BATCH,
    Lengths,
    batch_parts,
    orders,
    single_parts,
    split,
)
from delassus.compiler.passes.vectorize import batch_program, scalar_program
from delassus.compiler.runtime.kernel import CompiledKernel
from delassus.scalars.graph import INPUT
from delassus.testing import random_problem


@pytest.mark.parametrize("name", ["pv_osimr", "ltl", "kjr", "dense"])
@pytest.mark.parametrize("seed", range(4))
def test_every_value_is_the_same(name: str, seed: int) -> None:
    problem = random_problem(seed, largest=7)
    traced = trace(problem, algorithms.get(name))
    before = scalar_program(traced, checked_positions(problem), block=1)
    after = depth_first(before)
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
    found = depth_first(Program([x, y, short, long, longer, total, unused], [5], guards=[2]))
    assert [i.operands for i in found.instructions] == [
        (), (0, 0), (1, 1), (), (3, 3), (4, 2), (3, 0)
    ]  # fmt: skip
    assert found.outputs == [5] and found.guards == [4]


def test_an_output_may_be_part_of_another() -> None:
    x = Instruction(INPUT, 1, lanes=(0,))
    twice, four = Instruction("add", 1, (0, 0)), Instruction("add", 1, (1, 1))
    found = depth_first(Program([x, twice, four], [2, 1, 2]))
    assert found.instructions == [x, twice, four] and found.outputs == [2, 1, 2]


def dense_program() -> Program:
    problem = random_problem(1)
    return scalar_program(trace(problem, algorithms.get("dense")), checked_positions(problem))


def test_a_short_program_for_one_configuration_is_interleaved() -> None:
    program = dense_program()
    assert single_parts(program) == [interleaved(whole(program))]


def test_so_are_the_parts_of_a_longer_one(monkeypatch) -> None:
    monkeypatch.setattr(parts, "SINGLE", Lengths(100, 100))
    program = dense_program()
    found = single_parts(program)
    assert found == [interleaved(part) for part in split(program, Lengths(100, 100))]
    assert len(found) > 2


def test_long_programs_are_short_parts_that_are_not_interleaved() -> None:
    program = dense_program()
    found = single_parts(program, Lengths(300, 100))
    assert found == split(program, Lengths(300, 100))
    assert len(found) > 2


def test_both_orders_are_tried_of_what_is_interleaved_alone() -> None:
    program = dense_program()
    assert orders(program) == [depth_first(program), program]
    assert orders(program, Lengths(300, 100)) == [depth_first(program)]


class Timed:
    """In place of a kernel: calls that take a while."""

    def __init__(self, pause: float) -> None:
        self.pause = pause

    def run(self) -> None:
        end = time.perf_counter() + self.pause
        while time.perf_counter() < end:
            pass


@pytest.mark.parametrize(("pauses", "taken"), [((2e-5, 1e-5), 1), ((1e-5, 2e-5), 0), ((1e-5,), 0)])
def test_the_faster_order_is_kept(monkeypatch, pauses, taken) -> None:
    kernels = [Timed(pause) for pause in pauses]
    monkeypatch.setattr(build, "bound_at_random", lambda kernel, problem: kernel)
    assert build._fastest(None, kernels) is kernels[taken]


def test_both_orders_make_the_same_matrix(monkeypatch) -> None:
    problem = random_problem(1)
    made: list[CompiledKernel] = []
    monkeypatch.setattr(build, "_fastest", lambda _, kernels: made.extend(kernels) or kernels[0])
    build.kernel_for(problem, algorithms.get("pv_osimr"), use_cache=False)
    first, second = (bound_at_random(kernel, problem) for kernel in made)
    assert first.run() == second.run() == 0
    assert made[0].code != made[1].code
    np.testing.assert_allclose(first.outputs["G"], second.outputs["G"], rtol=1e-11, atol=1e-13)


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
def test_with_few_registers_exported_programs_are_long_earlier(
    monkeypatch, triple: str, features: str, short: bool
) -> None:
    monkeypatch.setattr(export, "LONG_OF_FEW", Lengths(300, 100))
    given: list[list[Part]] = []
    bare = emit.bare_module
    monkeypatch.setattr(
        emit, "bare_module", lambda code, *names: given.append(code) or bare(code, *names)
    )
    problem = random_problem(1)
    export.export(problem, algorithms.get("dense"), "kernel", export.Target(triple, "", features))
    assert (len(given[0]) > 3) == short


def test_batches_are_depth_first() -> None:
    problem = mechanisms.chain(6, "both ends")
    traced = trace(problem, algorithms.get("pv_osimr"))
    program = batch_program(traced, checked_positions(problem))
    assert isinstance(program, Program)
    assert batch_parts(program) == split(depth_first(program), BATCH)
    assert batch_parts(program) != split(program, BATCH)


def test_fewer_values_wait_for_a_later_part() -> None:
    problem = mechanisms.chain(6, "both ends")
    traced = trace(problem, algorithms.get("pv_osimr"))
    as_traced = scalar_program(traced, checked_positions(problem), block=1)

    def waiting(program: Program) -> int:
        return sum(len(part.stores) for part in split(program, BATCH._replace(longest=0)))

    assert waiting(depth_first(as_traced)) < 0.75 * waiting(as_traced)
