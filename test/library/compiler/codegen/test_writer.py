"""The text of a part: what it leaves behind is stored where it is computed."""

from __future__ import annotations

import pytest
from programs import program

from delassus import Problem, algorithms
from delassus.compiler.codegen.writer import KernelWriter
from delassus.compiler.ir.program import LOAD, Part
from delassus.compiler.ir.trace import trace
from delassus.compiler.passes.calls import Table
from delassus.compiler.passes.order import interleaved
from delassus.compiler.passes.partition import Lengths, split
from delassus.compiler.passes.vectorize import scalar_program, vectorized
from delassus.testing import random_problem

LENGTHS = Lengths(0, 120)


def some_parts(problem: Problem) -> list[Part]:
    return [interleaved(part) for part in split(program(problem), LENGTHS)]


@pytest.mark.parametrize("configurations", [1, 4])
def test_values_are_stored_as_soon_as_they_are_there(
    configurations: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = random_problem(3)
    traced = trace(problem, algorithms.get("pv_osimr"))
    found = program(problem) if configurations == 1 else scalar_program(traced, [0])
    parts = split(found, LENGTHS)
    for part in parts:
        writer = KernelWriter(part, configurations)
        stored: list[tuple[int, int]] = []
        results: list[int] = []

        def store(
            value: str, base: str, place: int, width: int,
            by: KernelWriter = writer, seen: list = stored, entries: list = results,
        ) -> None:  # fmt: skip
            if base == "%out":
                entries += range(place // configurations, (place + width) // configurations)
            else:
                seen.append((len(by._names) - 1, place // configurations))
                assert value == by._names[-1]

        monkeypatch.setattr(writer._w, "store", store)
        writer.text("part", part is parts[-1])
        assert sorted(stored) == sorted(part.stores)
        assert sorted(results) == sorted(entry for _, entry in part.outputs)


@pytest.mark.parametrize("seed", range(6))
def test_no_part_loads_from_where_it_stores(seed: int) -> None:
    """Or a store could come before the load of what was there."""
    parts = some_parts(random_problem(seed))
    assert any(part.stores for part in parts)
    for part in parts:
        code = part.program.instructions
        stored = {place + lane for k, place in part.stores for lane in range(code[k].width)}
        loaded = {
            instruction.lanes[0] + lane
            for instruction in code
            if instruction.kind == LOAD
            for lane in range(instruction.width)
        }
        assert not stored & loaded


def test_no_part_of_a_table_loads_from_where_it_stores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("delassus.algorithms.counting._LARGE", 0)
    problem = random_problem(3)
    table = vectorized(problem, trace(problem, algorithms.get("pv_osimr")), [0])
    assert isinstance(table, Table)
    parts = [step.part for step in table.functions if step.part.stores]
    assert parts
    for part in parts:
        stored = {place for _, place in part.stores}
        loads = (i for i in part.program.instructions if i.kind == LOAD)
        assert not stored & {load.lanes[0] for load in loads}
