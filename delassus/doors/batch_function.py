"""The outputs of a problem, and their gradients, as functions of one array of all inputs.

A block of inputs has the entries of the problem's inputs side by side, in their order, and a block
of outputs those of its outputs. Batch kernels compute N rows, in the memory of the caller's
arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delassus import algorithms
from delassus.algorithms.registry import TracedAlgorithm
from delassus.arguments import instance
from delassus.compiler.build import batch_kernel_for
from delassus.compiler.runtime.batch_kernel import BatchKernel
from delassus.errors import AlgorithmError, InputError, ProblemError
from delassus.model.spatial import Array
from delassus.problem import Problem
from delassus.scalars.ports import Status, block_size, views

_definitions: dict[str, list[Any]] = {}
"""Definitions of algorithms by name, in the order in which they were used."""


@dataclass(frozen=True, eq=False)
class BlockFunction:
    """A batch kernel from rows of inputs (N, size_in) to some of its outputs (N, size_out).

    Attributes
    ----------
    kernel : the kernel.
    size_in, size_out : entries per row.
    pick : values of the kernel per entry of a row of outputs.
    """

    kernel: BatchKernel
    size_in: int
    size_out: int
    pick: NDArray[np.int64]

    def __call__(self, inputs: Array, outputs: Array) -> None:
        """Compute all rows; those that fail are NaN. Releases the interpreter's lock.

        Parameters
        ----------
        inputs, outputs : (N, size_in), (N, size_out), contiguous, float64.
        """
        status = np.zeros(len(inputs), np.int32)
        if len(inputs):
            self.kernel.run(inputs, outputs, status, self.pick, "rows", 1)
        if np.count_nonzero(status):
            outputs[status != Status.OK] = np.nan


class BatchFunction:
    """The outputs of a problem as a differentiable function of blocks.

    Parameters
    ----------
    problem : the problem, without derivatives among its outputs.
    algorithm : name of a traced algorithm.

    Attributes
    ----------
    problem : the problem.
    name : an identifier, the same for equal problems and algorithms.

    Raises
    ------
    AlgorithmError
        For an algorithm that is unknown, refuses the problem or is a back end.
    ProblemError
        If `problem` is no Problem, or has products with derivatives among its outputs.
    """

    def __init__(self, problem: Problem, algorithm: str = "pv_osimr") -> None:
        self.problem = instance(
            "problem", problem, Problem, "Problem(robot, contacts)", ProblemError
        )  # fmt: skip
        if problem.seeded or any(port.name == "dG" for port in problem.outputs):
            names = ", ".join(port.name for port in problem.outputs)
            raise ProblemError(f"problem has the outputs {names}; expected none of derivatives")
        found = algorithms.get(algorithm)
        if not isinstance(found, TracedAlgorithm):
            raise AlgorithmError(
                f"algorithm {algorithm!r} is a numeric back end, which has no batch kernel"
            )
        reason = found.supports(problem)
        if reason is not None:
            raise AlgorithmError(f"algorithm {algorithm!r} cannot solve this problem: {reason}")
        self._algorithm = found
        # A module that is loaded anew registers another definition under the same name.
        known = _definitions.setdefault(found.name, [])
        if found.definition not in known:
            known.append(found.definition)
        number = known.index(found.definition)
        self.name = f"{found.name}_{number}_{problem.digest[:16]}"

    @cached_property
    def forward(self) -> BlockFunction:
        """Inputs → outputs."""
        return self._function(self.problem, [port.name for port in self.problem.outputs])

    @cached_property
    def backward(self) -> BlockFunction:
        """Inputs and gradients by outputs, side by side → gradients by entry of the inputs."""
        p = self.problem
        outputs = [*(port.name for port in p.outputs), "inputs_bar"]
        return self._function(
            Problem(p.robot, p.contacts, p.axes, outputs, p.wrenches), ["inputs_bar"]
        )  # fmt: skip

    def _function(self, problem: Problem, names: list[str]) -> BlockFunction:
        kernel = batch_kernel_for(problem, self._algorithm)
        values = views(kernel.unique, problem.outputs)
        chosen = np.concatenate([values[name].ravel() for name in names])
        return BlockFunction(kernel, block_size(problem.inputs), len(chosen), chosen)

    @property
    def size_in(self) -> int:
        """Entries of a block of inputs."""
        return block_size(self.problem.inputs)

    @property
    def size_out(self) -> int:
        """Entries of a block of outputs."""
        return block_size(self.problem.outputs)

    def parts(
        self,
        converted: Callable[[Any], Any],
        broadcast: Callable[[Any, tuple[int, ...]], Any],
        arguments: tuple[Any, ...],
        named: dict[str, Any],
    ) -> list[Any]:
        """Return the flat inputs of a call in the order of the ports, with equal leading axes.

        Parameters
        ----------
        converted : returns a value as an array of the package.
        broadcast : returns an array of the package in a larger shape.
        arguments, named : values by position and by name of the problem's inputs.

        Raises
        ------
        InputError
            If an input is missing, unknown, given twice, complex or of wrong shape.
        """
        ports = self.problem.inputs
        known = ", ".join(port.name for port in ports)
        values = dict(zip((port.name for port in ports), arguments, strict=False))
        twice = [name for name in named if name in values]
        unknown = [name for name in named if name not in {port.name for port in ports}]
        if len(arguments) > len(ports) or twice or unknown:
            what = ", ".join((*twice, *unknown)) or f"{len(arguments)} arrays"
            raise InputError(f"got {what}; expected each input once: {known}")
        values |= named
        flat: list[Any] = []
        for port in ports:
            if port.name not in values:
                raise InputError(f"input {port.name!r} is missing; inputs: {known}")
            value = converted(values[port.name])
            if "complex" in str(value.dtype):
                raise InputError(
                    f"input {port.name!r} is {value.dtype}; expected real numbers: derivatives "
                    "follow from gradients, not from complex steps"
                )
            shape, axes = tuple(value.shape), len(port.shape)
            if shape[len(shape) - axes :] != port.shape:
                expected = ", ".join(map(str, port.shape))
                raise InputError(
                    f"input {port.name!r} has shape {shape}, expected (…, {expected})"
                )
            flat.append(value.reshape((*shape[: len(shape) - axes], port.size)))
        leading = np.broadcast_shapes(*(tuple(part.shape[:-1]) for part in flat))
        return [broadcast(part, (*leading, part.shape[-1])) for part in flat]

    def split(self, block: Any) -> Any:
        """Return G, or a dictionary of all outputs by name, from a block (…, size_out)."""
        found = views(block, self.problem.outputs)
        return found["G"] if len(found) == 1 else found
