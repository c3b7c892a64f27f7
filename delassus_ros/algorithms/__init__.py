"""Algorithms for the Delassus matrix, one file each, and their registry."""

from delassus_ros.algorithms.base import (
    Algorithm,
    Inputs,
    NumericAlgorithm,
    Outputs,
    Status,
    TracedAlgorithm,
)
from delassus_ros.algorithms.registry import get, names, register, unavailable

__all__ = [
    "Algorithm",
    "Inputs",
    "NumericAlgorithm",
    "Outputs",
    "Status",
    "TracedAlgorithm",
    "get",
    "names",
    "register",
    "unavailable",
]
