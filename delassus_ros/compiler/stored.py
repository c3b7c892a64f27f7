"""Kernels as bytes, for the cache and for other processes.

In this order: the hash of the problem, what describes the kernel, its algorithm's name among it,
its machine code, and its results at a few sample inputs, which it has to reproduce bit by bit when
it is loaded.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, TypeVar

import numpy as np

from delassus_ros.compiler import cache
from delassus_ros.compiler.batch_kernel import BatchKernel
from delassus_ros.compiler.kernel import CompiledKernel
from delassus_ros.compiler.samples import samples
from delassus_ros.compiler.trace import OperationCount
from delassus_ros.errors import CompilerError
from delassus_ros.problem import Problem

_REPLAYED = 3
"""Results kept with a kernel."""

K = TypeVar("K", CompiledKernel, BatchKernel)


def serialized(kernel: CompiledKernel | BatchKernel, problem: Problem, algorithm: str) -> bytes:
    """Return a kernel of `problem` as bytes, for the functions below.

    Parameters
    ----------
    algorithm : its name.
    """
    description: dict[str, Any]
    if isinstance(kernel, CompiledKernel):
        description = asdict(kernel.operations)
    else:
        description = {
            "width": kernel.width,
            "work_size": kernel.work_size,
            "unique": kernel.unique.tolist(),
        }
    return cache.pack(
        _digest(problem),
        json.dumps({"algorithm": algorithm, **description}).encode(),
        kernel.code,
        *(_results(kernel, problem, seed) for seed in range(1, 1 + _REPLAYED)),
    )


def kernel_from(problem: Problem, algorithm: str, payload: bytes) -> CompiledKernel:
    """Return the kernel of a payload of :func:`serialized`, after replaying its results.

    Raises
    ------
    CompilerError
        If the payload is damaged, of another problem or algorithm, or does not reproduce its
        stored results. It is machine code: load only what this user's own processes wrote.
    """

    def make(code: bytes, description: dict[str, Any]) -> CompiledKernel:
        return CompiledKernel(problem, code, OperationCount(**description))

    return _load(problem, algorithm, payload, make)


def batch_kernel_from(problem: Problem, algorithm: str, payload: bytes) -> BatchKernel:
    """Return the batch kernel of a payload; see :func:`kernel_from`."""

    def make(code: bytes, description: dict[str, Any]) -> BatchKernel:
        unique = np.array(description.pop("unique"), dtype=np.int64)
        size = sum(port.size for port in problem.outputs)
        if unique.shape != (size,):
            raise ValueError(f"{unique.size} output entries, expected {size}")
        return BatchKernel(code, unique=unique, **description)

    return _load(problem, algorithm, payload, make)


def _load(
    problem: Problem, algorithm: str, payload: bytes, make: Callable[[bytes, dict[str, Any]], K]
) -> K:
    try:
        digest, text, code, *results = cache.unpack(payload)
        if len(results) != _REPLAYED:
            raise ValueError(f"{len(results)} stored results, expected {_REPLAYED}")
        if digest != _digest(problem):
            raise CompilerError("the compiled kernel is that of another problem")
        description = json.loads(text)
        stored = description.pop("algorithm")
        if stored != algorithm:
            raise CompilerError(
                f"the compiled kernel is that of algorithm {stored!r}; expected {algorithm!r}"
            )
        kernel = make(code, description)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CompilerError(f"the compiled kernel is damaged: {error}") from error
    for seed, result in enumerate(results, start=1):
        if _results(kernel, problem, seed) != result:
            raise CompilerError("the compiled kernel does not reproduce its stored results")
    return kernel


def _results(kernel: CompiledKernel | BatchKernel, problem: Problem, seed: int) -> bytes:
    return b"".join(sample.result() for sample in samples(kernel, problem, seed))


def _digest(problem: Problem) -> bytes:
    return hashlib.sha256(problem.canonical_bytes).digest()
