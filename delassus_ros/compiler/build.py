"""From (problem, algorithm) to a kernel: from the cache, or traced, compiled and checked."""

from __future__ import annotations

import gc
import logging
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np

from delassus_ros.algorithms.registry import Algorithm, NumericAlgorithm, TracedAlgorithm, evaluate
from delassus_ros.compiler import batch, emit
from delassus_ros.compiler.batch_kernel import BatchKernel
from delassus_ros.compiler.cache import algorithm_source
from delassus_ros.compiler.cached_code import (
    CachedCode,
    difference,
    on_floats,
    samples,
    stored_batch_kernel,
    stored_kernel,
)
from delassus_ros.compiler.helper import Helper, helper_for
from delassus_ros.compiler.jit import compile_ir, joined
from delassus_ros.compiler.kernel import CompiledKernel, Kernel, NumericKernel
from delassus_ros.compiler.schedule import batch_program, program_of
from delassus_ros.compiler.trace import Trace, trace
from delassus_ros.errors import AlgorithmError, CompilerError
from delassus_ros.model.spatial import Array
from delassus_ros.problem import Problem
from delassus_ros.scalars.ports import Status

_log = logging.getLogger(__name__)

_MINUTES = 150_000
"""Nodes of a trace from which it takes a while to compile, where no steps are shared."""


def kernel_for(problem: Problem, algorithm: Algorithm, use_cache: bool = True) -> Kernel:
    """Return the kernel of `algorithm` for `problem`.

    Parameters
    ----------
    use_cache : read and write the disk cache; off, the kernel is always compiled.

    Raises
    ------
    AlgorithmError
        If the algorithm refuses the problem; the message is its reason.
    CompilerError
        If the algorithm cannot be traced or its G is not symmetric, if the compiled kernel differs
        from the algorithm run on floats, or LLVM fails.
    """
    reason = algorithm.supports(problem)
    if reason is not None:
        raise AlgorithmError(f"algorithm {algorithm.name!r} cannot solve this problem: {reason}")
    if isinstance(algorithm, NumericAlgorithm):
        return NumericKernel(problem, algorithm)
    if not isinstance(algorithm, TracedAlgorithm):
        raise AlgorithmError(
            f"algorithm {algorithm.name!r} must be a TracedAlgorithm or a NumericAlgorithm"
        )
    stored = stored_kernel(problem, algorithm.name)
    key = _key(stored, algorithm) if use_cache else None
    return stored.kept(key, lambda: _build(problem, algorithm))


def cached_kernel(problem: Problem, algorithm: TracedAlgorithm) -> CompiledKernel | None:
    """Return the kernel from the disk cache, or None if it has none that passes its check."""
    stored = stored_kernel(problem, algorithm.name)
    return stored.found(_key(stored, algorithm))


def batch_kernel_for(
    problem: Problem, algorithm: TracedAlgorithm, use_cache: bool = True
) -> BatchKernel:
    """Return the batch kernel of `algorithm` for `problem`; see :func:`kernel_for`."""
    stored = stored_batch_kernel(problem, algorithm.name)
    key = _key(stored, algorithm) if use_cache else None
    return stored.kept(key, lambda: _build_batch(problem, algorithm))


def serialized_kernel(problem: Problem, algorithm: TracedAlgorithm) -> bytes:
    """Return a compiled kernel as bytes, to be loaded in another process."""
    kernel = kernel_for(problem, algorithm)
    if not isinstance(kernel, CompiledKernel):
        raise CompilerError(f"the kernel of {algorithm.name!r} is not machine code")
    return stored_kernel(problem, algorithm.name).packed(kernel)


def _build(problem: Problem, algorithm: TracedAlgorithm) -> CompiledKernel:
    start = time.perf_counter()
    # LLVM needs no GIL: it compiles what every kernel has beside Python's part of the work.
    with _without_collection(), ThreadPoolExecutor(1) as beside:
        around = beside.submit(_around)
        traced = _traced(problem, algorithm)
        with helper_for(traced) as helper:
            program = program_of(problem, traced, checked_positions(problem))
            module = emit.module(program, elsewhere=_elsewhere(helper))
            code = joined([*_compiled(module.ir, helper), around.result()])
    kernel = CompiledKernel(problem, code, traced.operations)
    _check_against_floats(problem, algorithm, kernel)
    _log.info(
        "compiled %s for %s in %.2f s: %s",
        algorithm.name, problem.robot.name, time.perf_counter() - start, kernel.operations,
    )  # fmt: skip
    return kernel


def _build_batch(problem: Problem, algorithm: TracedAlgorithm) -> BatchKernel:
    with _without_collection():
        traced = _traced(problem, algorithm)
        with helper_for(traced) as helper:
            program = batch_program(traced, checked_positions(problem))
            inputs = sum(port.size for port in problem.inputs)
            module = batch.module(program, inputs, batch.host_width(), _elsewhere(helper))
            code = joined(_compiled(module.ir, helper))
    unique = np.array(module.unique, np.int64)
    kernel = BatchKernel(code, module.width, unique, module.work_size)
    _check_against_floats(problem, algorithm, kernel)
    return kernel


def _traced(problem: Problem, algorithm: TracedAlgorithm) -> Trace:
    traced = trace(problem, algorithm)
    if not traced.graph.routines and len(traced.live) > _MINUTES:
        _log.warning(
            "%s for %s is %s: to compile that may take minutes; "
            "'auto' or 'pv_osimr' may need less",
            algorithm.name, problem.robot.name, traced.operations,
        )  # fmt: skip
    return traced


def _elsewhere(helper: Helper | None) -> emit.Elsewhere | None:
    return None if helper is None else helper.give


def _compiled(ir: str, helper: Helper | None) -> list[bytes]:
    """Return the code of a module, and of what its helper was given."""
    own = compile_ir(ir)
    return [own] if helper is None else [own, *helper.objects()]


@lru_cache(maxsize=1)
def _around() -> bytes:
    return compile_ir(emit.around())


def checked_positions(problem: Problem) -> list[int]:
    """Return the positions of G's diagonal in the output block; it bounds all of G."""
    positions, start = [], 0
    for port in problem.outputs:
        if port.name == "G":
            positions += [start + k * (port.shape[0] + 1) for k in range(port.shape[0])]
        start += port.size
    return positions


def _check_against_floats(
    problem: Problem, algorithm: TracedAlgorithm, kernel: CompiledKernel | BatchKernel
) -> None:
    """Compare a fresh kernel with its algorithm run on floats, at each configuration of a run."""
    for sample in samples(kernel, problem, seed=0):
        values = {name: array.ravel().tolist() for name, array in sample.inputs.items()}
        expected = on_floats(evaluate, problem, algorithm, values)
        if expected is None:
            # Not positive definite at this configuration, say: the kernel has to notice too.
            if sample.status == Status.OK:
                raise CompilerError(
                    f"kernel of {algorithm.name!r} reports success where the algorithm fails"
                )
            continue
        references = {
            name: np.asarray(expected[name], dtype=np.float64) for name in sample.outputs
        }
        if sample.status == Status.NOT_FINITE and not _is_finite(references.values()):
            # Both overflow: there is nothing to compare.
            continue
        for name, result in sample.outputs.items():
            reference = references[name]
            if name == "G":
                _check_symmetric(algorithm, reference)
            error = difference(result, reference, squared=name == "G")
            if sample.status != Status.OK or error:
                raise CompilerError(
                    f"kernel of {algorithm.name!r} differs from the algorithm on floats: output "
                    f"{name!r}, status {sample.status}, difference {error:.1e}"
                )


def _is_finite(arrays: Iterable[Array]) -> bool:
    return all(np.isfinite(array).all() for array in arrays)


def _check_symmetric(algorithm: TracedAlgorithm, G: Array) -> None:
    """Refuse a G on floats that differs from its transpose; NaN is left to other checks."""
    error = difference(G.T, G, squared=True)
    if error > 0.0:
        raise CompilerError(
            f"output 'G' of algorithm {algorithm.name!r} must be symmetric; on floats it differs "
            f"from its transpose by {error:.1e}"
        )


def _key(stored: CachedCode[Any], algorithm: TracedAlgorithm) -> str | None:
    """Return the cache key, or None where the source of the algorithm is not known for sure."""
    try:
        source = algorithm_source(algorithm)
    except (OSError, TypeError):
        _log.info("%s not cached: the algorithm has no source file", stored.what)
        return None
    return stored.key(str(algorithm.version).encode(), source=source)


@contextmanager
def _without_collection() -> Iterator[None]:
    """Pause the collector of cycles: a trace makes many objects, and hardly a cycle."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
