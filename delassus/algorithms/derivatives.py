"""Products with derivatives of outputs: changes along a direction, and gradients of weighted sums.

``X_dot`` is the change of an output X along the direction (along, rates_along, torques_along,
gravity_along), by dual numbers (forward mode) for any algorithm. ``q_bar``, ``rates_bar``,
``torques_bar`` and ``gravity_bar`` are the gradients of Σ X_bar · X over the other outputs X: by
reverse mode for a trace, by duals for numbers. Directions and gradients of the configuration are
those of the independent velocities (:mod:`delassus.rbda.tangents`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from delassus.outputs import DIRECTIONS
from delassus.problem import Problem
from delassus.rbda.tangents import Direction, along, directions, transposed, with_slopes
from delassus.scalars.duals import Dual
from delassus.scalars.functions import Scalar, Vector, identity
from delassus.scalars.graph import Symbol
from delassus.scalars.ports import Inputs, Outputs
from delassus.scalars.reverse import gradient


def differentiated(problem: Problem, x: Inputs, compute: Callable[[Inputs], Outputs]) -> Outputs:
    """Return the seeded outputs of a problem, and the outputs that they differentiate.

    Parameters
    ----------
    compute : returns the outputs of :attr:`Problem.unseeded` at inputs, for any kind of scalars.
    """
    primal = {port.name: x[port.name] for port in problem.unseeded.inputs}
    results = dict(compute(primal))
    dots = [name for name in problem.seeded if name.endswith("_dot")]
    bars = [name.removesuffix("_bar") for name in problem.seeded if name.endswith("_bar")]
    if dots:
        slopes = {e: [rate] for e, rate in along(problem, primal, list(x["along"])).items()}
        for name in DIRECTIONS:
            if name in primal and f"{name}_along" in x:
                slopes |= {(name, i): [v] for i, v in enumerate(x[f"{name}_along"])}
        changed = compute(with_slopes(primal, slopes))
        for name in dots:
            results[name] = _mapped(lambda v: _slope(v, 0), changed[name.removesuffix("_dot")])
    if bars:
        results |= _gradients(problem, x, primal, results, compute, bars)
    return results


def _gradients(
    problem: Problem,
    x: Inputs,
    primal: Inputs,
    results: Outputs,
    compute: Callable[[Inputs], Outputs],
    names: Iterable[str],
) -> Outputs:
    """Return the gradients by name, with the suffix ``_bar``."""
    n = len(problem.velocities)
    entries = {("q", i) for i in range(len(primal["q"]))}
    entries |= {entry for direction in directions(problem, primal) for entry in direction}
    names, whole = list(names), [(name, i) for name in primal for i in range(len(primal[name]))]
    wanted = primal if "inputs" in names else [name for name in names if name in primal]
    entries |= {(name, i) for name, i in whole if name in wanted}
    ordered = sorted(entries)
    values: Vector = []
    seeds: Vector = []
    for port in problem.unseeded.outputs:
        seeds += x[f"{port.name}_bar"]
        values += _flat(results[port.name])
    graph = next((v.graph for v in values if isinstance(v, Symbol)), None)
    by_entry: Direction
    if graph is not None:
        variables = [primal[name][i] for name, i in ordered]
        found = gradient(graph, values, seeds, variables)
    else:
        units = dict(zip(ordered, identity(len(ordered)), strict=True))
        changed = compute(with_slopes(primal, units))
        duals = [v for port in problem.unseeded.outputs for v in _flat(changed[port.name])]
        found = [
            sum((s * _slope(v, k) for s, v in zip(seeds, duals, strict=True)), 0.0)
            for k in range(len(ordered))
        ]
    by_entry = dict(zip(ordered, found, strict=True))
    bars: Outputs = {}
    for name in names:
        if name == "inputs":
            bars["inputs_bar"] = [by_entry[entry] for entry in whole]
        elif name == "q":
            bars["q_bar"] = transposed(problem, primal, by_entry)
        else:
            size = 3 if DIRECTIONS[name] == "3" else n
            bars[f"{name}_bar"] = [by_entry.get((name, i), 0.0) for i in range(size)]
    return bars


def _flat(values: Any) -> Vector:
    """Return the scalars of nested lists."""
    return [s for v in values for s in _flat(v)] if isinstance(values, list) else [values]


def _mapped(function: Callable[[Scalar], Scalar], values: Any) -> Any:
    """Return nested lists with the function of each scalar."""
    if isinstance(values, list):
        return [_mapped(function, value) for value in values]
    return function(values)


def _slope(value: Scalar, k: int) -> Scalar:
    return value.slopes[k] if isinstance(value, Dual) else 0.0
