"""Kernels that fetch their code first when they have not run for a while."""

from __future__ import annotations

import ctypes
import re

import numpy as np
import pytest
import small
from llvmlite import binding as llvm

from delassus_ros import algorithms
from delassus_ros.compiler import emit
from delassus_ros.compiler.build import checked_positions
from delassus_ros.compiler.fetch import counts_cycles
from delassus_ros.compiler.jit import LoadedCode, compile_for, compile_ir, joined
from delassus_ros.compiler.kernel import aligned_zeros
from delassus_ros.compiler.parts import Lengths
from delassus_ros.compiler.program import Program
from delassus_ros.compiler.schedule import program_of
from delassus_ros.compiler.trace import trace

on_x86 = pytest.mark.skipif(
    not counts_cycles(llvm.get_process_triple()), reason="kernels fetch their code on x86 alone"
)


@pytest.fixture(name="program")
def make_program() -> Program:
    problem = small.problem()
    program = program_of(
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
    module = emit.module(program)
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
@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("lengths", [Lengths(10**6, 1), Lengths(10, 150)])
def test_all_code_is_between_marks(program, monkeypatch, lengths, apart) -> None:
    monkeypatch.setattr(emit, "SINGLE", lengths)
    others: list[str] = []
    module = emit.module(program, others.append if apart else None)
    # A program of one part has none to be compiled elsewhere.
    several = lengths.longest == 10
    assert len(others) == (apart and several)
    names = defined(module.ir)
    kernel = names.index(emit.KERNEL)
    body = names[:kernel]
    assert (body[0], body[-1]) == ("delassus_kernel_body_begin", "delassus_kernel_body_end")
    assert "delassus_kernel_body" in body
    parts = [name for name in body if "_part" in name]
    for other in others:
        begin, *more, end = defined(other)
        assert (begin, end) == ("delassus_kernel_apart_begin", "delassus_kernel_apart_end")
        first = [name for name in more if "_part" in name]
        assert len(first) > 2
        parts = [*first, *parts]
    assert parts == [f"delassus_kernel_body_part{k}" for k in range(len(parts))]
    assert (len(parts) > 5) == several
    # What is fetched is what is marked.
    stretches = re.findall(r"ptrtoint .*@(\w+)_begin to i64", module.ir)
    assert stretches == ["delassus_kernel_body", "delassus_kernel_apart"][: 1 + len(others)]
    code = LoadedCode(joined([compile_ir(ir) for ir in (*others, module.ir)]))
    found = run(code, aligned_zeros(module.work_size))
    monkeypatch.undo()
    plain = emit.module(program)
    expected = run(LoadedCode(compile_ir(plain.ir)), aligned_zeros(plain.work_size))
    assert np.linalg.norm(found - expected) <= 1e-13 * np.linalg.norm(expected)


def test_only_processors_whose_counter_may_be_read_are_asked(program) -> None:
    """On others that is an instruction of the system, or none."""
    plain = emit.functions(program, "name")[1]
    for triple, counts in (
        ("x86_64-linux-gnu", True),
        ("i686-linux-gnu", True),
        ("aarch64-linux-gnu", False),
        ("armv7-linux-gnueabihf", False),
        ("riscv64-linux-gnu", False),
    ):
        features = "+sse2" if triple.startswith("i686") else ""
        module = emit.bare_module(program, "name_kernel", "name_slice", triple, features)
        assert ("readcyclecounter" in module.ir) == counts
        assert module.work_size == plain + counts
        assert compile_for(module.ir, triple, "", features)
        # Nothing else is seen from outside.
        assert defined(re.sub("(?m)^define internal.*$", "", module.ir)) == [
            "name_kernel", "name_slice",
        ]  # fmt: skip
