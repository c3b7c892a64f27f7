"""Machine code of any function over scalars: named blocks of inputs, one block of results."""

from __future__ import annotations

import ctypes
import hashlib
import json
import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict

import numpy as np
from numpy.typing import ArrayLike

from delassus_ros.algorithms.base import Inputs, Status
from delassus_ros.algorithms.scalars import Vector
from delassus_ros.arguments import numbers
from delassus_ros.compiler import cache
from delassus_ros.compiler.emit import KERNEL, functions
from delassus_ros.compiler.graph import Graph
from delassus_ros.compiler.jit import LoadedCode, compile_ir, host_identity
from delassus_ros.compiler.kernel import Array, aligned_zeros
from delassus_ros.compiler.samples import SELF_CHECK
from delassus_ros.compiler.schedule import scalar_program
from delassus_ros.compiler.sources import package_source
from delassus_ros.compiler.trace import OperationCount, Trace
from delassus_ros.compiler.writer import declarations
from delassus_ros.errors import CompilerError, InputError, NumericalError
from delassus_ros.problem import Port

_TYPE = ctypes.PYFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_REPLAYED = 3
"""Results kept with a function in the disk cache, which it has to reproduce bit by bit."""
_log = logging.getLogger(__name__)


class CompiledFunction:
    """A function that was traced once and compiled; any thread may call it.

    Attributes
    ----------
    inputs : what it takes, in order.
    operations : operation count of a call.

    Parameters
    ----------
    function : inputs by name, each a flat list of scalars → list of scalars.
    inputs : the ports that it takes.
    key : what the function depends on besides this package's source; with it the machine code is
        kept in the disk cache (:mod:`delassus_ros.compiler.cache`), else in memory only.

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
    ) -> None:
        self.inputs = tuple(inputs)
        self._taken = sum(port.size for port in self.inputs)
        self._local = threading.local()
        place = None if key is None else self._place(key)
        payload = None if place is None else cache.load(place)
        if payload is not None:
            try:
                self._restore(payload)
                return
            except CompilerError as error:
                _log.warning("cached function compiled anew: %s", error)
        code = self._compile(function)
        self._check(function)
        if place is not None:
            sizes = [self._given, self._work, asdict(self.operations)]
            description = json.dumps(sizes).encode()
            results = [self._result(seed) for seed in range(_REPLAYED)]
            cache.store(place, cache.pack(description, code, *results))

    def _place(self, key: bytes) -> str:
        """Return the name in the cache."""
        ports = repr([(port.name, port.shape) for port in self.inputs]).encode()
        digest = hashlib.sha256(b"function")
        for part in (key, ports, package_source().digest, host_identity().encode()):
            digest.update(hashlib.sha256(part).digest())
        return f"{digest.hexdigest()}-function"

    def _compile(self, function: Callable[[Inputs], Vector]) -> bytes:
        graph, given, position = Graph(), {}, 0
        for port in self.inputs:
            given[port.name] = [graph.input(position + k) for k in range(port.size)]
            position += port.size
        outputs = [graph.index_of(value) for value in function(given)]
        if not outputs:
            raise CompilerError("a function without results cannot be compiled")
        live, guards = graph.needed(outputs)
        traced = Trace(graph, live, outputs, guards, position)
        program = scalar_program(traced, list(range(len(outputs))))
        texts, work = functions(program, KERNEL)
        code = compile_ir("\n".join([*texts, declarations(), ""]))
        self._load(code, len(outputs), work, traced.operations)
        return code

    def _check(self, function: Callable[[Inputs], Vector]) -> None:
        """Compare with the function on floats."""
        block_in, block_out, _ = self._buffers()
        status = self._run_at_random(0)
        given, position = {}, 0
        for port in self.inputs:
            given[port.name] = block_in[position : position + port.size].tolist()
            position += port.size
        try:
            expected = np.array([float(value) for value in function(given)])
        except (NumericalError, ZeroDivisionError):
            if status == Status.OK:
                raise CompilerError("compiled code succeeds where it fails on floats") from None
            return
        error = np.linalg.norm(block_out - expected)
        if status != Status.OK or not error <= SELF_CHECK * np.linalg.norm(expected):
            raise CompilerError(
                f"a compiled function differs from itself on floats by {error:.1e}, status "
                f"{status}"
            )

    def _load(self, code: bytes, given: int, work: int, operations: OperationCount) -> None:
        self._given, self._work, self.operations = given, work, operations
        self._loaded = LoadedCode(code)
        self._call = _TYPE(self._loaded.address(KERNEL))

    def _restore(self, payload: bytes) -> None:
        """Load what was stored, and replay its results.

        Raises
        ------
        CompilerError
            If the payload is damaged, or does not reproduce them.
        """
        try:
            description, code, *results = cache.unpack(payload)
            given, work, operations = json.loads(description)
            if len(results) != _REPLAYED:
                raise ValueError(f"{len(results)} stored results, expected {_REPLAYED}")
            self._load(code, int(given), int(work), OperationCount(**operations))
        except (ValueError, TypeError) as error:
            raise CompilerError(f"the compiled function is damaged: {error}") from error
        if results != [self._result(seed) for seed in range(_REPLAYED)]:
            raise CompilerError("the compiled function does not reproduce its stored results")

    def _result(self, seed: int) -> bytes:
        """Return status and results at random inputs as bytes."""
        status = self._run_at_random(seed)
        return int(status).to_bytes(4, "little") + self._buffers()[1].tobytes()

    def _run_at_random(self, seed: int) -> Status:
        block_in, block_out, _ = self._buffers()
        block_in[:] = np.random.default_rng(seed).uniform(-1.0, 1.0, self._taken)
        block_out[:] = 0.0
        return self._run()

    def _run(self) -> Status:
        return Status(self._call(*(block.ctypes.data for block in self._buffers())))

    def _buffers(self) -> tuple[Array, Array, Array]:
        """Return this thread's inputs, results and work area."""
        found: tuple[Array, Array, Array] | None = getattr(self._local, "buffers", None)
        if found is None:
            sizes = self._taken, self._given, self._work
            found = self._local.buffers = tuple(map(aligned_zeros, sizes))
        return found

    def __call__(self, *values: ArrayLike) -> tuple[Array, Status]:
        """Return the results and the status; unless it is OK, the results are not valid.

        Parameters
        ----------
        values : one array per port, in order; in its shape or flat.

        Raises
        ------
        InputError
            If there are more or fewer, or one is no numbers or has another shape; names it.
        """
        if len(values) != len(self.inputs):
            names = ", ".join(port.name for port in self.inputs)
            raise InputError(f"got {len(values)} arrays, expected one for each of: {names}")
        block_in, block_out, _ = self._buffers()
        position = 0
        for port, value in zip(self.inputs, values, strict=True):
            array = numbers(port.name, value)
            if array.shape not in (port.shape, (port.size,)):
                raise InputError(
                    f"{port.name!r} has shape {array.shape}, expected {port.shape}"
                )
            block_in[position : position + port.size] = array.ravel()
            position += port.size
        status = self._run()
        return block_out.copy(), status
