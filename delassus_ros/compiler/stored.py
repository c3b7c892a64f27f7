"""Kernels as bytes, for the cache and for other processes."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np

from delassus_ros.compiler.batch_kernel import BatchKernel
from delassus_ros.compiler.cached_code import CachedCode
from delassus_ros.compiler.kernel import CompiledKernel
from delassus_ros.compiler.samples import samples
from delassus_ros.problem import Problem
from delassus_ros.scalars.counts import OperationCount


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

    def parts(kernel: BatchKernel) -> tuple[bytes, dict[str, Any]]:
        sizes = {"width": kernel.width, "work_size": kernel.work_size}
        return kernel.code, {**sizes, "unique": kernel.unique.tolist()}

    def load(code: bytes, description: dict[str, Any]) -> BatchKernel:
        unique = np.array(description.pop("unique"), dtype=np.int64)
        size = sum(port.size for port in problem.outputs)
        if unique.shape != (size,):
            raise ValueError(f"{unique.size} output entries, expected {size}")
        return BatchKernel(code, unique=unique, **description)

    what, result = f"batch kernel of {algorithm}", partial(_result, problem)
    return CachedCode(what, problem.canonical_bytes, parts, load, result)


def _result(problem: Problem, kernel: CompiledKernel | BatchKernel, seed: int) -> bytes:
    return b"".join(sample.result() for sample in samples(kernel, problem, seed))
