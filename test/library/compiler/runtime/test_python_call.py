"""Machine code as built-in functions: what they take, what they keep alive, what they leak."""

from __future__ import annotations

import ctypes
import gc
import sys
import time
import weakref
from array import array

import numpy as np
import pytest

from delassus.compiler.codegen.llvm_text import pointer
from delassus.compiler.codegen.python_call import NOT_TAKEN, functions
from delassus.compiler.codegen.writer import declarations
from delassus.compiler.runtime import python_call
from delassus.compiler.runtime.jit import LoadedCode, compile_for, compile_ir
from delassus.compiler.runtime.python_call import (
    PythonCalls,
    link,
    python_calls,
    python_solve,
)

N = 3


def summing() -> str:
    """Return IR: the argument points to the address of N doubles; returns their sum."""
    w, d = pointer("i64"), pointer()
    adds = "\n".join(
        f"  %p{k} = getelementptr double, {d} %q, i64 {k}\n"
        f"  %x{k} = load double, {d} %p{k}, align 8\n"
        f"  %s{k + 1} = fadd double %s{k}, %x{k}"
        for k in range(N)
    )
    return f"""
define i32 @summing({w} %binding) {{
  %address = load i64, {w} %binding, align 8
  %q = inttoptr i64 %address to {d}
  %s0 = fadd double 0.0, 0.0
{adds}
  %sum = fptosi double %s{N} to i32
  ret i32 %sum
}}
{functions("summing")}
{declarations()}
"""


@pytest.fixture(scope="module")
def machine_code() -> bytes:
    return compile_ir(summing())


class Owner:
    """Holds the buffers of one binding."""

    def __init__(self) -> None:
        self.q = np.zeros(N)
        self.binding = array("q", [self.q.ctypes.data])


def bound(machine_code: bytes) -> tuple[PythonCalls, Owner]:
    link()
    code, owner = LoadedCode(machine_code), Owner()
    address = owner.binding.buffer_info()[0]
    return python_calls(code, address, owner.q.ctypes.data, N, owner), owner


def test_they_compute_with_and_without_an_argument(machine_code: bytes) -> None:
    calls, owner = bound(machine_code)
    owner.q[:] = 1.0, 2.0, 40.0
    assert calls.run() == 43
    assert calls.run_at(np.array([5.0, 6.0, 7000.0])) == 7011
    assert owner.q.tolist() == [5.0, 6.0, 7000.0]
    assert calls.run_at(-owner.q) == -7011
    assert calls.run() == -7011
    assert calls.run_at(owner.q) == -7011
    assert type(calls.run()) is int


def test_every_contiguous_array_of_doubles_is_taken(machine_code: bytes) -> None:
    calls, _ = bound(machine_code)
    values = np.array([1.0, 2.0, 3.0])
    constant = values.copy()
    constant.setflags(write=False)
    part = np.array([[9.0, 9.0, 9.0], values])[1]
    for taken in (values, constant, part):
        assert calls.run_at(taken) == 6


@pytest.mark.parametrize(
    "other",
    [
        None, 3.0, "abc", [1.0, 2.0, 3.0], (), b"x" * 8 * N, bytearray(8 * N), object(),
        np.zeros(N - 1), np.zeros(N + 1), np.zeros(0), np.zeros((N, 1)), np.zeros((1, N)),
        np.zeros(2 * N)[::2], np.zeros(N)[::-1], np.zeros(2 * N, np.float32),
        np.zeros(N, np.int64), np.zeros(N, ">f8"), np.zeros(N, "complex64"), np.zeros(N, "d,d"),
        np.zeros(N, object), np.array(1.0), memoryview(bytes(8 * N)), array("q", [0] * N),
        np.ma.masked_array([1.0, 2.0, 3.0]), np.zeros(N).view(np.recarray),
        array("d", [0.0] * N), memoryview(np.zeros(N)), (ctypes.c_double * N)(),
    ],
    ids=lambda other: f"{type(other).__name__} {getattr(other, 'dtype', '')}",
)  # fmt: skip
def test_nothing_else_is_taken_and_nothing_is_done(machine_code: bytes, other: object) -> None:
    calls, owner = bound(machine_code)
    owner.q[:] = 1.0, 2.0, 3.0
    assert calls.run_at(other) == NOT_TAKEN
    assert owner.q.tolist() == [1.0, 2.0, 3.0]
    # No error is left behind for somebody else to find.
    assert calls.run() == 6
    if isinstance(other, bytearray):
        other += b"x"  # the buffer was given back: its size may change


def test_wrong_numbers_of_arguments_are_refused_by_python(machine_code: bytes) -> None:
    calls, _ = bound(machine_code)
    with pytest.raises(TypeError):
        calls.run(1)  # type: ignore[call-arg]
    for arguments in ((), (1, 2)):
        with pytest.raises(TypeError):
            calls.run_at(*arguments)  # type: ignore[call-arg]


def test_a_function_alone_keeps_all_it_needs(machine_code: bytes) -> None:
    calls, owner = bound(machine_code)
    alive = weakref.ref(owner)
    run, run_at = calls.run, calls.run_at
    del calls, owner
    gc.collect()
    noise = [np.full(N, 9.0) for _ in range(1000)]
    assert run_at(np.array([1.0, 1.0, 1.0])) == 3
    del run_at
    gc.collect()
    assert run() == 3 and alive() is not None
    del run
    gc.collect()
    assert alive() is None and len(noise) == 1000


def test_nothing_leaks(machine_code: bytes) -> None:
    calls, _ = bound(machine_code)
    good, bad = np.array([1.0, 2.0, 3.0]), [1.0]
    large = np.array([1e6, 0.0, 0.0])  # its sum is no small integer, which are shared
    counts = [sys.getrefcount(x) for x in (good, bad, calls.run, calls.run_at)]
    for _ in range(1000):
        calls.run_at(good)
        calls.run_at(bad)
        calls.run_at(large)
        calls.run()
    after = [sys.getrefcount(x) for x in (good, bad, calls.run, calls.run_at)]
    assert counts == after
    resized = np.zeros(N)
    calls.run_at(resized)
    resized.resize(N + 1)  # refused while somebody else holds it


class Solving:
    """A built-in solve() whose status is the sum of q, and what it hands on."""

    def __init__(self, machine_code: bytes) -> None:
        link()
        code, self.owner = LoadedCode(machine_code), Owner()
        self.record = array("d", [0.0, 0.0])
        self.solution, self.handed_on = object(), []
        self.answer: object = object()
        address = self.owner.binding.buffer_info()[0]
        solve = python_solve(
            code, address, self.owner.q.ctypes.data, N, self.owner, self.record, self.solution,
            self._otherwise, self._refuse,
        )  # fmt: skip
        assert solve is not None
        self.solve = solve

    def _refuse(self, names: tuple[str, ...]) -> object:
        raise KeyError(*names)

    def _otherwise(self, *arguments: object) -> object:
        self.handed_on.append(arguments)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def test_solve_answers_itself_as_long_as_all_is_well(machine_code: bytes) -> None:
    solving = Solving(machine_code)
    q = np.array([1.0, 2.0, -3.0])  # their sum, the status, is 0
    before = time.perf_counter()
    assert solving.solve(q) is solving.solution
    assert 0.0 < solving.record[0] < time.perf_counter() - before
    assert solving.owner.q.tolist() == q.tolist()
    solving.record[0] = 0.0
    assert solving.solve() is solving.solution
    assert solving.record[0] > 0.0
    assert solving.handed_on == []


def test_solve_hands_on_everything_else(machine_code: bytes) -> None:
    solving = Solving(machine_code)
    failing, short = np.array([1.0, 2.0, 3.0]), np.zeros(2)
    for arguments in ((failing,), (short,), (None,), ("abc",), ([0.0, 0.0, 0.0],), (1, 2, 3)):
        assert solving.solve(*arguments) is solving.answer
        assert solving.handed_on.pop() == arguments
    good = np.zeros(N)
    assert solving.solve(good) is solving.solution
    # As long as the solution tells of a failure, it is not taken for a good one.
    solving.record[1] = 1.0
    for arguments in ((good,), ()):
        assert solving.solve(*arguments) is solving.answer
        assert solving.handed_on.pop() == arguments
    solving.answer = ValueError("no numbers")
    with pytest.raises(ValueError, match="no numbers"):
        solving.solve(good)


def test_solve_refuses_keywords_by_their_names(machine_code: bytes) -> None:
    solving = Solving(machine_code)
    for arguments in ((), (np.zeros(N),)):
        with pytest.raises(KeyError, match="('q', 'active')"):
            solving.solve(*arguments, q=1, active=[])
    assert not solving.handed_on


def test_solve_leaks_nothing(machine_code: bytes) -> None:
    solving = Solving(machine_code)
    good, bad = np.zeros(N), [1.0]
    things = (good, bad, solving.solution, solving.answer, solving.solve)
    counts = [sys.getrefcount(x) for x in things]
    for _ in range(1000):
        solving.solve(good)
        solving.solve(bad)
        solving.solve(good, bad)
        solving.solve()
        with pytest.raises(KeyError):
            solving.solve(good, active=bad)
        solving.handed_on.clear()
    assert [sys.getrefcount(x) for x in things] == counts
    alive = weakref.ref(solving.owner)
    solve = solving.solve
    del solving, things
    gc.collect()
    solve(good)
    assert alive() is not None
    del solve
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("triple", ["aarch64-linux-gnu", "riscv64-linux-gnu"])
def test_other_processors_can_have_them(triple: str) -> None:
    assert compile_for(summing(), triple, "", "")[:4] == b"\x7fELF"


def test_many_bindings_come_and_go(machine_code: bytes) -> None:
    for k in range(50):
        calls, owner = bound(machine_code)
        assert calls.run_at(np.full(N, float(k))) == N * k
        del calls, owner
    gc.collect()


def test_a_definition_outlives_the_cache_of_definitions() -> None:
    """The end of the interpreter empties the cache while functions may be left."""
    definition = python_call._definition(b"nothing", 1, 4, None)
    alive = weakref.ref(definition)
    python_call._definition.cache_clear()
    del definition
    gc.collect()
    assert alive() is not None


def test_other_packages_may_set_the_types_of_python_s_functions(
    machine_code: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """JAX sets those of PyCapsule_New, which all users of ctypes.pythonapi share."""
    python_call._new_capsule.cache_clear()
    destructor = ctypes.CFUNCTYPE(None, ctypes.py_object)
    new = ctypes.pythonapi.PyCapsule_New
    monkeypatch.setattr(new, "argtypes", [ctypes.c_void_p, ctypes.c_char_p, destructor])
    assert python_call._capsule(array("q", [1, 2])) is not None
