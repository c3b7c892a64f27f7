"""Algorithms for the Delassus matrix, one file per algorithm, and their registry."""

from delassus.algorithms.registry import (
    Algorithm,
    NumericAlgorithm,
    TracedAlgorithm,
    aliases,
    get,
    names,
    register,
    registered,
    spelling,
    unavailable,
)
from delassus.scalars.ports import Inputs, Outputs, Status

__all__ = [
    "Algorithm",
    "Inputs",
    "NumericAlgorithm",
    "Outputs",
    "Status",
    "TracedAlgorithm",
    "aliases",
    "get",
    "names",
    "register",
    "registered",
    "spelling",
    "unavailable",
]
