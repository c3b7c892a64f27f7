"""Machine code of any function over scalars: named blocks of inputs, one block of results."""

from __future__ import annotations

import threading
from array import array
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from delassus.arguments import count, numbers
from delassus.compiler.cache.cached_code import (
    CachedCode,
    Sample,
    check_samples,
    row_samples,
    stored_batch,
)
from delassus.compiler.codegen import batch
from delassus.compiler.codegen.emit import KERNEL, functions
from delassus.compiler.codegen.target import host_width
from delassus.compiler.codegen.writer import declarations
from delassus.compiler.ir.input_rules import InputRules
from delassus.compiler.ir.program import Program
from delassus.compiler.ir.trace import Trace
from delassus.compiler.passes.limbs import Likeness
from delassus.compiler.passes.order import depth_first
from delassus.compiler.passes.partition import single_parts
from delassus.compiler.passes.vectorize import batch_program, vector_program
from delassus.compiler.runtime.batch_kernel import BatchKernel
from delassus.compiler.runtime.jit import LoadedCode, compile_ir, joined
from delassus.compiler.runtime.kernel import aligned_zeros
from delassus.compiler.runtime.python_call import around, link, python_calls
from delassus.errors import CompilerError, InputError, NumericalError
from delassus.model.couplings import follow, open_coupling
from delassus.model.robot import Robot
from delassus.model.spatial import Array
from delassus.scalars.counts import OperationCount
from delassus.scalars.functions import Vector
from delassus.scalars.graph import Graph
from delassus.scalars.ports import Inputs, Port, Status, block_size, views

_STATUSES = {status.value: status for status in Status}
"""To look a member up by its value in the enumeration takes longer than a small function."""


class _Code:
    """Machine code of a function.

    Parameters
    ----------
    sizes : of inputs, results and work area.
    """

    def __init__(
        self, code: bytes, sizes: tuple[int, int, int], operations: OperationCount
    ) -> None:
        self.code, self.sizes, self.operations = code, sizes, operations
        link()
        self.loaded = LoadedCode(code)
        self.address = self.loaded.address(KERNEL)

    def parts(self) -> tuple[bytes, dict[str, Any]]:
        return self.code, {"sizes": self.sizes[1:], "operations": asdict(self.operations)}


class BoundFunction:
    """A compiled function with preallocated buffers, for control loops; one per thread.

    A call creates no array. Inputs that were never written are NaN, and set the status NOT_FINITE.

    Attributes
    ----------
    inputs : arrays by port name, views of one block, in order; to be filled before a call.
    result : the results of the last call, flat; NaN before the first one and unless the status of
        the last one was OK.
    address : of the function ``int32_t f(const double *in, double *out, double *work)``, for calls
        without Python; valid while this object lives.
    work : the function's work area, one per thread.
    """

    def __init__(self, code: _Code, ports: Sequence[Port]) -> None:
        block_in, self.result, work = map(aligned_zeros, code.sizes)
        self.address, self.work = code.address, work
        block_in.fill(np.nan)
        self.result.fill(np.nan)
        self.inputs: dict[str, Array] = views(block_in, ports)
        addresses = [block.ctypes.data for block in (block_in, self.result, work)]
        # A function has no matrix of which rows are taken.
        binding = array("q", [*addresses, 0, 0, 0, 0, 0])
        owner = (block_in, self.result, work, binding)
        place, size = binding.buffer_info()[0], block_in.size
        self._run = python_calls(code.loaded, place, addresses[0], size, owner).run

    def __call__(self) -> Status:
        """Compute :attr:`result` from :attr:`inputs`, and return the status."""
        status = self._run()
        if status:
            self.result.fill(np.nan)
        return _STATUSES[status]


class CompiledFunction:
    """A function that was traced once and compiled; any thread may call it.

    Attributes
    ----------
    inputs : what it takes, in order.
    results : number of results.
    operations : operation count of a call.

    Parameters
    ----------
    function : inputs by name, each a flat list of scalars → list of scalars.
    inputs : the ports that it takes.
    key : what the function depends on besides this package's source; with it the machine code is
        kept in the disk cache (:mod:`delassus.compiler.cache.disk`), else in memory only.
    robot : whose couplings the input ``q`` has to satisfy; the status is NOT_CLOSED otherwise.
    likeness : parts of the function that are alike and may be computed side by side; follows from
        what `key` holds.

    Raises
    ------
    CompilerError
        If it returns nothing, LLVM fails, or the code differs from the function on floats.
    """

    operations: OperationCount

    def __init__(
        self,
        function: Callable[[Inputs], Vector],
        inputs: Sequence[Port],
        key: bytes | None = None,
        robot: Robot | None = None,
        likeness: Likeness | None = None,
    ) -> None:
        self._function, self._robot = function, robot
        self.inputs, self._likeness = tuple(inputs), likeness or Likeness()
        self._rules = InputRules.of(self.inputs, robot)
        self._taken = block_size(self.inputs)
        ports = repr([(port.name, port.shape) for port in self.inputs]).encode()
        stored = CachedCode(
            "function", ports + b"\0" + (key or b""), _Code.parts, self._load, self._result
        )
        place = None if key is None else stored.key()
        self._code = stored.kept(place, self._compile)
        self.operations, self.results = self._code.operations, self._code.sizes[1]
        self._keyed = stored.origin, place is not None
        self._lock, self._local = threading.Lock(), threading.local()
        self._batch: BatchKernel | None = None

    def _load(self, code: bytes, description: dict[str, Any]) -> _Code:
        operations = OperationCount(**description["operations"])
        results, work = map(int, description["sizes"])
        return _Code(code, (self._taken, results, work), operations)

    def _random_inputs(self, seed: int, count: int = 1) -> Array:
        """Return random blocks of inputs (count, inputs) at which couplings hold."""
        blocks = np.random.default_rng(seed).uniform(-1.0, 1.0, (count, self._taken))
        if self._robot is not None:
            first, count = self._rules.first, self._rules.count
            for block in blocks:
                follow(self._robot, block[first : first + count], ())
        return blocks

    def _sample(self, code: _Code, seed: int) -> Sample:
        """Return what the code makes of random inputs."""
        bound = BoundFunction(code, self.inputs)
        for name, values in views(self._random_inputs(seed)[0], self.inputs).items():
            bound.inputs[name][...] = values
        return Sample(bound.inputs, bound(), {"result": bound.result})

    def _result(self, code: _Code, seed: int) -> bytes:
        return self._sample(code, seed).result()

    def _compile(self) -> _Code:
        traced, outputs = self._traced()
        program = vector_program(traced, list(range(outputs)), self._likeness)
        texts, work = functions(single_parts(depth_first(program)), KERNEL)
        code = joined([compile_ir("\n".join([*texts, declarations(), ""])), around()])
        sizes = self._taken, outputs, work
        compiled = _Code(code, sizes, traced.operations)
        self._check("a compiled function", [self._sample(compiled, 0)])
        return compiled

    def program(self) -> Program:
        """Return the program that is compiled, traced anew."""
        traced, outputs = self._traced()
        return vector_program(traced, list(range(outputs)), self._likeness)

    def _traced(self) -> tuple[Trace, int]:
        """Return the trace of the function, and the number of its results."""
        graph = Graph()
        results = self._function(graph.input_block(self.inputs))
        outputs = [graph.index_of(value) for value in results]
        if not outputs:
            raise CompilerError("a function without results cannot be compiled")
        return Trace.of(graph, outputs, self._rules), len(outputs)

    def _check(self, what: str, run: Sequence[Sample]) -> None:
        """Compare with the function on floats."""
        check_samples(what, run, lambda values: {"result": self._function(values)})

    def _matched(self, values: Sequence[ArrayLike]) -> Sequence[ArrayLike]:
        """Return the arguments, as many as ports."""
        if len(values) != len(self.inputs):
            names = ", ".join(port.name for port in self.inputs)
            raise InputError(f"got {len(values)} arrays, expected one for each of: {names}")
        return values

    def __call__(self, *values: ArrayLike) -> tuple[Array, Status]:
        """Return the results and the status; unless it is OK, the results are NaN.

        Parameters
        ----------
        values : one array per port, in order; in its shape or flat.

        Raises
        ------
        InputError
            If there are more or fewer, or one is no numbers or has another shape; names it.
        """
        bound = self._of_thread()
        for (name, block), value in zip(bound.inputs.items(), self._matched(values), strict=True):
            array = numbers(name, value)
            if array.shape not in (block.shape, (block.size,)):
                raise InputError(f"{name!r} has shape {array.shape}, expected {block.shape}")
            block[...] = array.reshape(block.shape)
        status = bound()
        return bound.result.copy(), status

    def _of_thread(self) -> BoundFunction:
        """Return the function with buffers of this thread's own."""
        bound: BoundFunction | None = getattr(self._local, "bound", None)
        if bound is None:
            bound = self._local.bound = self.bind()
        return bound

    def compute(self, failure: str, *values: ArrayLike) -> Array:
        """Return the results of a call.

        Parameters
        ----------
        failure : what cannot be done unless the status is OK, for the message.
        values : as for a call.

        Raises
        ------
        InputError
            As for a call.
        NumericalError
            Unless the status is OK; names the reason, and the coupling that does not hold at q.
        """
        results, status = self(*values)
        if status is not Status.OK:
            reason = status.name.lower().replace("_", " ")
            if status is Status.NOT_CLOSED and self._robot is not None:
                q = self._of_thread().inputs["q"]
                reason = f"{reason}: {open_coupling(self._robot, q.tolist())}"
            raise NumericalError(f"{failure}: {reason}")
        return results

    def batch(self, *values: ArrayLike, threads: int = 1) -> tuple[Array, NDArray[np.int32]]:
        """Return results (N, results) and statuses (N,); rows without status OK are NaN.

        Parameters
        ----------
        values : one array per port, (N, size), or (size,) for all N.
        threads : number of threads.

        Raises
        ------
        InputError
            If an argument is no numbers or of wrong shape, or the numbers of rows differ; names
            the argument.
        """
        kernel = self._batch_kernel()
        inputs = self._stacked(values)
        n = len(inputs)
        results, status = np.empty((n, kernel.unique.shape[0])), np.zeros(n, dtype=np.int32)
        if n:
            kernel.run(inputs, results, status, kernel.unique, "rows", count("threads", threads))
        results[status != Status.OK] = np.nan
        return results, status

    def _stacked(self, values: Sequence[ArrayLike]) -> Array:
        """Return the arguments of a batch side by side (N, inputs)."""
        arrays = []
        for port, value in zip(self.inputs, self._matched(values), strict=True):
            array = numbers(port.name, value)
            if array.shape == port.shape:
                array = array.reshape(1, port.size)
            if array.ndim < 2 or array.shape[1:] not in (port.shape, (port.size,)):
                raise InputError(
                    f"{port.name!r} has shape {array.shape}, expected (N, {port.size}) or "
                    f"{port.shape}"
                )
            arrays.append(array.reshape(len(array), port.size))
        counts = {len(array) for array in arrays} - {1} or {1}
        if len(counts) > 1:
            raise InputError(f"inputs differ in the number of configurations: {sorted(counts)}")
        (n,) = counts
        return np.concatenate([np.broadcast_to(a, (n, a.shape[1])) for a in arrays], axis=1)

    def _batch_kernel(self) -> BatchKernel:
        """Return the kernel of the batch, compiled at the first call."""
        with self._lock:
            if self._batch is None:
                origin, keyed = self._keyed
                results = self._code.sizes[1]
                stored = stored_batch("batch function", origin, results, self._batch_result)
                key = stored.key() if keyed else None
                self._batch = stored.kept(key, self._compile_batch)
            return self._batch

    def _compile_batch(self) -> BatchKernel:
        traced, outputs = self._traced()
        module = batch.module(
            batch_program(traced, list(range(outputs))), self._taken, host_width()
        )
        unique = np.array(module.unique, np.int64)
        kernel = BatchKernel(compile_ir(module.ir), module.width, unique, module.work_size)
        self._check("a compiled batch function", self._batch_samples(kernel, 0))
        return kernel

    def _batch_samples(self, kernel: BatchKernel, seed: int) -> list[Sample]:
        rows = self._random_inputs(seed, kernel.width)
        return row_samples(kernel, rows, self.inputs, [Port("result", (self._code.sizes[1],))])

    def _batch_result(self, kernel: BatchKernel, seed: int) -> bytes:
        return b"".join(sample.result() for sample in self._batch_samples(kernel, seed))

    def bind(self) -> BoundFunction:
        """Return the function with buffers for a control loop."""
        return BoundFunction(self._code, self.inputs)
