"""Outputs of a problem as an operator of PyTorch on the CPU, with autograd and torch.vmap."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from delassus.doors import needed
from delassus.doors.batch_function import BatchFunction, BlockFunction
from delassus.errors import InputError
from delassus.problem import Problem

torch: Any = needed("torch")
_functions: dict[str, Any] = {}
_lock = threading.Lock()


def _run(function: BlockFunction, inputs: Any) -> Any:
    """Return a new tensor (…, size_out); reads the memory of a contiguous tensor in place."""
    source = inputs.detach().contiguous()
    found = torch.empty((*source.shape[:-1], function.size_out), dtype=torch.float64)
    count = int(np.prod(source.shape[:-1], dtype=np.int64))
    if count:
        function(
            source.numpy().reshape(count, function.size_in),
            found.numpy().reshape(count, function.size_out),
        )
    return found


def _registered(name: str, function: Callable[[], BlockFunction], size: int) -> Any:
    """Return an operator from (…, inputs) to (…, size), with shapes for compilation."""

    def compute(inputs: Any) -> Any:
        return _run(function(), inputs)

    # The schema of the operator is read from these types.
    compute.__annotations__ = {"inputs": torch.Tensor, "return": torch.Tensor}
    operator = torch.library.custom_op(f"delassus::{name}", compute, mutates_args=())
    operator.register_fake(lambda inputs: inputs.new_empty((*inputs.shape[:-1], size)))
    return operator


def _differentiable(batch: BatchFunction) -> Any:
    """Return the function of blocks with its derivative; registered once per process."""
    with _lock:
        if batch.name in _functions:
            return _functions[batch.name]
        forward = _registered(f"{batch.name}_forward", lambda: batch.forward, batch.size_out)
        backward = _registered(f"{batch.name}_backward", lambda: batch.backward, batch.size_in)

        class Backward(torch.autograd.Function):
            generate_vmap_rule = False

            @staticmethod
            def forward(both: Any) -> Any:
                found: Any = backward(both)
                return found

            @staticmethod
            def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
                """Nothing is kept: there is no second derivative."""

            @staticmethod
            def backward(ctx: Any, *bars: Any) -> Any:
                raise InputError("kernels have first derivatives only")

            @staticmethod
            def vmap(info: Any, axes: Any, both: Any) -> tuple[Any, int]:
                return Backward.apply(both.movedim(axes[0], 0)), 0

        class Forward(torch.autograd.Function):
            @staticmethod
            def forward(inputs: Any) -> Any:
                found: Any = forward(inputs)
                return found

            @staticmethod
            def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
                ctx.save_for_backward(inputs[0])

            @staticmethod
            def backward(ctx: Any, *bars: Any) -> Any:
                return Backward.apply(torch.cat([ctx.saved_tensors[0], bars[0]], dim=-1))

            @staticmethod
            def vmap(info: Any, axes: Any, inputs: Any) -> tuple[Any, int]:
                return Forward.apply(inputs.movedim(axes[0], 0)), 0

        _functions[batch.name] = Forward.apply
        return _functions[batch.name]


def torch_function(problem: Problem, algorithm: str = "pv_osimr") -> Callable[..., Any]:
    """Return the outputs of a problem as a function of float64 tensors on the CPU.

    The function takes the problem's inputs by position or name, with any equal leading axes, and
    returns G, or a dictionary of all outputs by name. Autograd works once, second derivatives do
    not. Gradients are those of the entries of the inputs; kernels are compiled at the first call.
    Results of configurations that fail are NaN.

    Parameters
    ----------
    problem, algorithm : as for :class:`~delassus.doors.batch_function.BatchFunction`.

    Raises
    ------
    AlgorithmError, ProblemError
        As there.
    InputError
        At a call, if an input is missing, of wrong shape, no float64, or not on the CPU.
    """
    batch = BatchFunction(problem, algorithm)
    function = _differentiable(batch)

    def outputs(*arguments: Any, **named: Any) -> Any:
        parts = batch.parts(torch.as_tensor, torch.broadcast_to, arguments, named)
        for port, part in zip(problem.inputs, parts, strict=True):
            if part.dtype != torch.float64 or part.device.type != "cpu":
                raise InputError(
                    f"input {port.name!r} is {part.dtype} on {part.device}; expected "
                    "torch.float64 on the CPU"
                )
        block = parts[0] if len(parts) == 1 else torch.cat(parts, dim=-1)
        return batch.split(function(block))

    return outputs
