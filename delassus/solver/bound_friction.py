"""Contact forces of a bound solution, computed in place."""

from __future__ import annotations

import numpy as np

from delassus.arguments import numbers
from delassus.contact_forces.forces import ForceOptions, ForceSolver
from delassus.contact_forces.results import ContactForces
from delassus.contact_forces.rows import per_contact
from delassus.recent import Recent
from delassus.solver.friction import (
    PerContact,
    contacts_of,
    refuse_unknown,
    solver_arguments,
)
from delassus.solver.solution import Solution

_MOST_SETS = 64
"""Number of sets of active contacts whose solvers are kept; n contacts have 2**n sets."""


class BoundFriction:
    """Contact forces of a bound solution, without new arrays: a solver per set of contacts.

    Parameters
    ----------
    solution : of the bound solver, with a problem and the output ``a0``.
    friction : coefficient of contacts that have none; or one for each contact of the problem, or
        by name, instead of the contacts'; None for the contacts' alone.
    options : arguments of the solver; those per contact are for all contacts of the problem.

    Raises
    ------
    InputError
        For wrong arguments; a coefficient may be missing of no contact, active or not.
    """

    def __init__(
        self, solution: Solution, friction: PerContact | None, options: ForceOptions
    ) -> None:
        solution.output("a0")
        problem = solution.problem
        refuse_unknown(problem, friction)
        self._names = () if problem is None else problem.contacts.names
        self._kinds, coefficients, self._options = solver_arguments(
            contacts_of(problem, self._names), friction, options
        )
        ForceSolver(self._kinds, coefficients, **self._options)  # refuses wrong arguments
        self._friction = per_contact("friction", coefficients, len(self._names))
        self._solution = solution
        self._solvers: Recent[tuple[str, ...], ForceSolver] = Recent(_MOST_SETS)
        self._last: ContactForces | None = None
        self.select()

    def select(self) -> None:
        """Follow the active contacts of the solution."""
        found = self._solution
        self._solver, self._v = self._of_active(), found.output("v")
        self._a0 = self._material = found.output("a0")
        self._turning = found.secondary.get("turning")
        if self._turning is not None:
            self._material = np.empty(len(self._a0))

    def compute(self, warm: bool) -> ContactForces:
        """Return the forces; see :meth:`BoundSolver.contact_forces`."""
        solver, last = self._solver, self._last
        start = None
        if warm and last is not None:
            own = solver.result
            if last is not own:
                start = last.start(own.contacts, own.cone_offsets)
            elif own.is_start:
                start = own.cone_forces
        if self._turning is not None:
            np.add(self._a0, self._turning, out=self._material)
        found = self._last = solver.solve_in_place(
            self._solution.matrix, self._material, start, self._v
        )
        return found

    def _of_active(self) -> ForceSolver:
        active = self._solution.contacts
        solver = self._solvers.get(active)
        if solver is None:
            rows = [self._names.index(name) for name in active]
            options = self._options.copy()
            options["dimensions"] = np.asarray(options["dimensions"])[rows]
            options["normals"] = [(options["normals"] or ())[row] for row in rows]
            compliance = numbers("compliance", options.get("compliance", 0.0))
            options["compliance"] = compliance[rows] if compliance.ndim else compliance
            kinds = [self._kinds[row] for row in rows]
            solver = ForceSolver(kinds, self._friction[rows], **options)
            solver.result.contacts = active
            self._solvers.put(active, solver)
        return solver
