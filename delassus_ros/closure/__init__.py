"""Positions of all joints of a robot with closed loops, from some of them."""

from delassus_ros.closure.bound import BoundClosure
from delassus_ros.closure.closure import Closure, ClosureResult
from delassus_ros.closure.path import ClosureStatus

__all__ = ["BoundClosure", "Closure", "ClosureResult", "ClosureStatus"]
