"""Calling a batch kernel: many configurations, in one thread or several, the GIL released."""

from __future__ import annotations

import ctypes
import os
import threading
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import lru_cache
from typing import Any, Literal

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


# A fork leaves its child a pool without its threads.
os.register_at_fork(after_in_child=_pool.cache_clear)


class _Scratch(threading.local):
    """A scratch area per thread: making one takes as long as computing some matrices."""

    def __init__(self, size: int) -> None:
        self.work = aligned_zeros(size)
        self.address = self.work.ctypes.data


class BatchKernel:
    """Machine code that computes a vector of configurations at a time.

    Attributes
    ----------
    code : an object file, or several :func:`~delassus_ros.compiler.jit.joined`.
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
        self._scratch = _Scratch(work_size)
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
        n, stride_in, stride_out = status.shape[0], inputs.shape[1], out.shape[1]
        step_in, step_out = (stride_in, stride_out) if layout == "rows" else (1, 1)
        function, picked = self._functions[layout], pick.shape[0]
        at_in, at_out, at_status = inputs.ctypes.data, _address(out), _address(status)
        at_pick = _address(pick)

        def part(first: int, last: int, held: object = (inputs, out, status, pick)) -> None:
            """Compute a part; as long as one is to come, the arrays stay."""
            function(
                at_in + 8 * first * step_in, stride_in,
                at_out + 8 * first * step_out, stride_out,
                at_status + 4 * first, last - first,
                at_pick, picked, self._scratch.address,
            )  # fmt: skip

        blocks = -(-n // self.width)
        threads = max(1, min(threads, n // self.width, blocks))
        edges = [self.width * (blocks * k // threads) for k in range(threads)] + [n]
        # Every part has at least one whole vector; the last one may overlap its neighbour.
        parts = [(min(a, n - self.width), b) for a, b in zip(edges, edges[1:], strict=False)]
        jobs: list[Future[None]] = []
        try:
            # The caller's thread takes the first part; the others wait in a pool that stays.
            for each in parts[1:]:
                jobs.append(_pool().submit(part, *each))
            part(*parts[0])
            for job in jobs:
                job.result()
        except BaseException:
            # Interrupted, say: nothing is written any more once the call is over.
            for job in jobs:
                job.cancel()
            wait(jobs)
            raise


def _address(array: NDArray[Any]) -> int:
    """Return where a writeable array that is not empty begins, faster than array.ctypes does."""
    return ctypes.addressof(ctypes.c_char.from_buffer(array.data))
