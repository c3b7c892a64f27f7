"""Machine code that is kept from one process to the next: its key, its bytes, and its check.

A fresh kernel is compared at sample inputs with its algorithm on floats; a stored one is replayed
at the same.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np

from delassus.compiler.cache import disk
from delassus.compiler.cache.sources import Source, package_source
from delassus.compiler.codegen.target import host_identity
from delassus.compiler.runtime import packing
from delassus.compiler.runtime.batch_kernel import BatchKernel
from delassus.compiler.runtime.kernel import BoundKernel, CompiledKernel
from delassus.errors import CompilerError, NumericalError
from delassus.model.spatial import Array
from delassus.problem import Problem
from delassus.samples import random_inputs
from delassus.scalars.counts import OperationCount
from delassus.scalars.ports import Inputs, Port, Status, block_size, views

_REPLAYED_RESULTS = 3
"""Results kept with code."""
_log = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True)
class CachedCode(Generic[T]):
    """How one piece of machine code becomes bytes and is taken from them.

    Attributes
    ----------
    what : name of the kind of code, for the log.
    origin : canonical bytes of the source of the code.
    parts : the code and, in JSON's types, what else it takes to load it.
    load : makes it of both.
    result : what it returns at the sample inputs of a seed.
    """

    what: str
    origin: bytes
    parts: Callable[[T], tuple[bytes, dict[str, Any]]]
    load: Callable[[bytes, dict[str, Any]], T]
    result: Callable[[T, int], bytes]

    def key(self, *more: bytes, source: Source | None = None) -> str | None:
        """Return its cache key, or None if a source has changed since this process began.

        The process may run what the file held before, and would keep that as the new code.

        Parameters
        ----------
        more : what it depends on besides the origin, the processor and this package's source.
        source : a further source that it depends on.
        """
        sources = [package_source()] + ([] if source is None else [source])
        if not all(code.is_what_runs for code in sources):
            _log.info("%s not cached: its source has changed since this process began", self.what)
            return None
        digest = hashlib.sha256(self._digest)
        for part in (*more, *(code.digest for code in sources), host_identity().encode()):
            digest.update(hashlib.sha256(part).digest())
        return digest.hexdigest()

    def kept(self, key: str | None, make: Callable[[], T]) -> T:
        """Return what the disk cache has, else what `make` returns, which is then stored."""
        made = self.found(key)
        if made is None:
            made = make()
            if key is not None:
                disk.store(key, self.packed(made))
        return made

    def found(self, key: str | None) -> T | None:
        """Return what the disk cache has, or None if it is to be made, or made anew."""
        payload = None if key is None else disk.load(key)
        if payload is None:
            return None
        try:
            return self.unpacked(payload)
        except CompilerError as error:
            _log.warning("cached %s compiled anew: %s", self.what, error)
            return None

    def packed(self, made: T) -> bytes:
        """Return it as bytes: hash of the origin, description, code, then results."""
        code, description = self.parts(made)
        results = (self.result(made, seed) for seed in range(1, 1 + _REPLAYED_RESULTS))
        return packing.pack(self._digest, json.dumps(description).encode(), code, *results)

    def unpacked(self, payload: bytes) -> T:
        """Return what was :meth:`packed`, once it has reproduced its results bit by bit.

        Raises
        ------
        CompilerError
            If the payload is damaged or of something else, or it does not reproduce them. It is
            machine code: load only what this user's own processes wrote.
        """
        try:
            digest, description, code, *results = packing.unpack(payload)
            if len(results) != _REPLAYED_RESULTS:
                raise ValueError(f"{len(results)} stored results, expected {_REPLAYED_RESULTS}")
            if digest != self._digest:
                raise CompilerError(f"the compiled code is not the {self.what} for this problem")
            loaded = self.load(code, json.loads(description))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise CompilerError(f"the compiled code is damaged: {error}") from error
        for seed, result in enumerate(results, start=1):
            if self.result(loaded, seed) != result:
                raise CompilerError("the compiled code does not reproduce its stored results")
        return loaded

    @property
    def _digest(self) -> bytes:
        return hashlib.sha256(self.what.encode() + b"\0" + self.origin).digest()


def stored_kernel(problem: Problem, algorithm: str) -> CachedCode[CompiledKernel]:
    """Return how the kernel of a problem and the algorithm of this name is kept."""

    def parts(kernel: CompiledKernel) -> tuple[bytes, dict[str, Any]]:
        return kernel.code, asdict(kernel.operations)

    def load(code: bytes, operations: dict[str, Any]) -> CompiledKernel:
        return CompiledKernel(problem, code, OperationCount(**operations))

    what, result = f"kernel of {algorithm}", partial(_result, problem)
    return CachedCode(what, problem.canonical_bytes, parts, load, result)


def stored_batch_kernel(problem: Problem, algorithm: str) -> CachedCode[BatchKernel]:
    """Return how the batch kernel is kept; see :func:`stored_kernel`."""
    size = block_size(problem.outputs)
    what, result = f"batch kernel of {algorithm}", partial(_result, problem)
    return stored_batch(what, problem.canonical_bytes, size, result)


def stored_batch(
    what: str, origin: bytes, size: int, result: Callable[[BatchKernel, int], bytes]
) -> CachedCode[BatchKernel]:
    """Return how a batch kernel with `size` output entries is kept; see :class:`CachedCode`."""

    def parts(kernel: BatchKernel) -> tuple[bytes, dict[str, Any]]:
        sizes = {"width": kernel.width, "work_size": kernel.work_size}
        return kernel.code, {**sizes, "unique": kernel.unique.tolist()}

    def load(code: bytes, description: dict[str, Any]) -> BatchKernel:
        unique = np.array(description.pop("unique"), dtype=np.int64)
        if unique.shape != (size,):
            raise ValueError(f"{unique.size} output entries, expected {size}")
        return BatchKernel(code, unique=unique, **description)

    return CachedCode(what, origin, parts, load, result)


def _result(problem: Problem, kernel: CompiledKernel | BatchKernel, seed: int) -> bytes:
    return b"".join(sample.result() for sample in samples(kernel, problem, seed))


SELF_CHECK = 1e-8
"""Largest relative difference of fresh code from what it was compiled from, on floats. It is far
above rounding, to allow for badly conditioned robots, and far below any error of code
generation."""


_ROUNDING_ERROR = 1e-12
"""What a number may differ by that is zero but for rounding, as where nothing moves along a row;
of G, which is of second order in rows, the square."""
R = TypeVar("R")


def on_floats(compute: Callable[..., R], *arguments: object) -> R | None:
    """Return what `compute` returns; None where it fails, as compiled code then has to."""
    try:
        return compute(*arguments)
    except (NumericalError, ZeroDivisionError, OverflowError):
        return None


def difference(found: Array, expected: Array, squared: bool = False) -> float:
    """Return by how much results differ; 0 if by no more than fresh code may.

    Parameters
    ----------
    squared : they are of second order in the rows of contacts.
    """
    error = float(np.linalg.norm(found - expected))
    rounding = _ROUNDING_ERROR**2 if squared else _ROUNDING_ERROR
    bound = SELF_CHECK * float(np.linalg.norm(expected)) + rounding
    return 0.0 if error <= bound else error


def check_against_floats(
    what: str,
    status: int,
    found: Mapping[str, Array],
    compute: Callable[[], Mapping[str, Any]],
) -> None:
    """Compare what fresh code returned with what it was compiled from, run on floats.

    Parameters
    ----------
    what : the code, for the message.
    status : what it returned, a :class:`~delassus.scalars.ports.Status`.
    found : its results by name.
    compute : returns the same on floats, or fails as the code then has to.

    Raises
    ------
    CompilerError
        If they differ.
    """
    computed = on_floats(compute)
    if computed is None:
        # Not positive definite at this configuration, say: the code has to notice too.
        if status == Status.OK:
            raise CompilerError(f"{what} succeeds where it fails on floats")
        return
    expected = {name: np.asarray(computed[name], dtype=np.float64) for name in found}
    if status == Status.NOT_FINITE and not all(np.isfinite(e).all() for e in expected.values()):
        # Both overflow: there is nothing to compare.
        return
    for name, result in found.items():
        # G is of second order in rows.
        error = difference(result, expected[name], squared=name == "G")
        if status != Status.OK or error:
            raise CompilerError(
                f"{what} differs from itself on floats: output {name!r}, status {status}, "
                f"difference {error:.1e}"
            )


@dataclass(frozen=True, eq=False)
class Sample:
    """One configuration: what went in and what came out.

    Attributes
    ----------
    inputs, outputs : arrays by port name; outputs hold anything where the status is not OK.
    status : a :class:`~delassus.scalars.ports.Status` as an int.
    """

    inputs: dict[str, Array]
    status: int
    outputs: dict[str, Array]

    def result(self) -> bytes:
        """Return status and outputs as bytes."""
        arrays = b"".join(array.tobytes() for array in self.outputs.values())
        return self.status.to_bytes(4, "little") + arrays


def check_samples(
    what: str, run: Iterable[Sample], compute: Callable[[Inputs], Mapping[str, Any]]
) -> None:
    """Compare samples of fresh code with what it was compiled from, run on floats.

    Parameters
    ----------
    what : the code, for the message.
    compute : inputs by port name, each a flat list of floats → outputs by port name.

    Raises
    ------
    CompilerError
        If they differ.
    """
    for sample in run:
        values = {name: array.ravel().tolist() for name, array in sample.inputs.items()}
        check_against_floats(what, sample.status, sample.outputs, partial(compute, values))


def samples(kernel: CompiledKernel | BatchKernel, problem: Problem, seed: int) -> list[Sample]:
    """Run a kernel once: at one configuration, or at as many as it computes at a time."""
    if isinstance(kernel, CompiledKernel):
        return [_single(kernel, problem, seed)]
    blocks = [random_inputs(problem, seed * kernel.width + k) for k in range(kernel.width)]
    rows = np.array([np.concatenate([v.ravel() for v in inputs.values()]) for inputs in blocks])
    return row_samples(kernel, rows, problem.inputs, problem.outputs)


def row_samples(
    kernel: BatchKernel, rows: Array, inputs: Sequence[Port], outputs: Sequence[Port]
) -> list[Sample]:
    """Run a batch kernel once on blocks of inputs (N, size)."""
    out = np.zeros((len(rows), kernel.unique.shape[0]))
    status = np.zeros(len(rows), dtype=np.int32)
    kernel.run(rows, out, status, kernel.unique, "rows", 1)
    return [
        Sample(views(row, inputs), int(code), views(found, outputs))
        for row, code, found in zip(rows, status, out, strict=True)
    ]


def bound_at_random(kernel: CompiledKernel, problem: Problem, seed: int = 0) -> BoundKernel:
    """Return a kernel with buffers whose inputs are a random configuration."""
    bound = kernel.bind()
    for name, values in random_inputs(problem, seed).items():
        bound.inputs[name][...] = values
    return bound


def _single(kernel: CompiledKernel, problem: Problem, seed: int) -> Sample:
    bound = bound_at_random(kernel, problem, seed)
    status = bound.run()
    inputs, outputs = (
        {name: array.copy() for name, array in block.items()}
        for block in (bound.inputs, bound.outputs)
    )
    return Sample(inputs, status, outputs)
