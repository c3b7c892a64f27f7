"""Any traced algorithm on mpmath numbers: a reference with as many digits as wanted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import mpmath
import numpy as np

from delassus_ros.algorithms import outputs, scalars
from delassus_ros.algorithms.base import Outputs, TracedAlgorithm
from delassus_ros.model.spatial import Array
from delassus_ros.problem import Problem


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
def _(x: mpmath.mpf, what: str) -> Any:
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
) -> Outputs:
    """Return the outputs as nested lists of mpmath numbers.

    Parameters
    ----------
    inputs : doubles by port name; taken as exact.
    digits : decimal digits of every operation.

    Raises
    ------
    NumericalError
        If M is not positive definite there.
    """
    with mpmath.workdps(digits):
        exact = {
            name: [mpmath.mpf(float(value)) for value in np.ravel(given)]
            for name, given in inputs.items()
        }
        return outputs.evaluate(problem, algorithm, exact)
