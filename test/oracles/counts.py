"""Counts of operations, and how they grow with the size of a problem."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from delassus import Problem, algorithms
from delassus.compiler.ir.trace import trace


@cache
def count(problem: Problem, name: str, generic: bool = False) -> int:
    """Return the operations of a kernel."""
    return trace(problem, algorithms.get(name), generic).operations.total


def exponent(sizes: Sequence[int], counts: Sequence[int]) -> float:
    """Return b of the fit a + c·size^b between the last doublings: of the growth, not the sum."""
    growth = np.diff(counts)
    return float(np.log2(growth[-1] / growth[-2]) / np.log2(sizes[-1] / sizes[-2]))


def spread(values: np.ndarray) -> float:
    """Return the difference of the largest and the smallest value by their mean."""
    return float(np.ptp(values) / np.mean(values))
