"""The LLVM IR of functions with the C interface of CPython's built-in functions.

One computes, another takes the input from an array first, and a third does what
:meth:`delassus.BoundSolver.solve` does; :mod:`delassus.compiler.runtime.python_call` makes
Python objects of them.
"""

from __future__ import annotations

import ctypes
import time

from delassus.compiler.codegen.llvm_text import pointer

RUN, RUN_AT = "delassus_python_run", "delassus_python_run_at"
SOLVE, _TAKE = "delassus_python_solve", "delassus_python_take"
NOT_TAKEN = -1
"""Returned, instead of a status, for an argument that is not an array as it has to be."""

CLOCK = getattr(time, "CLOCK_MONOTONIC", None)
"""The clock of :func:`time.perf_counter` where clock_gettime has it; None elsewhere."""
_TYPE = object.__basicsize__ - ctypes.sizeof(ctypes.c_void_p)
"""Where an object has the address of its type: last of what all objects have."""
_CONTIGUOUS = 0x3C
"""PyBUF_C_CONTIGUOUS | PyBUF_FORMAT."""


def _word(name: str, base: str, k: int) -> str:
    """Return the IR that loads word k at an address as %name."""
    w = pointer("i64")
    return f"""  %{name}.base = inttoptr i64 {base} to {w}
  %{name}.place = getelementptr i64, {w} %{name}.base, i64 {k}
  %{name} = load i64, {w} %{name}.place, align 8"""


_WORDS = """  %capsule = call i64 @PyTuple_GetItem(i64 %self, i64 0)
  %words = call i64 @PyCapsule_GetPointer(i64 %capsule, i64 0)"""
"""The IR that finds the words in the capsule of a built-in function."""


def _compute(function: str) -> str:
    """Return the IR that calls a function and returns its status."""
    w = pointer("i64")
    return f"""{_word("address", "%words", 0)}
  %argument = inttoptr i64 %address to {w}
  %status = call i32 @{function}({w} %argument)
  %wide = sext i32 %status to i64
  %result = call i64 @PyLong_FromSsize_t(i64 %wide)
  ret i64 %result"""


def functions(function: str) -> str:
    """Return the IR of the functions for ``int32_t function(int64_t *)`` of the same module.

    Objects are addresses in it.
    """
    return f"""
declare i64 @PyTuple_GetItem(i64, i64)
declare i64 @PyCapsule_GetPointer(i64, i64)
declare i64 @PyLong_FromSsize_t(i64)
declare i32 @PyObject_GetBuffer(i64, i64, i32)
declare void @PyBuffer_Release(i64)
declare void @PyErr_Clear()
declare i64 @memmove(i64, i64, i64)

define i64 @{RUN}(i64 %self, i64 %nothing) {{
{_WORDS}
{_compute(function)}
}}

define i64 @{RUN_AT}(i64 %self, i64 %object) {{
entry:
{_WORDS}
  %taken = call i1 @{_TAKE}(i64 %words, i64 %object)
  br i1 %taken, label %compute, label %refuse
compute:
{_compute(function)}
refuse:
  %other = call i64 @PyLong_FromSsize_t(i64 {NOT_TAKEN})
  ret i64 %other
}}
{_take()}
{"" if CLOCK is None else _solve(function, CLOCK)}"""


def _take() -> str:
    """Return the IR of the function that copies an array of doubles to the input, if it is one.

    Not one of a subclass, which may mean something else by its numbers, as masked arrays do.
    A Py_buffer is ten words: 0 the data, 2 their length in bytes, 4 readonly and ndim as two
    ints, 5 the format, text.
    """
    c, i = pointer("i8"), pointer("i32")
    return f"""
define internal i1 @{_TAKE}(i64 %words, i64 %object) {{
entry:
  %buffer = alloca [10 x i64], align 8
  %view = ptrtoint {pointer("[10 x i64]")} %buffer to i64
  %typed = add i64 %object, {_TYPE}
{_word("type", "%typed", 0)}
{_word("array", "%words", 3)}
  %is.array = icmp eq i64 %type, %array
  br i1 %is.array, label %view.it, label %no
view.it:
  %failed = call i32 @PyObject_GetBuffer(i64 %object, i64 %view, i32 {_CONTIGUOUS})
  %got = icmp eq i32 %failed, 0
  br i1 %got, label %check, label %clear
check:
{_word("length", "%view", 2)}
{_word("expected", "%words", 2)}
{_word("format", "%view", 5)}
  %ints = inttoptr i64 %view to {i}
  %ndim.place = getelementptr i32, {i} %ints, i64 9
  %ndim = load i32, {i} %ndim.place, align 4
  %flat = icmp eq i32 %ndim, 1
  %fits = icmp eq i64 %length, %expected
  %told = icmp ne i64 %format, 0
  %fits.flat = and i1 %fits, %flat
  %so.far = and i1 %fits.flat, %told
  br i1 %so.far, label %read, label %refuse
read:
  %text = inttoptr i64 %format to {c}
  %first = load i8, {c} %text, align 1
  %second.place = getelementptr i8, {c} %text, i64 1
  %second = load i8, {c} %second.place, align 1
  %double = icmp eq i8 %first, {ord("d")}
  %alone = icmp eq i8 %second, 0
  %doubles = and i1 %double, %alone
  br i1 %doubles, label %take, label %refuse
take:
{_word("source", "%view", 0)}
{_word("target", "%words", 1)}
  %copied = call i64 @memmove(i64 %target, i64 %source, i64 %expected)
  call void @PyBuffer_Release(i64 %view)
  ret i1 true
clear:
  call void @PyErr_Clear()
  br label %no
no:
  ret i1 false
refuse:
  call void @PyBuffer_Release(i64 %view)
  ret i1 false
}}"""


def _solve(function: str, clock: int) -> str:
    """Return the IR of the function :data:`SOLVE`; a timespec is two words."""
    d, w, t = pointer(), pointer("i64"), pointer("[4 x i64]")
    return f"""
declare void @Py_IncRef(i64)
declare i64 @PyObject_CallFunctionObjArgs(i64, ...)
declare i64 @PyObject_VectorcallDict(i64, i64, i64, i64)
declare i32 @clock_gettime(i32, i64)

define i64 @{SOLVE}(i64 %self, i64 %given, i64 %count, i64 %keywords) {{
entry:
  %times = alloca [4 x i64], align 8
  %begin = ptrtoint {t} %times to i64
  %end = add i64 %begin, 16
{_WORDS}
{_word("record", "%words", 4)}
  %taken.time = inttoptr i64 %record to {d}
  %failed.place = getelementptr double, {d} %taken.time, i64 1
  %failed = load double, {d} %failed.place, align 8
  %well = fcmp oeq double %failed, 0.0
  %arguments = inttoptr i64 %given to {w}
  %plain = icmp eq i64 %keywords, 0
  br i1 %plain, label %known, label %refuse
known:
  br i1 %well, label %look, label %otherwise
look:
  switch i64 %count, label %otherwise [ i64 0, label %compute
                                        i64 1, label %take ]
take:
  %q = load i64, {w} %arguments, align 8
  %taken = call i1 @{_TAKE}(i64 %words, i64 %q)
  br i1 %taken, label %compute, label %otherwise
compute:
  %told.begin = call i32 @clock_gettime(i32 {clock}, i64 %begin)
{_word("address", "%words", 0)}
  %argument = inttoptr i64 %address to {w}
  %status = call i32 @{function}({w} %argument)
  %told.end = call i32 @clock_gettime(i32 {clock}, i64 %end)
  %ok = icmp eq i32 %status, 0
  br i1 %ok, label %done, label %otherwise
done:
{_word("s0", "%begin", 0)}
{_word("n0", "%begin", 1)}
{_word("s1", "%begin", 2)}
{_word("n1", "%begin", 3)}
  %s = sub i64 %s1, %s0
  %n = sub i64 %n1, %n0
  %ns = mul i64 %s, 1000000000
  %elapsed = add i64 %ns, %n
  %nanoseconds = sitofp i64 %elapsed to double
  %seconds = fdiv double %nanoseconds, 1.0e9
  store double %seconds, {d} %taken.time, align 8
  %solution = call i64 @PyTuple_GetItem(i64 %self, i64 1)
  call void @Py_IncRef(i64 %solution)
  ret i64 %solution
otherwise:
  %python = call i64 @PyTuple_GetItem(i64 %self, i64 2)
  %other = call i64 @PyObject_VectorcallDict(i64 %python, i64 %given, i64 %count, i64 0)
  ret i64 %other
refuse:
  %refusing = call i64 @PyTuple_GetItem(i64 %self, i64 3)
  %none = call i64 (i64, ...) @PyObject_CallFunctionObjArgs(i64 %refusing, i64 %keywords, i64 0)
  ret i64 %none
}}
"""
