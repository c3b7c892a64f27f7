"""Kernels of small formulas: a problem and an algorithm with nothing of a robot in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from delassus.algorithms import TracedAlgorithm
from delassus.compiler import kernel_for, trace
from delassus.compiler.ir.trace import Trace
from delassus.compiler.runtime.kernel import Kernel
from delassus.model import Robot
from delassus.scalars.ports import Port

Formula = Callable[[list[Any]], list[Any]]


class NoContacts(tuple):  # type: ignore[type-arg]
    """An empty set of contacts."""

    row_offsets, rows = (0,), 0


class ToyProblem:
    """A problem for the compiler: `count` inputs q and a symmetric matrix.

    Its first row is a 1 and the results. The diagonal, all 1, is what a kernel checks to be
    finite.
    """

    def __init__(self, count: int, results: int) -> None:
        self.robot = Robot("toy", [], [], [])
        self.contacts = NoContacts()
        self.inputs = (Port("q", (count,)),)
        self.outputs = (Port("G", (1 + results, 1 + results)),)
        self.seeded, self.placed = (), {}
        self.canonical_bytes = f"toy {count} {results}".encode()


class ToyAlgorithm(TracedAlgorithm):
    """Evaluates a formula."""

    name = "toy"

    def __init__(self, formula: Formula) -> None:
        self.formula = formula

    def evaluate(self, problem, x):
        results = self.formula(list(x["q"]))
        G = [[float(i == j) for j in range(1 + len(results))] for i in range(1 + len(results))]
        for k, value in enumerate(results, start=1):
            G[0][k] = G[k][0] = value
        return {"G": G}


def traced(formula: Formula, count: int, results: int = 1) -> Trace:
    """Return the trace of a formula of `count` scalars."""
    return trace(ToyProblem(count, results), ToyAlgorithm(formula))


def compiled(formula: Formula, count: int, results: int = 1) -> Kernel:
    """Return the kernel of a formula."""
    return kernel_for(ToyProblem(count, results), ToyAlgorithm(formula), use_cache=False)


def call(kernel: Kernel, values: Sequence[float]) -> tuple[int, np.ndarray]:
    """Return status and results of a kernel at `values`."""
    bound = kernel.bind()
    bound.inputs["q"][...] = values
    status = bound.run()
    return status, bound.outputs["G"][0, 1:].copy()
