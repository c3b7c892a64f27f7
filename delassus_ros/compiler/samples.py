"""Kernels at sample inputs: what a fresh one is compared at and a stored one replayed with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from delassus_ros.compiler.batch_kernel import BatchKernel
from delassus_ros.compiler.kernel import Array, CompiledKernel
from delassus_ros.errors import NumericalError
from delassus_ros.problem import Port, Problem
from delassus_ros.random_inputs import random_inputs

SELF_CHECK = 1e-8
"""Largest relative difference of fresh code from what it was compiled from, on floats. It is far
above rounding, to allow for badly conditioned robots, and far below any error of code
generation."""


_ROUNDING = 1e-12
"""What a number may differ by that is zero but for rounding, as where nothing moves along a row;
of G, which is of second order in rows, the square."""
T = TypeVar("T")


def on_floats(compute: Callable[..., T], *arguments: object) -> T | None:
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
    rounding = _ROUNDING**2 if squared else _ROUNDING
    bound = SELF_CHECK * float(np.linalg.norm(expected)) + rounding
    return 0.0 if error <= bound else error


@dataclass(frozen=True, eq=False)
class Sample:
    """One configuration: what went in and what came out.

    Attributes
    ----------
    inputs, outputs : arrays by port name; outputs hold anything where the status is not OK.
    status : a :class:`~delassus_ros.scalars.ports.Status` as an int.
    """

    inputs: dict[str, Array]
    status: int
    outputs: dict[str, Array]

    def result(self) -> bytes:
        """Return status and outputs as bytes."""
        arrays = b"".join(array.tobytes() for array in self.outputs.values())
        return self.status.to_bytes(4, "little") + arrays


def samples(kernel: CompiledKernel | BatchKernel, problem: Problem, seed: int) -> list[Sample]:
    """Run a kernel once: at one configuration, or at as many as it computes at a time."""
    if isinstance(kernel, CompiledKernel):
        return [_single(kernel, problem, seed)]
    return _block(kernel, problem, seed)


def _single(kernel: CompiledKernel, problem: Problem, seed: int) -> Sample:
    inputs = random_inputs(problem, seed)
    bound = kernel.bind()
    for name, values in inputs.items():
        bound.inputs[name][...] = values
    status = bound.run()
    return Sample(inputs, status, {name: array.copy() for name, array in bound.outputs.items()})


def _block(kernel: BatchKernel, problem: Problem, seed: int) -> list[Sample]:
    width = kernel.width
    given = [random_inputs(problem, seed * width + k) for k in range(width)]
    rows = np.array([np.concatenate([v.ravel() for v in inputs.values()]) for inputs in given])
    out = np.empty((width, kernel.unique.shape[0]))
    status = np.zeros(width, dtype=np.int32)
    kernel.run(rows, out, status, kernel.unique, "rows", 1)
    return [
        Sample(inputs, int(code), _split(problem.outputs, row))
        for inputs, code, row in zip(given, status, out, strict=True)
    ]


def _split(ports: tuple[Port, ...], row: Array) -> dict[str, Array]:
    """Return each port's part of a configuration's output block."""
    parts, start = {}, 0
    for port in ports:
        parts[port.name] = row[start : start + port.size].reshape(port.shape)
        start += port.size
    return parts
