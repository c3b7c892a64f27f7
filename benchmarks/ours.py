"""Kernels of this package, as routines of the C ABI and as Python calls."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.timing import BatchCall, Routine, Sampler, batch, once
from delassus import BoundSolver, DelassusSolver, Problem, algorithms
from delassus.compiler.build import batch_kernel_for, kernel_for
from delassus.compiler.codegen.batch import COLUMNS, ROWS
from delassus.compiler.codegen.emit import KERNEL
from delassus.compiler.function import BoundFunction
from delassus.compiler.ir.trace import trace
from delassus.compiler.runtime.batch_kernel import Layout
from delassus.compiler.runtime.jit import LoadedCode
from delassus.compiler.runtime.kernel import CompiledKernel, aligned_zeros
from delassus.errors import CompilerError
from delassus.model.spatial import Array
from delassus.scalars.counts import OperationCount

CHOSEN = "auto"
"""The algorithm that is held against the peers."""


def traced_names() -> tuple[str, ...]:
    """Return the registered algorithms that are compiled."""
    return tuple(
        name
        for name in algorithms.names()
        if isinstance(algorithms.get(name), algorithms.TracedAlgorithm)
    )


def traced(name: str) -> algorithms.TracedAlgorithm:
    """Return a registered algorithm that is compiled."""
    algorithm = algorithms.get(name)
    if not isinstance(algorithm, algorithms.TracedAlgorithm):
        raise CompilerError(f"the algorithm {name!r} is a back end and is not compiled")
    return algorithm


def operations(problem: Problem, name: str, generic: bool = False) -> OperationCount:
    """Return the operation count of an algorithm, without sines and cosines and not compiled.

    Parameters
    ----------
    generic : whether the robot's constants are unknown; otherwise they are folded.
    """
    return trace(problem, traced(name), generic=generic).operations


@dataclass(frozen=True)
class Ours:
    """A compiled algorithm.

    Attributes
    ----------
    kernel : its kernel.
    routine : the same for C loops.
    seconds : time to build it, or to load it from the cache.
    """

    kernel: CompiledKernel
    routine: Routine
    seconds: float


def build(problem: Problem, name: str, inputs: Array, use_cache: bool = True) -> Ours:
    """Compile an algorithm for a problem; `inputs` are (count, nq)."""
    start = time.perf_counter()
    kernel = kernel_for(problem, traced(name), use_cache)
    seconds = time.perf_counter() - start
    if not isinstance(kernel, CompiledKernel):
        raise CompilerError(f"the kernel of {name!r} is not machine code")
    code = LoadedCode(kernel.code)
    work = aligned_zeros(kernel.work_size)
    routine = Routine(
        code.address(KERNEL), inputs, problem.contacts.rows, work.ctypes.data, keep=(code, work)
    )
    return Ours(kernel, routine, seconds)


def bound_routine(bound: BoundFunction, inputs: Array) -> Routine:
    """Return a bound function for C loops; `inputs` (count, inputs) in the order of its ports."""
    return Routine(
        bound.address, inputs, 0, bound.work.ctypes.data, keep=bound, size=bound.result.size
    )


def python_calls(problem: Problem, ours: Ours, name: str) -> dict[str, Callable[[Array], Array]]:
    """Return the ways to call a kernel from Python: each takes q and returns G."""
    solver = BoundSolver(problem, ours.kernel, name)
    bound = ours.kernel.bind()
    bound_G = bound.outputs["G"]
    whole = DelassusSolver(problem, name)

    def by_solver(q: Array) -> Array:
        return solver.solve(q).matrix

    def by_kernel(q: Array) -> Array:
        bound.run_at(q)
        return bound_G

    def checked(q: Array) -> Array:
        return whole.solve(q).matrix

    return {
        "BoundSolver.solve": by_solver,
        "kernel.bind().run": by_kernel,
        "DelassusSolver.solve": checked,
    }


class Batch:
    """The batch kernel of an algorithm."""

    def __init__(self, problem: Problem, name: str) -> None:
        self._kernel = batch_kernel_for(problem, traced(name))
        self._code = LoadedCode(self._kernel.code)
        self._rows = problem.contacts.rows
        self._pick = np.ascontiguousarray(self._kernel.unique[: self._rows**2])
        self._solver = DelassusSolver(problem, name)

    def resident(self, inputs: Array, layout: Layout) -> tuple[Array, Sampler]:
        """Return the output array and a sampler: called in C, no Python in between.

        Parameters
        ----------
        inputs : (count, nq), also for columns.
        """
        count, size = inputs.shape[0], self._rows**2
        shape = (count, size) if layout == "rows" else (size, count)
        call = BatchCall(
            self._code.address(ROWS if layout == "rows" else COLUMNS),
            np.ascontiguousarray(inputs if layout == "rows" else inputs.T),
            aligned_zeros(count * size).reshape(shape),
            np.zeros(count, dtype=np.int32),
            self._pick,
            aligned_zeros(self._kernel.work_size),
            keep=self,
        )
        matrices = call.out if layout == "rows" else call.out.T
        return matrices.reshape(count, self._rows, self._rows), batch(call)

    def from_numpy(self, inputs: Array, layout: Layout, threads: int) -> tuple[Array, Sampler]:
        """Return the output array, per configuration, and a sampler of ``solve_batch``."""
        count, m = inputs.shape[0], self._rows
        given = np.ascontiguousarray(inputs if layout == "rows" else inputs.T)
        out = np.zeros((count, m, m) if layout == "rows" else (m, m, count))

        def call() -> None:
            self._solver.solve_batch(given, threads=threads, layout=layout, out=out)

        matrices = out if layout == "rows" else np.moveaxis(out, 2, 0)
        return matrices, once(call, count)
