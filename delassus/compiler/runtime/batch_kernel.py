"""Calling a batch kernel: many configurations, in one thread or several, the GIL released."""

from __future__ import annotations

import ctypes
import struct
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from delassus.compiler.codegen.batch import COLUMNS, ROWS
from delassus.compiler.runtime.jit import LoadedCode
from delassus.compiler.runtime.kernel import aligned_zeros
from delassus.compiler.runtime.team import processors, together
from delassus.compiler.runtime.team_loops import Job
from delassus.model.spatial import Array

Layout = Literal["rows", "columns"]

_PART_VECTORS = 2
"""Vectors that a thread takes at least at a time."""
_JOB = struct.Struct(f"{len(Job)}q")

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
    code : an object file, or several :func:`~delassus.compiler.runtime.jit.joined`.
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
        self._areas: list[_Area] = []
        self._loaded = LoadedCode(code)
        self._addresses = {
            "rows": self._loaded.address(ROWS), "columns": self._loaded.address(COLUMNS)
        }  # fmt: skip
        self._functions = {key: _TYPE(value) for key, value in self._addresses.items()}

    def run(
        self,
        inputs: Array,
        out: Array,
        status: NDArray[np.int32],
        pick: NDArray[np.int64],
        layout: Layout,
        threads: int,
    ) -> None:
        """Compute all configurations, at least one.

        Parameters
        ----------
        inputs : (n, inputs), or (inputs, n) for columns; contiguous.
        out : (n, len(pick)), or (len(pick), n) for columns; contiguous.
        status : (n,) receives a Status per configuration.
        pick : which values go out, as numbers from :attr:`unique`.
        """
        n = status.shape[0]
        if n < self.width:
            self._run_few(inputs, out, status, pick, layout)
            return
        stride_in, stride_out = inputs.shape[1], out.shape[1]
        function, part = self._functions[layout], _PART_VECTORS * self.width
        at_in, at_out = _address(inputs), _address(out)
        at_status, at_pick = _address(status), _address(pick)
        threads = min(threads, n // part)
        if threads > 1:
            threads = min(threads, processors())
        areas = [self._area() for _ in range(max(threads, 1))]
        if threads > 1:
            step_in, step_out = (stride_in, stride_out) if layout == "rows" else (1, 1)
            _JOB.pack_into(
                areas[0].job, 0, self._addresses[layout], at_in, stride_in, step_in,
                at_out, stride_out, step_out, at_status, n, at_pick, pick.shape[0],
                self.width, part, 2 * threads, 0,
            )  # fmt: skip
            together(ctypes.addressof(areas[0].job), [area.address for area in areas])
        else:
            function(
                at_in, stride_in, at_out, stride_out, at_status, n, at_pick, pick.shape[0],
                areas[0].address,
            )  # fmt: skip
        self._areas += areas

    def _run_few(
        self,
        inputs: Array,
        out: Array,
        status: NDArray[np.int32],
        pick: NDArray[np.int64],
        layout: Layout,
    ) -> None:
        """Compute less than a vector of configurations: the last one is repeated."""
        n, width, rows = status.shape[0], self.width, layout == "rows"
        indices = np.minimum(np.arange(width), n - 1)
        repeated = np.ascontiguousarray(np.take(inputs, indices, axis=0 if rows else 1))
        results = np.empty((width, pick.shape[0]) if rows else (pick.shape[0], width))
        statuses = np.zeros(width, dtype=np.int32)
        self.run(repeated, results, statuses, pick, layout, 1)
        status[:] = statuses[:n]
        out[...] = results[:n] if rows else results[:, :n]

    def _area(self) -> _Area:
        """Return a work area that no other call uses."""
        try:
            return self._areas.pop()
        except IndexError:
            return _Area(self.work_size)


class _Area:
    """A work area and its address, and room for a job: to make them takes as long as matrices."""

    __slots__ = ("_memory", "address", "job")

    def __init__(self, size: int) -> None:
        self._memory = aligned_zeros(size)
        self.address = self._memory.ctypes.data
        self.job = (ctypes.c_int64 * len(Job))()


def _address(array: NDArray[Any]) -> int:
    """Return where a contiguous array begins; mostly faster than array.ctypes does."""
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(array.data))
    except (TypeError, ValueError):  # read-only, or empty
        return array.ctypes.data
