"""Kernels: a computation with named input and output blocks, and bindings that own buffers."""

from __future__ import annotations

import ctypes
import logging
from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from delassus.algorithms.registry import NumericAlgorithm
from delassus.compiler.codegen.emit import WORK_SIZE
from delassus.compiler.codegen.python_call import NOT_TAKEN
from delassus.compiler.ir.input_rules import InputRules
from delassus.compiler.ir.program import CACHE_LINE_BYTES
from delassus.compiler.runtime.jit import LoadedCode
from delassus.compiler.runtime.python_call import link, python_calls, python_solve
from delassus.errors import AlgorithmError
from delassus.model.spatial import Array
from delassus.problem import Problem
from delassus.scalars.counts import OperationCount
from delassus.scalars.ports import Arrays, Port, Status, block_size, views

_log = logging.getLogger(__name__)
_ACTIVE_ROWS = 6
"""Entry of a binding that holds the number of active rows."""


class BoundKernel(ABC):
    """A kernel with its buffers; one binding per thread.

    Attributes
    ----------
    inputs : writable arrays by port name; fill them, then call :attr:`run`.
    outputs : arrays by port name, valid after :attr:`run` returned 0.
    run : computes; returns the :class:`~delassus.scalars.ports.Status` as an int.
    run_at : writes a contiguous array of doubles to the input ``q``, then computes; returns
        :data:`~delassus.compiler.runtime.python_call.NOT_TAKEN` for any other argument.
    """

    run: Callable[[], int]
    run_at: Callable[[object], int]

    def __init__(self, inputs: Arrays, outputs: Arrays) -> None:
        self.inputs: Mapping[str, Array] = MappingProxyType(dict(inputs))
        self.outputs: Mapping[str, Array] = MappingProxyType(dict(outputs))
        full = outputs["G"]
        m = full.shape[0]
        self._active = aligned_zeros(m * m)
        # One view per size, made now, so that choosing rows makes none.
        self._views = [self._active[: k * k].reshape(k, k) for k in range(m)] + [full]

    @abstractmethod
    def select(self, rows: Sequence[int]) -> Array:
        """Choose the rows (and columns) of G that :attr:`run` also leaves side by side.

        Returns
        -------
        The (k, k) array that holds them after each run; G itself if all rows are chosen.
        """

    def solve(
        self,
        record: array[float],
        solution: object,
        otherwise: Callable[..., object],
        refuse: Callable[[tuple[str, ...]], object],
    ) -> Callable[..., object] | None:
        """Return :func:`~delassus.compiler.runtime.python_call.python_solve` of this kernel.

        None for one that is not machine code, or where the platform does not offer it.
        """
        return None


class Kernel(ABC):
    """The computation of one (problem, algorithm); re-entrant.

    Attributes
    ----------
    inputs, outputs : the ports, in the order of the blocks.
    rules : what the inputs have to be.
    operations : operation count; None for back ends that cannot be counted.
    """

    operations: OperationCount | None

    def __init__(self, problem: Problem) -> None:
        self.rules = InputRules.of(problem.inputs, problem.robot)
        self.inputs: tuple[Port, ...] = problem.inputs
        self.outputs: tuple[Port, ...] = problem.outputs

    @abstractmethod
    def bind(self) -> BoundKernel:
        """Return a binding with fresh buffers."""


class CompiledKernel(Kernel):
    """Machine code of a traced algorithm.

    Attributes
    ----------
    work_size : doubles of scratch that a call needs.
    """

    operations: OperationCount

    def __init__(self, problem: Problem, code: bytes, operations: OperationCount) -> None:
        super().__init__(problem)
        self.operations = operations
        self.code = code
        link()
        self._loaded = LoadedCode(code)
        self.work_size = ctypes.CFUNCTYPE(ctypes.c_int64)(self._loaded.address(WORK_SIZE))()

    def bind(self) -> BoundKernel:
        """Return a binding with fresh buffers.

        A call to it holds the GIL: to release it for a microsecond costs milliseconds to get it
        back when another thread is busy.
        """
        return _CompiledBinding(self)


class _CompiledBinding(BoundKernel):
    def __init__(self, kernel: CompiledKernel) -> None:
        block_in, inputs = _block(kernel.inputs)
        block_out, outputs = _block(kernel.outputs)
        super().__init__(inputs, outputs)
        G = outputs["G"]
        m = G.shape[0]
        self._rows = array("q", range(m))
        work = aligned_zeros(kernel.work_size)
        self._binding = array(
            "q",
            [
                block_in.ctypes.data, block_out.ctypes.data, work.ctypes.data, G.ctypes.data, m,
                self._rows.buffer_info()[0], m, self._active.ctypes.data,
            ],
        )  # fmt: skip
        q = inputs["q"]
        owner = (kernel, self._binding, self._rows, self._active, block_in, block_out, work)
        binding = self._binding.buffer_info()[0]
        self._call = (kernel._loaded, binding, q.ctypes.data, q.size, owner)
        calls = python_calls(*self._call)
        self.run, self.run_at = calls.run, calls.run_at

    def solve(
        self,
        record: array[float],
        solution: object,
        otherwise: Callable[..., object],
        refuse: Callable[[tuple[str, ...]], object],
    ) -> Callable[..., object] | None:
        """Return solve([q]) as a built-in function; see the base class."""
        return python_solve(*self._call, record, solution, otherwise, refuse)

    def select(self, rows: Sequence[int]) -> Array:
        """Choose rows; see the base class."""
        for i, row in enumerate(rows):
            self._rows[i] = row
        self._binding[_ACTIVE_ROWS] = len(rows)
        return self._views[len(rows)]


class NumericKernel(Kernel):
    """A back end that computes on arrays."""

    operations = None

    def __init__(self, problem: Problem, algorithm: NumericAlgorithm) -> None:
        super().__init__(problem)
        self._algorithm = algorithm
        self._problem = problem
        self._known_errors: set[type[Exception]] = set()

    def bind(self) -> BoundKernel:
        """Return a binding with fresh buffers and a freshly prepared back end.

        Raises
        ------
        AlgorithmError
            If the back end cannot be prepared for the problem; carries what it raised.
        """
        try:
            compute = self._algorithm.prepare(self._problem)
        except Exception as error:
            # Code of a third party, which may raise anything.
            raise AlgorithmError(
                f"algorithm {self._algorithm.name!r} cannot be prepared for this problem: "
                f"{type(error).__name__}: {error}"
            ) from error
        return _NumericBinding(self, compute)

    def report(self, error: Exception) -> None:
        """Log what a back end raised, each kind of error once: this may happen at every call."""
        if type(error) not in self._known_errors:
            self._known_errors.add(type(error))
            name = self._algorithm.name
            _log.error("algorithm %r failed; further errors of this kind are not logged", name,
                       exc_info=error)  # fmt: skip


class _NumericBinding(BoundKernel):
    def __init__(self, kernel: NumericKernel, compute: Callable[[Arrays, Arrays], Status]) -> None:
        super().__init__(_block(kernel.inputs)[1], _block(kernel.outputs)[1])
        self._report, self._rules = kernel.report, kernel.rules
        self._compute = compute
        self._index: tuple[NDArray[np.intp], ...] | None = None
        self.run, self.run_at = self._run, self._run_at

    def select(self, rows: Sequence[int]) -> Array:
        """Choose rows; see the base class."""
        everything = len(rows) == self.outputs["G"].shape[0]
        self._index = None if everything else np.ix_(rows, rows)
        return self._views[len(rows)]

    def _run(self) -> int:
        block = np.concatenate([values.ravel() for values in self.inputs.values()])
        wrong = int(self._rules.statuses(block[np.newaxis])[0])
        if wrong:
            return wrong
        try:
            status = int(Status(self._compute(self.inputs, self.outputs)))
        except Exception as error:
            # Code of a third party: a control loop gets a status for any exception.
            self._report(error)
            return int(Status.FAILED)
        if status == Status.OK:
            if not all(np.isfinite(values).all() for values in self.outputs.values()):
                return int(Status.NOT_FINITE)
        if self._index is not None and status == Status.OK:
            self._views[len(self._index[0])][...] = self.outputs["G"][self._index]
        return status

    def _run_at(self, q: object) -> int:
        held = self.inputs["q"]
        if not isinstance(q, np.ndarray) or q.dtype != held.dtype or q.shape != held.shape:
            return NOT_TAKEN
        held[...] = q
        return self._run()


def aligned_zeros(size: int) -> Array:
    """Return `size` zero doubles that start on a line of the cache."""
    raw = np.zeros(size * 8 + CACHE_LINE_BYTES, dtype=np.uint8)
    start = -raw.ctypes.data % CACHE_LINE_BYTES
    return raw[start : start + size * 8].view(np.float64)


def _block(ports: tuple[Port, ...]) -> tuple[Array, dict[str, Array]]:
    """Return one contiguous buffer for all ports, and each port's view of it."""
    block = aligned_zeros(block_size(ports))
    return block, views(block, ports)
