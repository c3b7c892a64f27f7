"""Machine code as built-in functions of Python: a call costs no more than one of those.

A foreign call through ctypes looks at the types of arguments and result each time, and numpy at
slices and types when an array is written to another; together that takes longer than a small
kernel. Here a kernel's own code has two functions in the C interface that built-in functions of
CPython have: one computes, the other takes the input from an array first. They hold the GIL, as
built-in functions do.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache

from delassus_ros.compiler.ir import pointer
from delassus_ros.compiler.jit import LoadedCode, provide

RUN, RUN_AT = "delassus_python_run", "delassus_python_run_at"
NOT_TAKEN = -1
"""Returned, instead of a status, for an argument that is not an array as it has to be."""

_NOARGS, _O = 4, 8
"""METH_NOARGS and METH_O: no argument, or one."""
_CONTIGUOUS = 0x3C
"""PyBUF_C_CONTIGUOUS | PyBUF_FORMAT."""
_PYTHON = (
    "PyTuple_GetItem", "PyCapsule_GetPointer", "PyLong_FromSsize_t", "PyObject_GetBuffer",
    "PyBuffer_Release", "PyErr_Clear",
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
    run_at : writes its argument, a contiguous array of doubles, to the input and computes;
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
    words = array("q", [argument, target, size * 8])
    capsule = _new_capsule()(words.buffer_info()[0], None, None)
    state = (capsule, words, code, owner)
    run = _definition(b"run", code.address(RUN), _NOARGS)
    run_at = _definition(b"run_at", code.address(RUN_AT), _O)
    new = _new_function()
    return PythonCalls(new(ctypes.byref(run), state, None), new(ctypes.byref(run_at), state, None))


@cache
def _definition(name: bytes, address: int, flags: int) -> _MethodDef:
    """Return a definition for good: Python 3.10 looks at it after it let go of the rest."""
    return _MethodDef(name, address, flags, None)


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
    """Return the IR of the two functions for ``int32_t function(int64_t *)`` of the same module.

    Objects are addresses in it. A Py_buffer is ten words: 0 the data, 2 their length in bytes,
    4 readonly and ndim as two ints, 5 the format, text.
    """
    c, i = pointer("i8"), pointer("i32")
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
  %buffer = alloca [10 x i64], align 8
  %view = ptrtoint {pointer("[10 x i64]")} %buffer to i64
  %failed = call i32 @PyObject_GetBuffer(i64 %object, i64 %view, i32 {_CONTIGUOUS})
  %got = icmp eq i32 %failed, 0
  br i1 %got, label %check, label %clear
check:
{_WORDS}
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
{_compute(function)}
clear:
  call void @PyErr_Clear()
  br label %not.taken
refuse:
  call void @PyBuffer_Release(i64 %view)
  br label %not.taken
not.taken:
  %other = call i64 @PyLong_FromSsize_t(i64 {NOT_TAKEN})
  ret i64 %other
}}
"""
