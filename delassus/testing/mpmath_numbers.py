"""Traced algorithms on mpmath numbers: a reference of arbitrary precision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import mpmath
import numpy as np

from delassus.algorithms import registry
from delassus.algorithms.registry import TracedAlgorithm
from delassus.model.spatial import Array
from delassus.problem import Problem
from delassus.rbda.tree import Tree
from delassus.scalars import functions as scalars
from delassus.scalars.ports import Outputs


@scalars.sincos.register
def _(angle: mpmath.mpf) -> tuple[Any, Any]:
    return mpmath.sin(angle), mpmath.cos(angle)


@scalars.sqrt.register
def _(x: mpmath.mpf) -> Any:
    return mpmath.sqrt(x)


@scalars.select.register
def _(x: mpmath.mpf, positive: Any, otherwise: Any) -> Any:
    return positive if x > 0 else otherwise


@scalars.positive.register
def _(x: mpmath.mpf, what: str, of: Any = None) -> Any:
    scalars.check_positive(x, what)
    return x


@scalars.regular.register
def _(pivot: mpmath.mpf, least: float, what: str) -> Any:
    scalars.check_regular(pivot, least, what)
    return pivot


def evaluate(
    problem: Problem,
    algorithm: TracedAlgorithm,
    inputs: Mapping[str, Sequence[float] | Array],
    digits: int = 50,
    tree: Tree | None = None,
) -> Outputs:
    """Return the outputs as nested lists of mpmath numbers.

    Parameters
    ----------
    inputs : doubles by port name; taken as exact.
    digits : decimal digits of every operation.
    tree : replaces the problem's tree.

    Raises
    ------
    NumericalError
        If M is not positive definite there.
    """
    with mpmath.workdps(digits):
        exact = {
            name: [mpmath.mpf(float(value)) for value in np.ravel(values)]
            for name, values in inputs.items()
        }
        return registry.evaluate(problem, algorithm, exact, tree)
