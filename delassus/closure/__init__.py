"""Positions of all joints of a robot with closed loops, from positions of some joints."""

from delassus.closure.bound import BoundClosure
from delassus.closure.closure import Closure, ClosureResult
from delassus.closure.path import ClosureStatus

__all__ = ["BoundClosure", "Closure", "ClosureResult", "ClosureStatus"]
