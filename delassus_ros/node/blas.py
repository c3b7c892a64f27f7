"""Threads of the library that numpy's linear algebra runs in."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

from delassus_ros.node.outcome import Outcome

_OPENBLAS = "openblas"
_OTHERS = ("libmkl", "libblis")
"""Parts of the names of other libraries that have threads of their own."""
_CALLS = tuple(
    f"{prefix}openblas_set_num_threads{suffix}"
    for prefix in ("", "scipy_")
    for suffix in ("", "64_", "_64")
)


def limit_blas_threads() -> Outcome:
    """Have numpy's linear algebra compute in the calling thread.

    For matrices as small as these its worker threads help nobody, and waiting for them takes
    milliseconds when the machine is busy. A reference BLAS, as Debian's numpy has it by default,
    has none.
    """
    openblas = _loaded(_OPENBLAS)
    others = [path for word in _OTHERS for path in _loaded(word)]
    unlimited = [path for path in openblas if not _limit(path)] + others
    if unlimited and os.environ.get("OMP_NUM_THREADS") != "1":
        return Outcome(
            False,
            f"linear algebra may use threads of its own: {Path(unlimited[0]).name} is loaded, "
            "whose threads the node cannot limit; set OMP_NUM_THREADS=1 in the environment of "
            "the process",
        )
    if openblas or others:
        return Outcome(True, "linear algebra runs in the calling thread")
    return Outcome(True, "linear algebra: no library known to have threads is loaded")


def _limit(path: str) -> bool:
    """Limit an OpenBLAS to the calling thread; return whether it has a call for that."""
    library = ctypes.CDLL(path)
    change = next((found for name in _CALLS if (found := getattr(library, name, None))), None)
    if change is None:
        return False
    change.argtypes, change.restype = [ctypes.c_int], None
    change(1)
    return True


def _loaded(word: str) -> list[str]:
    """Return the shared libraries in this process whose file name contains a word."""
    try:
        lines = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    columns = (line.split(maxsplit=5) for line in lines)
    paths = {column[5] for column in columns if len(column) == 6}
    return [path for path in sorted(paths) if word in Path(path).name.lower()]
