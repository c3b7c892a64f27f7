"""Machine code as built-in functions of Python: a call costs no more than one of those.

A foreign call through ctypes looks at the types of arguments and result each time, and numpy at
slices and types when an array is written to another; together that takes longer than a small
kernel. Here a kernel's own code has functions in the C interface that built-in functions of
CPython have: one computes, another takes the input from an array first, and a third does what
:meth:`delassus_ros.BoundSolver.solve` does. They hold the GIL, as built-in functions do.
"""

from __future__ import annotations

import ctypes
import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np

from delassus_ros.compiler.codegen.llvm_text import pointer
from delassus_ros.compiler.runtime.jit import LoadedCode, provide

RUN, RUN_AT = "delassus_python_run", "delassus_python_run_at"
SOLVE, _TAKE = "delassus_python_solve", "delassus_python_take"
NOT_TAKEN = -1
"""Returned, instead of a status, for an argument that is not an array as it has to be."""

_NOARGS, _O, _FASTCALL = 4, 8, 0x82
"""METH_NOARGS, METH_O and METH_FASTCALL | METH_KEYWORDS: no argument, one, or any in a C array."""
_CLOCK = getattr(time, "CLOCK_MONOTONIC", None)
"""The clock of :func:`time.perf_counter` where clock_gettime has it; None elsewhere."""
_TYPE = object.__basicsize__ - ctypes.sizeof(ctypes.c_void_p)
"""Where an object has the address of its type: last of what all objects have."""
_CONTIGUOUS = 0x3C
"""PyBUF_C_CONTIGUOUS | PyBUF_FORMAT."""
_PYTHON = (
    "PyTuple_GetItem", "PyCapsule_GetPointer", "PyLong_FromSsize_t", "PyObject_GetBuffer",
    "PyBuffer_Release", "PyErr_Clear", "Py_IncRef", "PyObject_CallFunctionObjArgs",
    "PyObject_VectorcallDict",
)  # fmt: skip


class _MethodDef(ctypes.Structure):
    """PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


@dataclass(frozen=True)
class PythonCalls:
    """The two functions of one binding; each keeps alive what it needs.

    Attributes
    ----------
    run : computes and returns the status.
    run_at : writes its argument, a contiguous numpy array of doubles, to the input and computes;
        returns :data:`NOT_TAKEN` and does nothing for any other argument.
    """

    run: Callable[[], int]
    run_at: Callable[[object], int]


def python_calls(
    code: LoadedCode, argument: int, target: int, size: int, owner: object
) -> PythonCalls:
    """Return the built-in functions of code that has :func:`functions`.

    Parameters
    ----------
    argument : address that the code's function is called with.
    target : address of the input.
    size : number of doubles in the input.
    owner : is kept alive as long as the functions are: whatever the addresses lie in.
    """
    words = array("q", [argument, target, size * 8, id(np.ndarray)])
    state = (_capsule(words), words, code, owner)
    run = _definition(b"run", code.address(RUN), _NOARGS, None)
    run_at = _definition(b"run_at", code.address(RUN_AT), _O, None)
    new = _new_function()
    return PythonCalls(new(ctypes.byref(run), state, None), new(ctypes.byref(run_at), state, None))


def python_solve(
    code: LoadedCode,
    argument: int,
    target: int,
    size: int,
    owner: object,
    record: array[float],
    solution: object,
    otherwise: Callable[..., object],
    refuse: Callable[[tuple[str, ...]], object],
) -> Callable[..., object] | None:
    """Return the built-in function ``solve([q])``; None on a platform without its clock.

    It computes and returns `solution`. Whenever anything is not as in most calls it returns what
    `otherwise` does with the same arguments: if q is not an array as it has to be, if a status is
    not 0, or if the record says that the last one was not. The docstring is that of `otherwise`.
    With keywords it does what `refuse` does with their names.

    Parameters
    ----------
    code, argument, target, size, owner : see :func:`python_calls`.
    record : two numbers: it writes the time [s] that a computation took to the first; `otherwise`
        has to keep in the second whether `solution` tells of a failure (1), or not (0).
    """
    if _CLOCK is None:
        return None
    words = array("q", [argument, target, size * 8, id(np.ndarray), record.buffer_info()[0]])
    state = (_capsule(words), solution, otherwise, refuse, words, code, owner, record)
    # Python takes the signature from the lines up to the dashes.
    doc = f"solve(q=None, /)\n--\n\n{otherwise.__doc__}".encode()
    solve = _definition(b"solve", code.address(SOLVE), _FASTCALL, doc)
    return _new_function()(ctypes.byref(solve), state, None)


def _capsule(words: array[int]) -> object:
    return _new_capsule()(words.buffer_info()[0], None, None)


@cache
def _definition(name: bytes, address: int, flags: int, doc: bytes | None) -> _MethodDef:
    """Return a definition for good: Python 3.10 looks at it after it let go of the rest."""
    return _MethodDef(name, address, flags, doc)


@lru_cache(maxsize=1)
def link() -> None:
    """Tell LLVM where Python's functions are, before code with :func:`functions` is loaded."""
    for name in _PYTHON:
        function = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p)
        provide(name, function.value or 0)


@lru_cache(maxsize=1)
def _new_capsule() -> Callable[..., object]:
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p] * 3
    return new


@lru_cache(maxsize=1)
def _new_function() -> Callable[..., Callable[..., int]]:
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.POINTER(_MethodDef), ctypes.py_object, ctypes.c_void_p]
    return new


def _word(name: str, base: str, k: int) -> str:
    """Return the IR that loads word k at an address as %name."""
    w = pointer("i64")
    return f"""  %{name}.base = inttoptr i64 {base} to {w}
  %{name}.place = getelementptr i64, {w} %{name}.base, i64 {k}
  %{name} = load i64, {w} %{name}.place, align 8"""


_WORDS = """  %capsule = call i64 @PyTuple_GetItem(i64 %self, i64 0)
  %words = call i64 @PyCapsule_GetPointer(i64 %capsule, i64 0)"""
"""The IR that finds the words of :func:`python_calls`."""


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
{"" if _CLOCK is None else _solve(function, _CLOCK)}"""


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
    """Return the IR of the function of :func:`python_solve`; a timespec is two words."""
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
