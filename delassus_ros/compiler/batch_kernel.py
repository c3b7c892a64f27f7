"""Calling a batch kernel: many configurations, in one thread or several, the GIL released."""

from __future__ import annotations

import ctypes
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from delassus_ros.compiler.batch import COLUMNS, ROWS
from delassus_ros.compiler.jit import LoadedCode
from delassus_ros.compiler.kernel import Array, aligned_zeros
from delassus_ros.compiler.team import processors, together

Layout = Literal["rows", "columns"]

# CFUNCTYPE releases the GIL, unlike the single-configuration call: here it is held for long.
_TYPE = ctypes.CFUNCTYPE(
    None,
    ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p,
    ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p,
)  # fmt: skip


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
        # Making an area takes as long as computing some matrices.
        self._scratch: list[Array] = []
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
        at_in, at_out, at_status = inputs.ctypes.data, _address(out), _address(status)
        at_pick = _address(pick)
        blocks = -(-n // self.width)
        threads = max(1, min(threads, n // self.width, blocks))
        if threads > 1:
            threads = min(threads, processors())
        areas = [self._area() for _ in range(threads)]
        edges = [self.width * (blocks * k // threads) for k in range(threads)] + [n]
        letters = []
        for first, last, area in zip(edges, edges[1:], areas, strict=False):
            # Every part has at least one whole vector; the last one may overlap its neighbour.
            start = min(first, n - self.width)
            letters.append(
                (
                    at_in + 8 * start * step_in, stride_in,
                    at_out + 8 * start * step_out, stride_out,
                    at_status + 4 * start, last - start,
                    at_pick, pick.shape[0], area.ctypes.data,
                )
            )  # fmt: skip
        function = self._functions[layout]
        if threads == 1:
            function(*letters[0])
        else:
            address = ctypes.cast(function, ctypes.c_void_p).value or 0
            together(address, letters[1:], lambda: function(*letters[0]))
        self._scratch += areas

    def _area(self) -> Array:
        """Return a scratch area that nobody else uses."""
        try:
            return self._scratch.pop()
        except IndexError:
            return aligned_zeros(self.work_size)


def _address(array: NDArray[Any]) -> int:
    """Return where a writeable array that is not empty begins, faster than array.ctypes does."""
    return ctypes.addressof(ctypes.c_char.from_buffer(array.data))
