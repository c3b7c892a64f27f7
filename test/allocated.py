"""Memory in use on the heaps of this process, exact except for Python's small blocks.

Machine code and what else is mapped apart is not among it.
"""

from __future__ import annotations

import ctypes
import gc
import sys

_FIELDS = (
    "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks",
    "keepcost",
)  # fmt: skip
_BLOCK = 64  # bytes taken for each; Python tells the number of its blocks, of 16 to 512


class _Info(ctypes.Structure):
    """struct mallinfo2, since glibc 2.33."""

    _fields_ = tuple((name, ctypes.c_size_t) for name in _FIELDS)


def allocated() -> int:
    """Return what C's and Python's heaps have given out and not got back [bytes].

    The resident memory of a process would not tell: it grows by megabytes at a time when a heap
    in which others have left gaps is extended, and not at all while there are gaps to fill.
    """
    gc.collect()
    information = ctypes.CDLL(None).mallinfo2
    information.restype = _Info
    now = information()
    return now.uordblks + now.hblkhd + _BLOCK * sys.getallocatedblocks()
