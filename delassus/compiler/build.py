"""From (problem, algorithm) to a kernel: the passes of the compiler, and the cache around them.

========== =========================================================== ========================
trace      the algorithm on symbols: a graph; of variants the shortest ``ir.trace``
scalars    an instruction for each node: a program                     ``passes.vectorize``
lanes      limbs of the same build side by side                        ``passes.lanes``
angles     sines and cosines in blocks                                 ``passes.angles``
rows       rows of contacts side by side                               ``passes.widen``
order      as traced and depth first                                   ``passes.order``
split      parts of a long program, interleaved                        ``passes.partition``
write      LLVM IR                                                     ``codegen``
compile    machine code                                                ``runtime.jit``
check      the faster order against the algorithm on floats            ``cache.cached_code``
========== =========================================================== ========================

:func:`~delassus.compiler.passes.vectorize.vectorized` runs the passes from ``scalars`` to
``rows``, each of which takes a program to a program. Large systems are tables of calls instead of
programs (``passes.calls``), without the passes up to ``split``; vectors of configurations have a
loop around them (``codegen.batch``).
"""

from __future__ import annotations

import gc
import logging
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np

from delassus.algorithms.registry import Algorithm, NumericAlgorithm, TracedAlgorithm, evaluate
from delassus.compiler.cache.cached_code import (
    CachedCode,
    bound_at_random,
    check_samples,
    difference,
    samples,
    stored_batch_kernel,
    stored_kernel,
)
from delassus.compiler.cache.sources import algorithm_source
from delassus.compiler.codegen import batch, emit
from delassus.compiler.codegen.target import (
    has_few_registers,
    host_features,
    host_triple,
    host_width,
)
from delassus.compiler.ir.program import Part, Program
from delassus.compiler.ir.trace import Trace, decided, trace
from delassus.compiler.passes.calls import Table
from delassus.compiler.passes.partition import LONG, LONG_OF_FEW, orders, single_parts
from delassus.compiler.passes.vectorize import batch_program, length, vectorized
from delassus.compiler.runtime.batch_kernel import BatchKernel
from delassus.compiler.runtime.jit import compile_ir, joined
from delassus.compiler.runtime.kernel import BoundKernel, CompiledKernel, Kernel, NumericKernel
from delassus.compiler.runtime.python_call import around
from delassus.errors import AlgorithmError, CompilerError
from delassus.problem import Problem
from delassus.scalars.ports import Inputs, Outputs, block_size, places

_log = logging.getLogger(__name__)

_LONG_BUILD_NODES = 150_000
"""Nodes of a trace from which it takes a while to compile, where no steps are shared."""
_TIMED_ROUNDS, _TIMED_CALLS = 7, 150
"""How often each order of instructions is timed, and calls each time."""
_FASTER_SHARE = 0.98
"""An order is taken for faster if it takes at most this share of the time."""


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
        shared = beside.submit(around)
        computed = decided(problem, algorithm)
        algorithm, traced, program = shortest(computed, algorithm)
        kernels = []
        for code in splits(program):
            module = emit.module(code)
            machine_code = joined([compile_ir(module.ir), shared.result()])
            kernels.append(CompiledKernel(problem, machine_code, traced.operations))
    kernel = _fastest(problem, kernels)
    _check_against_floats(computed, algorithm, kernel)
    _log.info(
        "compiled %s for %s in %.2f s: %s",
        algorithm.name, problem.robot.name, time.perf_counter() - start, kernel.operations,
    )  # fmt: skip
    return kernel


def shortest(
    problem: Problem, algorithm: TracedAlgorithm
) -> tuple[TracedAlgorithm, Trace, Program | Table]:
    """Return the variant of an algorithm with the shortest program, its trace and its program.

    The first variant has the fewest operations; its program may be longer where fewer limbs are
    alike. Large systems take the first variant.
    """
    problem = decided(problem, algorithm)
    found: list[tuple[TracedAlgorithm, Trace, Program | Table]] = []
    for variant in algorithm.variants(problem):
        traced = _traced(problem, variant)
        program = vectorized(problem, traced, checked_positions(problem))
        found.append((variant, traced, program))
        if isinstance(program, Table):
            break
    lengths = [length(each[2]) if isinstance(each[2], Program) else 0 for each in found]
    return found[lengths.index(min(lengths))]


def _build_batch(problem: Problem, algorithm: TracedAlgorithm) -> BatchKernel:
    with _without_collection():
        computed = decided(problem, algorithm)
        program = batch_program(_traced(computed, algorithm), checked_positions(problem))
        inputs = block_size(problem.inputs)
        module = batch.module(program, inputs, host_width())
        code = compile_ir(module.ir)
    kernel = BatchKernel(code, module.width, np.array(module.unique, np.int64), module.work_size)
    _check_against_floats(computed, algorithm, kernel)
    return kernel


def splits(program: Program | Table) -> Iterator[list[Part] | Table]:
    """Give the code to be written, in each order that may be the fastest on this processor."""
    if isinstance(program, Table):
        yield program
        return
    few = has_few_registers(host_triple(), host_features())
    long = LONG_OF_FEW if few else LONG
    for ordered in orders(program, long):
        yield single_parts(ordered, long)


def _fastest(problem: Problem, kernels: list[CompiledKernel]) -> CompiledKernel:
    """Return the kernel that takes least time here, the first where they take about the same."""
    if len(kernels) == 1:
        return kernels[0]
    bound = [bound_at_random(kernel, problem) for kernel in kernels]
    rounds = [[_time_of(kernel) for kernel in bound] for _ in range(_TIMED_ROUNDS)]
    least = [min(times) for times in zip(*rounds, strict=True)]
    quick = min(range(len(least)), key=least.__getitem__)
    return kernels[quick if least[quick] < _FASTER_SHARE * least[0] else 0]


def _time_of(bound: BoundKernel) -> float:
    run, start = bound.run, time.perf_counter()
    for _ in range(_TIMED_CALLS):
        run()
    return time.perf_counter() - start


def _traced(problem: Problem, algorithm: TracedAlgorithm) -> Trace:
    traced = trace(problem, algorithm)
    if not traced.graph.routines and len(traced.live) > _LONG_BUILD_NODES:
        _log.warning(
            "%s for %s is %s: to compile that may take minutes; "
            "'auto' or 'pv_osimr' may need less",
            algorithm.name, problem.robot.name, traced.operations,
        )  # fmt: skip
    return traced


def checked_positions(problem: Problem) -> list[int]:
    """Return the positions in the output block that are finite only if all of it is.

    Diagonals bound G and M, and G those of J and M⁻¹Jᵀ; vectors, which depend on rates and forces,
    are looked at in full.
    """
    positions: list[int] = []
    for port, place in places(problem.outputs):
        entries = range(place.start, place.stop)
        if port.name in ("G", "M"):
            positions += entries[:: port.shape[0] + 1]
        elif len(port.shape) == 1:
            positions += entries
    return positions


def _check_against_floats(
    problem: Problem, algorithm: TracedAlgorithm, kernel: CompiledKernel | BatchKernel
) -> None:
    """Check a fresh kernel at each configuration of a run."""

    def on_floats(values: Inputs) -> Outputs:
        outputs = evaluate(problem, algorithm, values)
        G = np.asarray(outputs["G"], dtype=np.float64)
        with np.errstate(invalid="ignore"):
            asymmetry = difference(G.T, G, squared=True)
        # NaN is left to the comparison.
        if asymmetry > 0.0:
            raise CompilerError(
                f"output 'G' of algorithm {algorithm.name!r} must be symmetric; on floats it "
                f"differs from its transpose by {asymmetry:.1e}"
            )
        return outputs

    run = samples(kernel, problem, seed=0)
    check_samples(f"kernel of {algorithm.name!r}", run, on_floats)


def _key(stored: CachedCode[Any], algorithm: TracedAlgorithm) -> str | None:
    """Return the cache key, or None where the source of the algorithm is not known for sure."""
    try:
        source = algorithm_source(algorithm)
    except (OSError, TypeError) as reason:
        _log.info("%s not cached, as the algorithm has no known source: %s", stored.what, reason)
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
