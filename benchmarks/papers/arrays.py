"""Arrays as scalars: a formula evaluated at many states at once, on NumPy arrays (states,).

What a formula on floats costs is mostly its calls of functions, so that ten states take little
longer than one. Importing this module registers the functions of :mod:`delassus.scalars`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from delassus.model.spatial import Array
from delassus.scalars import functions
from delassus.scalars.functions import Scalar, Vector


def stacked(states: Sequence[Mapping[str, Vector]]) -> dict[str, Vector]:
    """Return states as one: each entry an array with its value in every state."""
    return {
        name: [np.array([state[name][i] for state in states], float) for i in range(len(values))]
        for name, values in states[0].items()
    }


def at_all(
    formula: Callable[[Mapping[str, Vector]], Vector], states: Sequence[Mapping[str, Vector]]
) -> Array:
    """Return the results (states, size) of a formula at all states."""
    results = formula(stacked(states))
    return np.array([np.broadcast_to(value, len(states)) for value in results], float).T


@functions.sincos.register
def _(angle: np.ndarray) -> tuple[Array, Array]:
    return np.sin(angle), np.cos(angle)


@functions.sqrt.register
def _(x: np.ndarray) -> Array:
    return np.sqrt(x)


@functions.select.register
def _(x: np.ndarray, positive: Scalar, otherwise: Scalar) -> Array:
    return np.where(x > 0.0, positive, otherwise)


@functions.positive.register
def _(x: np.ndarray, what: str, of: Scalar = None) -> Array:
    functions.check_positive(float(x.min()), what)
    return x


@functions.regular.register
def _(pivot: np.ndarray, least: float, what: str) -> Array:
    functions.check_regular(float(np.abs(pivot).min()), least, what)
    return pivot
