"""Outputs of a problem as functions of CasADi: expressions of any algorithm, or its kernel."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from delassus import algorithms
from delassus.algorithms.registry import TracedAlgorithm, evaluate
from delassus.compiler.export import check_name
from delassus.compiler.ir.trace import decided
from delassus.doors import needed
from delassus.doors.batch_function import BatchFunction, BlockFunction
from delassus.errors import AlgorithmError
from delassus.problem import Problem
from delassus.scalars import functions as scalars
from delassus.scalars.ports import places

casadi: Any = needed("casadi")


@cache
def register_symbols() -> None:
    """Register the functions over scalars for CasADi's symbols."""

    def sincos(angle: Any) -> tuple[Any, Any]:
        return casadi.sin(angle), casadi.cos(angle)

    def select(x: Any, positive: Any, otherwise: Any) -> Any:
        return casadi.if_else(x > 0, positive, otherwise)

    def unchecked(x: Any, *what: Any) -> Any:
        return x

    for kind in (casadi.SX, casadi.MX):
        scalars.sincos.register(kind, sincos)
        scalars.sqrt.register(kind, casadi.sqrt)
        scalars.select.register(kind, select)
        scalars.positive.register(kind, unchecked)
        scalars.regular.register(kind, unchecked)


def casadi_function(
    problem: Problem, algorithm: str = "pv_osimr", name: str = "delassus", kind: str = "SX"
) -> Any:
    """Return a ``casadi.Function`` whose body are the expressions of an algorithm.

    CasADi differentiates it as often as wanted and writes C code of it; called with MX it becomes
    a part of a larger expression. Inputs and outputs are those of the problem, as columns and
    matrices. Values are not checked: where a kernel has a status other than OK, results are
    not finite or not valid.

    Parameters
    ----------
    problem : the problem.
    algorithm : name of a traced algorithm.
    name : of the function, a C identifier.
    kind : ``"SX"``, scalar expressions, or ``"MX"``.

    Raises
    ------
    AlgorithmError
        For an algorithm that is unknown, refuses the problem or is a back end.
    InputError
        If the name is no C identifier, or a keyword.
    """
    check_name(name)
    found = algorithms.get(algorithm)
    if not isinstance(found, TracedAlgorithm):
        raise AlgorithmError(f"algorithm {algorithm!r} is a numeric back end without expressions")
    reason = found.supports(problem)
    if reason is not None:
        raise AlgorithmError(f"algorithm {algorithm!r} cannot solve this problem: {reason}")
    register_symbols()
    symbol = getattr(casadi, kind).sym
    inputs = [symbol(port.name, port.size) for port in problem.inputs]
    values = {
        port.name: [column[k] for k in range(port.size)]
        for port, column in zip(problem.inputs, inputs, strict=True)
    }
    results = evaluate(decided(problem, found), found, values)
    outputs = []
    for port in problem.outputs:
        lines = results[port.name]
        if len(port.shape) == 1:
            outputs.append(casadi.vertcat(*lines))
        else:
            outputs.append(casadi.vertcat(*(casadi.horzcat(*line) for line in lines)))
    outputs = [casadi.densify(output) for output in outputs]
    names = [port.name for port in problem.inputs], [port.name for port in problem.outputs]
    return casadi.Function(name, inputs, outputs, *names)


class _Kernel(casadi.Callback):
    """A batch kernel as an external function of CasADi from a column to a column."""

    def __init__(self, name: str, function: BlockFunction, batch: BatchFunction | None) -> None:
        super().__init__()
        self._function, self._batch = function, batch
        self._kept: list[Any] = []
        self.construct(name, {})

    def get_n_in(self) -> int:
        return 1

    def get_n_out(self) -> int:
        return 1

    def get_sparsity_in(self, i: int) -> Any:
        return casadi.Sparsity.dense(self._function.size_in, 1)

    def get_sparsity_out(self, i: int) -> Any:
        return casadi.Sparsity.dense(self._function.size_out, 1)

    def eval(self, arguments: list[Any]) -> list[Any]:
        inputs = np.ascontiguousarray(np.array(arguments[0], dtype=np.float64).reshape(1, -1))
        outputs = np.empty((1, self._function.size_out))
        self._function(inputs, outputs)
        return [casadi.DM(outputs.reshape(-1, 1))]

    def has_reverse(self, count: int) -> bool:
        return self._batch is not None

    def get_reverse(
        self, count: int, name: str, names_in: list[str], names_out: list[str], options: Any
    ) -> Any:
        batch = self._batch
        assert batch is not None  # has_reverse
        backward = _Kernel(f"{name}_backward", batch.backward, None)
        self._kept.append(backward)
        inputs = casadi.MX.sym("inputs", batch.size_in)
        outputs = casadi.MX.sym("outputs", batch.size_out)
        bars = casadi.MX.sym("bars", batch.size_out, count)
        columns = [backward(casadi.vertcat(inputs, bars[:, k])) for k in range(count)]
        found = casadi.horzcat(*columns)
        ports = [inputs, outputs, bars], [found], names_in, names_out
        return casadi.Function(name, *ports, options)


def casadi_kernel(
    problem: Problem, algorithm: str = "pv_osimr", name: str = "delassus_kernel"
) -> Any:
    """Return a ``casadi.Function`` that calls compiled kernels, with gradients by reverse mode.

    Inputs and outputs are those of :func:`casadi_function`. First derivatives only; a result that
    fails is NaN.

    Parameters
    ----------
    problem, algorithm : as for :class:`~delassus.doors.batch_function.BatchFunction`.
    name : of the function, a C identifier.

    Raises
    ------
    AlgorithmError, ProblemError
        As there.
    InputError
        If the name is no C identifier, or a keyword.
    """
    check_name(name)
    batch = BatchFunction(problem, algorithm)
    kernel = _Kernel(f"{name}_block", batch.forward, batch)
    inputs = [casadi.MX.sym(port.name, port.size) for port in problem.inputs]
    block, outputs = kernel(casadi.vertcat(*inputs)), []
    for port, place in places(problem.outputs):
        part = block[place]
        if len(port.shape) > 1:
            # CasADi's matrices are column-major.
            part = casadi.reshape(part, port.shape[1], port.shape[0]).T
        outputs.append(part)
    names = [port.name for port in problem.inputs], [port.name for port in problem.outputs]
    function = casadi.Function(name, inputs, outputs, *names)
    _callbacks.append(kernel)
    return function


_callbacks: list[_Kernel] = []
"""Callbacks that functions refer to; CasADi does not keep them alive."""
