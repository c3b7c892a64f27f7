"""Machine code of any function over scalars: named blocks of inputs, one block of results."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from delassus_ros.algorithms.base import Inputs, Status
from delassus_ros.algorithms.scalars import Vector
from delassus_ros.compiler.emit import KERNEL, KernelWriter, declarations
from delassus_ros.compiler.graph import Graph, needed
from delassus_ros.compiler.jit import LoadedCode, compile_ir
from delassus_ros.compiler.kernel import Array, aligned_zeros
from delassus_ros.compiler.schedule import scalar_program
from delassus_ros.compiler.trace import OperationCount, Trace
from delassus_ros.errors import CompilerError, InputError
from delassus_ros.problem import Port

_TYPE = ctypes.PYFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


class CompiledFunction:
    """A function that was traced once and compiled; for one thread.

    Attributes
    ----------
    inputs : what it takes, in order.
    operations : operation count of a call.

    Parameters
    ----------
    function : inputs by name, each a flat list of scalars → list of scalars.
    inputs : the ports that it takes.

    Raises
    ------
    CompilerError
        If it returns nothing, or LLVM fails.
    """

    def __init__(self, function: Callable[[Inputs], Vector], inputs: Sequence[Port]) -> None:
        self.inputs = tuple(inputs)
        graph, given, position = Graph(), {}, 0
        for port in self.inputs:
            given[port.name] = [graph.input(position + k) for k in range(port.size)]
            position += port.size
        outputs = [graph.index_of(value) for value in function(given)]
        if not outputs:
            raise CompilerError("a function without results cannot be compiled")
        live, guards = needed(graph, outputs)
        traced = Trace(graph, live, outputs, guards)
        self.operations: OperationCount = traced.operations
        program = scalar_program(traced, list(range(len(outputs))))
        text = [KernelWriter(program).text(KERNEL), declarations(), ""]
        self._loaded = LoadedCode(compile_ir("\n".join(text)))
        self._call = _TYPE(self._loaded.address(KERNEL))
        self._in, self._out = aligned_zeros(position), aligned_zeros(len(outputs))

    def __call__(self, *values: ArrayLike) -> tuple[Array, Status]:
        """Return the results and the status; unless it is OK, the results are not valid.

        Parameters
        ----------
        values : one array per port, in order.

        Raises
        ------
        InputError
            If there are more or fewer, or one has another size; names it.
        """
        if len(values) != len(self.inputs):
            names = ", ".join(port.name for port in self.inputs)
            raise InputError(f"got {len(values)} arrays, expected one for each of: {names}")
        position = 0
        for port, value in zip(self.inputs, values, strict=True):
            array = np.asarray(value, dtype=np.float64)
            if array.size != port.size:
                raise InputError(f"{port.name!r} has {array.size} numbers, expected {port.size}")
            self._in[position : position + port.size] = array.ravel()
            position += port.size
        status = Status(self._call(self._in.ctypes.data, self._out.ctypes.data, None))
        return self._out.copy(), status
