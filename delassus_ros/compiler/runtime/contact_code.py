"""The compiled function of constrained forward dynamics."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache

from delassus_ros.compiler.codegen import contact_code
from delassus_ros.compiler.runtime.jit import LoadedCode, compile_ir


@lru_cache(maxsize=1)
def constrained() -> tuple[Callable[[int], int], LoadedCode]:
    """Return the function, which holds the GIL, and the code that it is in; compiled once."""
    code = LoadedCode(compile_ir(contact_code.module()))
    function = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(
        code.address(contact_code.CONSTRAINED)
    )
    return function, code
