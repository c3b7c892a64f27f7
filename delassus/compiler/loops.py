"""Machine code of modules in the subset of Python that has loops, kept in the disk cache."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

from delassus.compiler.cache.cached_code import CachedCode
from delassus.compiler.codegen.loops import modules_ir
from delassus.compiler.runtime.jit import LoadedCode, compile_ir, optimized


class CompiledLoops:
    """The public functions of such modules, as machine code.

    Attributes
    ----------
    code : the object file.
    calls : the functions by name: integers, floats and addresses of arrays → an integer. The
        interpreter's lock is released during a call, unless `holds_gil`.
    """

    def __init__(self, code: bytes, public: Mapping[str, Sequence[Any]], holds_gil: bool) -> None:
        self.code, self._loaded = code, LoadedCode(code)
        kind = ctypes.PYFUNCTYPE if holds_gil else ctypes.CFUNCTYPE
        self.calls: dict[str, Callable[..., int]] = {
            name: kind(ctypes.c_int64, *types)(self._loaded.address(name))
            for name, types in public.items()
        }


def compiled_loops(
    modules: Sequence[ModuleType],
    public: Mapping[str, Sequence[Any]],
    sample: Callable[[Mapping[str, Callable[..., int]], int], bytes],
    holds_gil: bool = False,
) -> CompiledLoops:
    """Return the machine code of functions, from the disk cache or made anew.

    Parameters
    ----------
    modules : modules that define the functions and all functions that these call; the name of
        the last module is the name of the code in the cache.
    public : the functions' names, with the types of their parameters in the words of ctypes.
    sample : the bytes of results of the functions at sample inputs by their seed; stored code has
        to give the same before it is used.
    holds_gil : whether a call holds the interpreter's lock, as suits a microsecond of work.

    Raises
    ------
    CompilerError
        If a module is not in the subset, or LLVM refuses the code.
    """
    text = modules_ir(modules, public)
    stored = CachedCode[CompiledLoops](
        what=modules[-1].__name__,
        origin=text.encode(),
        parts=lambda made: (made.code, {}),
        load=lambda code, _: CompiledLoops(code, public, holds_gil),
        result=lambda made, seed: sample(made.calls, seed),
    )
    return stored.kept(
        stored.key(), lambda: CompiledLoops(compile_ir(optimized(text)), public, holds_gil)
    )
