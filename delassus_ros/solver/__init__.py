"""Solvers: from a problem to matrices at one configuration, in a control loop, or in a batch."""

from delassus_ros.solver.batch import BatchSolution
from delassus_ros.solver.bound import BoundSolver
from delassus_ros.solver.solution import Solution, TaskSolution
from delassus_ros.solver.solver import DelassusSolver
from delassus_ros.solver.task_export import export_task_space

__all__ = [
    "BatchSolution",
    "BoundSolver",
    "DelassusSolver",
    "Solution",
    "TaskSolution",
    "export_task_space",
]
