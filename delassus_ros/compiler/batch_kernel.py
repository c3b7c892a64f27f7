"""Calling a batch kernel: many configurations, in one thread or several, the GIL released."""

from __future__ import annotations

import ctypes
import os
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from delassus_ros.compiler.batch import COLUMNS, ROWS
from delassus_ros.compiler.jit import LoadedCode
from delassus_ros.compiler.kernel import Array, aligned_zeros

Layout = Literal["rows", "columns"]

# CFUNCTYPE releases the GIL, unlike the single-configuration call: here it is held for long.
_TYPE = ctypes.CFUNCTYPE(
    None,
    ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p,
    ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p,
)  # fmt: skip


@lru_cache(maxsize=1)
def _pool() -> ThreadPoolExecutor:
    """Return the threads that all batch kernels share; they start when they are needed."""
    return ThreadPoolExecutor(max_workers=os.cpu_count(), thread_name_prefix="delassus_batch")


class BatchKernel:
    """Machine code that computes a vector of configurations at a time.

    Attributes
    ----------
    code : the object file.
    width : configurations per vector.
    unique : per entry of the output block, the number of its value; equal entries of a
        symmetric matrix are computed and kept once.
    work_size : doubles of scratch per thread.
    """

    def __init__(self, code: bytes, width: int, unique: NDArray[np.int64], work_size: int) -> None:
        self.code = code
        self.width = width
        self.unique = unique
        self.work_size = work_size
        self._loaded = LoadedCode(code)
        self._functions = {
            "rows": _TYPE(self._loaded.address(ROWS)),
            "columns": _TYPE(self._loaded.address(COLUMNS)),
        }

    def run(
        self,
        inputs: Array,
        out: Array,
        status: NDArray[np.int32],
        pick: NDArray[np.int64],
        layout: Layout,
        threads: int,
    ) -> None:
        """Compute all configurations; there must be at least :attr:`width` of them.

        Parameters
        ----------
        inputs : (n, inputs), or (inputs, n) for columns; contiguous.
        out : (n, len(pick)), or (len(pick), n) for columns; contiguous.
        status : (n,) receives a Status per configuration.
        pick : which values go out, as numbers from :attr:`unique`.
        """
        n = status.shape[0]
        blocks = -(-n // self.width)
        threads = max(1, min(threads, n // self.width, blocks))
        edges = [self.width * (blocks * k // threads) for k in range(threads)] + [n]
        # Every part has at least one whole vector; the last one may overlap its neighbour.
        parts = [(min(a, n - self.width), b) for a, b in zip(edges, edges[1:], strict=False)]
        # The caller's thread takes the first part; the others wait in a pool that stays.
        jobs = [
            _pool().submit(self._part, inputs, out, status, pick, layout, first, last)
            for first, last in parts[1:]
        ]
        self._part(inputs, out, status, pick, layout, *parts[0])
        for job in jobs:
            job.result()

    def _part(
        self,
        inputs: Array,
        out: Array,
        status: NDArray[np.int32],
        pick: NDArray[np.int64],
        layout: Layout,
        first: int,
        last: int,
    ) -> None:
        work = aligned_zeros(self.work_size)
        step_in = inputs.shape[1] if layout == "rows" else 1
        step_out = out.shape[1] if layout == "rows" else 1
        self._functions[layout](
            inputs.ctypes.data + 8 * first * step_in, inputs.shape[1],
            out.ctypes.data + 8 * first * step_out, out.shape[1],
            status.ctypes.data + 4 * first, last - first,
            pick.ctypes.data, pick.shape[0], work.ctypes.data,
        )  # fmt: skip
