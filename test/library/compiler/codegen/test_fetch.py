"""Kernels that fetch their code first when they have not run for a while."""

from __future__ import annotations

import ctypes
import re

import numpy as np
import pytest
import small
from llvmlite import binding as llvm

from delassus import algorithms
from delassus.compiler.build import checked_positions
from delassus.compiler.codegen import emit
from delassus.compiler.codegen.target import is_x86
from delassus.compiler.ir.program import Program
from delassus.compiler.ir.trace import trace
from delassus.compiler.passes import partition as parts
from delassus.compiler.passes.partition import Lengths, single_parts
from delassus.compiler.passes.vectorize import vectorized
from delassus.compiler.runtime.jit import LoadedCode, compile_ir
from delassus.compiler.runtime.kernel import aligned_zeros

on_x86 = pytest.mark.skipif(
    not is_x86(llvm.get_process_triple()), reason="kernels fetch their code on x86 alone"
)


@pytest.fixture(name="program")
def make_program() -> Program:
    problem = small.problem()
    program = vectorized(
        problem, trace(problem, algorithms.get("pv_osimr")), checked_positions(problem)
    )
    assert isinstance(program, Program)
    return program


def run(code: LoadedCode, work: np.ndarray) -> np.ndarray:
    """Return the output block of the kernel at some input."""
    given = np.linspace(0.1, 0.9, 100)
    found = aligned_zeros(10_000)
    kernel = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 3)(code.address(emit.KERNEL))
    assert kernel(given.ctypes.data, found.ctypes.data, work.ctypes.data) == 0
    return found


def defined(ir: str) -> list[str]:
    """Return the names of the functions of a module, in order."""
    return re.findall(r"^define .*@(\w+)\(", ir, re.MULTILINE)


@on_x86
def test_whatever_the_work_area_holds_the_result_is_the_same(program) -> None:
    module = emit.module(single_parts(program))
    code = LoadedCode(compile_ir(module.ir))
    work = aligned_zeros(module.work_size)
    cycle = work.view(np.int64)[-1:]
    expected = run(code, work)
    assert np.isfinite(expected).all() and expected.any()
    for before in (0, -1, 2**63 - 1, -(2**63), int(cycle[0])):
        cycle[0] = before
        assert np.array_equal(run(code, work), expected)
        # The time of this call, for the next one.
        assert cycle[0] != before
    last = int(cycle[0])
    run(code, work)
    assert cycle[0] > last


@on_x86
@pytest.mark.parametrize("lengths", [Lengths(10**6, 1), Lengths(10, 150)])
def test_all_code_is_between_marks(program, monkeypatch, lengths) -> None:
    monkeypatch.setattr(parts, "SINGLE", lengths)
    module = emit.module(single_parts(program))
    several = lengths.longest == 10
    names = defined(module.ir)
    body = names[: names.index(emit.KERNEL)]
    assert (body[0], body[-1]) == ("delassus_kernel_body_begin", "delassus_kernel_body_end")
    assert "delassus_kernel_body" in body
    found = [name for name in body if "_part" in name]
    assert found == [f"delassus_kernel_body_part{k}" for k in range(len(found))]
    assert (len(found) > 5) == several
    # What is fetched is what is marked.
    assert re.findall(r"ptrtoint .*@(\w+)_begin to i64", module.ir) == ["delassus_kernel_body"]
    result = run(LoadedCode(compile_ir(module.ir)), aligned_zeros(module.work_size))
    monkeypatch.undo()
    plain = emit.module(single_parts(program))
    expected = run(LoadedCode(compile_ir(plain.ir)), aligned_zeros(plain.work_size))
    assert np.linalg.norm(result - expected) <= 1e-13 * np.linalg.norm(expected)


def test_exported_kernels_keep_nothing_in_the_work_area(program) -> None:
    code = single_parts(program)
    module = emit.bare_module(code, "name_kernel", "name_slice")
    assert "readcyclecounter" not in module.ir
    assert module.work_size == emit.functions(code, "name")[1]
    # Nothing else is seen from outside.
    assert defined(re.sub("(?m)^define internal.*$", "", module.ir)) == [
        "name_kernel", "name_slice",
    ]  # fmt: skip
