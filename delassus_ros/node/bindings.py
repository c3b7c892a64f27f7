"""Buffers of solvers, made before they are needed: a back end may take many periods for it."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from delassus_ros.bound_solver import BoundSolver
from delassus_ros.solver import DelassusSolver


class Bindings:
    """One binding per solver, as long as the solver lives."""

    def __init__(self) -> None:
        self._made: WeakKeyDictionary[DelassusSolver, BoundSolver] = WeakKeyDictionary()

    def of(self, solver: DelassusSolver) -> BoundSolver:
        """Return the binding of a solver; made now if it is asked for for the first time.

        It may be made by another thread than the one that computes with it.

        Raises
        ------
        AlgorithmError
            If the algorithm cannot be prepared for the problem.
        """
        bound = self._made.get(solver)
        if bound is None:
            bound = self._made[solver] = solver.bind()
        return bound
