"""What an algorithm is: one interface, two kinds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from delassus_ros.problem import Problem

Inputs: TypeAlias = Mapping[str, Sequence[Any]]
"""Input ports by name; each a flat list of scalars."""
Outputs: TypeAlias = dict[str, Any]
"""Output ports by name; each a list of rows of scalars."""


FOR_CLOSED = "auto, c_pv_osimr, c_efpa or projection"
"""Names of the algorithms that take robots with couplings and loops, for messages."""


class Status(IntEnum):
    """Outcome of a kernel call; everything but OK means that the outputs are not valid."""

    OK = 0
    NOT_POSITIVE_DEFINITE = 1
    """A joint-space inertia or a pivot of the base is not positive."""
    NOT_FINITE = 2
    """The result is not finite: an input is NaN or infinite, or the computation overflowed."""
    FAILED = 3
    """The back end raised an error; the log says which. Compiled kernels never give it."""
    SINGULAR_LOOP = 4
    """A closed loop is singular: its dependent joints do not follow from the independent ones."""


class Algorithm(ABC):  # noqa: B024 (no method is mandatory at this level)
    """A way to compute the outputs of a problem.

    Attributes
    ----------
    name : the name it is registered under; set by the registry.
    version : raise it when results change, so that cached kernels are not reused.
    """

    name: str = ""
    version: int = 1

    def supports(self, problem: Problem) -> str | None:
        """Return None if the problem can be computed, else the reason for refusal.

        Unless an algorithm says otherwise, it knows nothing of couplings and loops.
        """
        if problem.robot.is_closed:
            return (
                f"it is for open chains, and {problem.robot.name!r} has couplings or loops; use "
                f"{FOR_CLOSED}"
            )
        return None

    def approximates(self, problem: Problem) -> bool:
        """Return whether G is off by more than rounding here; a node then says DEGRADED."""
        return False


class TracedAlgorithm(Algorithm):
    """An algorithm written over scalars; see :mod:`delassus_ros.algorithms.scalars`."""

    @abstractmethod
    def evaluate(self, problem: Problem, x: Inputs) -> Outputs:
        """Compute at least G of `problem` at `x`, whatever kind of scalars x holds.

        G has to be symmetric to the last bit: compute one triangle and mirror it. Other outputs
        are computed as in :mod:`delassus_ros.algorithms.outputs` unless they are returned here.
        Loops and branches may depend on the problem only, never on a scalar's value.
        """


Arrays: TypeAlias = Mapping[str, NDArray[np.float64]]
"""Inputs or outputs of one configuration as arrays, by port name, in the shape of the port."""


class NumericAlgorithm(Algorithm):
    """An algorithm that computes on arrays: a back end that cannot be traced."""

    @abstractmethod
    def prepare(self, problem: Problem) -> Callable[[Arrays, Arrays], Status]:
        """Return a function that reads input arrays and writes output arrays in place.

        G has to be symmetric to the last bit.

        What is raised here reaches the caller as an AlgorithmError; what that function raises
        becomes the status FAILED.
        """
