"""Tests of built-in and third-party algorithms: random robots and the conformance suite."""

from delassus_ros.testing.conformance import CHECKS, ConformanceError
from delassus_ros.testing.random_trees import ALL, SIMPLE, random_problem, random_robot

__all__ = ["ALL", "CHECKS", "SIMPLE", "ConformanceError", "random_problem", "random_robot"]
