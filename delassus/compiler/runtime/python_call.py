"""Machine code as built-in functions of Python: a call costs no more than one of those.

A foreign call through ctypes looks at the types of arguments and result each time, and numpy at
slices and types when an array is written to another; together that takes longer than a small
kernel. Here a kernel's own code has functions in the C interface that built-in functions of
CPython have: one computes, another takes the input from an array first, and a third does what
:meth:`delassus.BoundSolver.solve` does. They hold the GIL, as built-in functions do.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np

from delassus.compiler.codegen import emit
from delassus.compiler.codegen.python_call import CLOCK, RUN, RUN_AT, SOLVE
from delassus.compiler.runtime.jit import LoadedCode, compile_ir, provide

_NOARGS, _O, _FASTCALL = 4, 8, 0x82
"""METH_NOARGS, METH_O and METH_FASTCALL | METH_KEYWORDS: no argument, one, or any in a C array."""
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
        returns :data:`~delassus.compiler.codegen.python_call.NOT_TAKEN` and does nothing for
        any other argument.
    """

    run: Callable[[], int]
    run_at: Callable[[object], int]


@lru_cache(maxsize=1)
def around() -> bytes:
    """Return the machine code around every kernel that Python calls; joined to the kernel's."""
    return compile_ir(emit.around())


def python_calls(
    code: LoadedCode, argument: int, target: int, size: int, owner: object
) -> PythonCalls:
    """Return the built-in functions of a kernel's code.

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
        has to keep in the second whether the status of `solution` is a failure (1), or not (0).
    """
    if CLOCK is None:
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
    """Return a definition that is never freed.

    Python reads the definition of a function while it frees the function, and at the end of the
    interpreter some functions are freed after this module and its cache.
    """
    definition = _MethodDef(name, address, flags, doc)
    keep = ctypes.PYFUNCTYPE(None, ctypes.py_object)(("Py_IncRef", ctypes.pythonapi))
    keep(definition)
    return definition


@lru_cache(maxsize=1)
def link() -> None:
    """Tell LLVM where Python's functions are, before code that calls them is loaded."""
    for name in _PYTHON:
        function = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p)
        provide(name, function.value or 0)


@lru_cache(maxsize=1)
def _new_capsule() -> Callable[..., object]:
    # A prototype of its own: the attributes of ctypes.pythonapi's functions are shared by all
    # packages of the process, and others set other types.
    kind = ctypes.PYFUNCTYPE(ctypes.py_object, *[ctypes.c_void_p] * 3)
    return kind(("PyCapsule_New", ctypes.pythonapi))


@lru_cache(maxsize=1)
def _new_function() -> Callable[..., Callable[..., int]]:
    types = (ctypes.POINTER(_MethodDef), ctypes.py_object, ctypes.c_void_p)
    kind = ctypes.PYFUNCTYPE(ctypes.py_object, *types)
    return kind(("PyCFunction_NewEx", ctypes.pythonapi))
