"""Kernels: a computation with named input and output blocks, and bindings that own buffers."""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from delassus_ros.algorithms.base import Arrays, NumericAlgorithm, Status
from delassus_ros.compiler.emit import KERNEL, SLICE
from delassus_ros.compiler.jit import LoadedCode
from delassus_ros.compiler.trace import OperationCount
from delassus_ros.problem import Port, Problem

Array = NDArray[np.float64]

# PYFUNCTYPE keeps the GIL: releasing it for a microsecond costs milliseconds to get it back
# when another thread is busy.
_KERNEL_TYPE = ctypes.PYFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_SLICE_TYPE = ctypes.PYFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p
)


class BoundKernel:
    """A kernel with buffers of its own; one per thread.

    Attributes
    ----------
    inputs : writable arrays by port name; fill them, then call :attr:`run`.
    outputs : arrays by port name, valid after :attr:`run` returned 0.
    run : computes; returns the :class:`~delassus_ros.algorithms.base.Status` as an int.
    kernel : the kernel; kept alive by this reference.
    """

    def __init__(
        self, kernel: Kernel, inputs: Arrays, outputs: Arrays, run: Callable[[], int]
    ) -> None:
        self.kernel = kernel
        self.inputs: Mapping[str, Array] = MappingProxyType(dict(inputs))
        self.outputs: Mapping[str, Array] = MappingProxyType(dict(outputs))
        self.run = run


class Kernel(ABC):
    """The computation of one (problem, algorithm); re-entrant.

    Attributes
    ----------
    inputs, outputs : the ports, in the order of the blocks.
    operations : operation count; None for back ends that cannot be counted.
    slice : address-based routine that copies active rows and columns of a matrix, see
        :func:`delassus_ros.compiler.emit.module`; None where the kernel is not compiled.
    """

    operations: OperationCount | None
    slice: Callable[[int, int, int, int, int], None] | None

    def __init__(self, problem: Problem) -> None:
        self.inputs: tuple[Port, ...] = problem.inputs
        self.outputs: tuple[Port, ...] = problem.outputs

    @abstractmethod
    def bind(self) -> BoundKernel:
        """Return a binding with fresh buffers."""


class CompiledKernel(Kernel):
    """Machine code of a traced algorithm."""

    operations: OperationCount

    def __init__(self, problem: Problem, code: bytes, operations: OperationCount) -> None:
        super().__init__(problem)
        self.operations = operations
        self.code = code
        self._loaded = LoadedCode(code)
        self._function = _KERNEL_TYPE(self._loaded.address(KERNEL))
        self.slice = _SLICE_TYPE(self._loaded.address(SLICE))

    def bind(self) -> BoundKernel:
        """Return a binding with fresh buffers; a call to it holds the GIL."""
        block_in, inputs = _block(self.inputs)
        block_out, outputs = _block(self.outputs)
        # The work area is part of the C ABI; straight-line kernels need none.
        run = partial(self._function, block_in.ctypes.data, block_out.ctypes.data, 0)
        return BoundKernel(self, inputs, outputs, run)


class NumericKernel(Kernel):
    """A back end that computes on arrays."""

    operations = None
    slice = None

    def __init__(self, problem: Problem, algorithm: NumericAlgorithm) -> None:
        super().__init__(problem)
        self._algorithm = algorithm
        self._problem = problem

    def bind(self) -> BoundKernel:
        """Return a binding with fresh buffers and a back end of its own."""
        _, inputs = _block(self.inputs)
        _, outputs = _block(self.outputs)
        compute = self._algorithm.prepare(self._problem)

        def run() -> int:
            for values in inputs.values():
                if not np.isfinite(values).all():
                    return int(Status.NOT_FINITE)
            return int(compute(inputs, outputs))

        return BoundKernel(self, inputs, outputs, run)


def aligned_zeros(size: int) -> Array:
    """Return `size` zero doubles that start on a cache line (64 bytes)."""
    raw = np.zeros(size * 8 + 64, dtype=np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size * 8].view(np.float64)


def _block(ports: tuple[Port, ...]) -> tuple[Array, dict[str, Array]]:
    """Return one contiguous buffer for all ports, and each port's view of it."""
    block = aligned_zeros(sum(port.size for port in ports))
    views, start = {}, 0
    for port in ports:
        views[port.name] = block[start : start + port.size].reshape(port.shape)
        start += port.size
    return block, views
