"""Machine code of modules in the subset of Python that has loops, kept in the disk cache."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from delassus_ros.compiler.cache.cached_code import CachedCode
from delassus_ros.compiler.codegen.loops import modules_ir
from delassus_ros.compiler.runtime.jit import LoadedCode, compile_ir, optimized


class CompiledLoops:
    """One public function of such modules, as machine code.

    Attributes
    ----------
    code : the object file.
    call : the function: integers, floats and addresses of arrays → an integer. The interpreter's
        lock is released during a call.
    """

    def __init__(self, code: bytes, public: str, types: Sequence[Any]) -> None:
        self.code, self._loaded = code, LoadedCode(code)
        prototype = ctypes.CFUNCTYPE(ctypes.c_int64, *types)
        self.call: Callable[..., int] = prototype(self._loaded.address(public))


def compiled_loops(
    modules: Sequence[ModuleType],
    public: str,
    types: Sequence[Any],
    sample: Callable[[Callable[..., int], int], bytes],
) -> CompiledLoops:
    """Return the machine code of a function, from the disk cache or made anew.

    Parameters
    ----------
    modules : those that the function needs, and its own as the last one.
    public : name of the function.
    types : of its parameters, in the words of ctypes.
    sample : the bytes of a result at sample inputs by their seed; stored code has to give the same
        before it is used.

    Raises
    ------
    CompilerError
        If a module is not in the subset, or LLVM refuses the code.
    """
    text = modules_ir(modules, public)
    stored = CachedCode[CompiledLoops](
        what=f"{modules[-1].__name__}.{public}",
        origin=text.encode(),
        parts=lambda made: (made.code, {}),
        load=lambda code, _: CompiledLoops(code, public, types),
        result=lambda made, seed: sample(made.call, seed),
    )
    return stored.kept(
        stored.key(), lambda: CompiledLoops(compile_ir(optimized(text)), public, types)
    )
