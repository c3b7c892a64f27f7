"""Contenders of one case: their results agree before they are timed, in turns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import timing
from benchmarks.timing import Routine, Sampler, Timing
from delassus.model.spatial import Array

TOLERANCE = 1e-9
Results = Callable[[int], Sequence[Array]]
"""Takes the index of a state, returns what a contender computes of it."""


class WrongResultError(Exception):
    """A contender computes something else than the others."""


@dataclass(frozen=True)
class Contender:
    """What is timed.

    Attributes
    ----------
    sampler : takes its times.
    results : what is compared; None for a contender whose results are of another kind.
    """

    sampler: Sampler
    results: Results | None = None


def in_c(routine: Routine, results: Results | None = None) -> Contender:
    """Return a routine called in C with warm caches; by default its matrix is compared."""
    return Contender(timing.warm(routine), results or (lambda i: [routine.matrix(i)]))


def from_python(
    call: Callable[[Any], object],
    inputs: Sequence[Any] | Array,
    read: Callable[[Any], Sequence[Array]] | None = None,
) -> Contender:
    """Return a function called from Python with each of `inputs` in turn.

    Parameters
    ----------
    read : takes what the function returns, returns what is compared.
    """

    def results(i: int) -> Sequence[Array]:
        assert read is not None
        return [np.array(value) for value in read(call(inputs[i]))]

    return Contender(timing.python(call, np.asarray(inputs)), results if read else None)


def compare(
    where: str,
    contenders: Mapping[str, Contender],
    seconds: float,
    tolerance: float = TOLERANCE,
    states: Sequence[int] = (0,),
) -> dict[str, Timing]:
    """Compare the results with those of the first contender, then take the times.

    Parameters
    ----------
    where : label of the case, for errors.
    seconds : per contender [s].
    tolerance : largest relative difference of an array.
    states : indices of states whose results are compared.

    Raises
    ------
    WrongResultError
        If results differ; nothing is timed.
    """
    compared = [(name, each.results) for name, each in contenders.items() if each.results]
    for i in states if compared else ():
        other, first = compared[0]
        expected = first(i)
        for name, results in compared:
            for found, wanted in zip(results(i), expected, strict=True):
                agree(f"{where}: {name}", other, found, wanted, tolerance)
    return timing.measure({name: each.sampler for name, each in contenders.items()}, seconds)


def agree(
    what: str, other: str, found: Array, expected: Array, tolerance: float = TOLERANCE
) -> None:
    """Compare two arrays by the norm of their difference, relative to that of the second.

    Raises
    ------
    WrongResultError
        If they differ; the message is that `what` differs from `other`.
    """
    error = np.linalg.norm(found - expected) / np.linalg.norm(expected)
    if not error <= tolerance:
        raise WrongResultError(f"{what} differs from {other} by {error:.1e}")
