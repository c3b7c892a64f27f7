"""Positions of all joints of a robot with closed loops, from positions of some joints."""

from delassus_ros.closure.bound import BoundClosure
from delassus_ros.closure.closure import Closure, ClosureResult
from delassus_ros.closure.path import ClosureStatus

__all__ = ["BoundClosure", "Closure", "ClosureResult", "ClosureStatus"]
