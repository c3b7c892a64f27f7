"""Tests of built-in and third-party algorithms: random robots and the conformance suite."""

from delassus.testing.conformance import CHECKS, ConformanceError
from delassus.testing.random_trees import ALL, SIMPLE, random_problem, random_robot

__all__ = ["ALL", "CHECKS", "SIMPLE", "ConformanceError", "random_problem", "random_robot"]
