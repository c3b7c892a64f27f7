"""Solvers: from a problem to matrices at one configuration, in a control loop, or in a batch."""

from delassus.solver.batch import BatchSolution
from delassus.solver.bound import BoundSolver
from delassus.solver.solution import Solution, TaskSolution
from delassus.solver.solver import DelassusSolver
from delassus.solver.task_export import export_task_space

__all__ = [
    "BatchSolution",
    "BoundSolver",
    "DelassusSolver",
    "Solution",
    "TaskSolution",
    "export_task_space",
]
