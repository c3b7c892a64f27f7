"""Contact forces of the node: computed, judged and written to messages.

A solve that is not SOLVED is never OK.
"""

from __future__ import annotations

import array
from collections.abc import Container, Sequence
from dataclasses import dataclass

import numpy as np
from delassus_msgs.msg import ContactDynamics
from numpy.typing import NDArray

from delassus.contact_forces.forces import ForceSolver
from delassus.contact_forces.results import ContactForces, ForceStatus
from delassus.contacts import Contact, direction
from delassus.model.spatial import Array
from delassus.problem import Problem
from delassus.recent import Recent
from delassus.solver.friction import (
    ForceSettings,
    accelerations_and_velocities,
    friction_of,
    new_solver,
)
from delassus.solver.solution import Solution
from delassus_ros.inputs.findings import Finding, Reason, Validity, doubtful

NUMBERS = ("forces_residual", "forces_validity", "forces_status", "forces_law")
"""Fields of a message that :meth:`ForceResult.numbers` returns, in their order."""
_NO_LAW = ContactDynamics.LAW_NONE
_LAWS = {"coulomb": ContactDynamics.LAW_COULOMB, "convex": ContactDynamics.LAW_CONVEX}
_STATUSES: dict[ForceStatus, int] = {
    status: getattr(ContactDynamics, f"FORCES_{status.name}")
    for status in ForceStatus
    if status is not ForceStatus.REFUSED  # of arguments that the node checks
}
LAW_NAMES = {number: name for name, number in _LAWS.items()}
STATUS_NAMES = {number: status.name for status, number in _STATUSES.items()}
"""Names by the constants of the message."""
_JUDGEMENTS = {
    ForceStatus.SOLVED: (Validity.OK, Reason.NONE, ""),
    ForceStatus.INACCURATE: (
        Validity.DEGRADED, Reason.FORCES_INACCURATE, "contact forces are inaccurate",
    ),
    ForceStatus.FAILED: (
        Validity.INVALID, Reason.FORCES_NOT_CONVERGED, "contact forces did not converge",
    ),
    ForceStatus.INFEASIBLE: (
        Validity.INVALID, Reason.FORCES_INFEASIBLE, "no contact forces obey the law",
    ),
    ForceStatus.NOT_FINITE: (
        Validity.INVALID, Reason.RESULT_NOT_FINITE, "contact forces have no finite matrix and a0",
    ),
    ForceStatus.STRIKING: (
        Validity.INVALID, Reason.FORCES_STRIKING, "no finite contact forces, see contact_impulses",
    ),
    ForceStatus.JAMMED: (
        Validity.INVALID, Reason.FORCES_JAMMED, "no contact forces, or several",
    ),
}  # fmt: skip
_MOST_SOLVERS = 64
_SOLVED = ForceStatus.SOLVED


@dataclass(slots=True)
class ForceResult:
    """Contact forces of one solution, with their validity.

    Attributes
    ----------
    forces : (m,) for the rows of the solution; NaN if the validity is INVALID.
    friction, normals : coefficients (contacts,) and directions (contacts, 3) of the contacts of
        the solution.
    found : forces of the contacts that touch; None while it is unknown which do.
    validity : validity of the forces where the matrix is OK.
    finding : why they are not OK, which makes a message DEGRADED; None if they are OK.
    """

    forces: Array
    friction: Array
    normals: Array
    found: ContactForces | None
    validity: Validity
    finding: Finding | None

    def numbers(self, degraded: bool) -> tuple[float, int, int, int]:
        """Return the values of :data:`NUMBERS`.

        Parameters
        ----------
        degraded : whether the message is DEGRADED for other reasons.
        """
        found = self.found
        if found is None:
            return -1.0, int(Validity.INVALID), ContactDynamics.FORCES_NONE, _NO_LAW
        validity = min(self.validity, Validity.DEGRADED) if degraded else self.validity
        return (
            found.residual,
            int(validity),
            _STATUSES[found.status],
            _LAWS.get(found.law, _NO_LAW),
        )

    def write(self, message: ContactDynamics) -> None:
        """Write all fields about forces but the forces; the message's validity is set before."""
        message.friction = array.array("d", self.friction.tobytes())
        message.normals = array.array("d", self.normals.tobytes())
        degraded = message.validity != ContactDynamics.VALIDITY_OK
        for name, value in zip(NUMBERS, self.numbers(degraded), strict=True):
            setattr(message, name, value)


@dataclass(slots=True)
class _Cones:
    """Data for the forces of a set of contacts, made at the first solve of the set."""

    solver: ForceSolver
    friction: Array
    normals: Array
    rows: NDArray[np.int64] | None


class ForceOutput:
    """Contact forces of successive solutions of a problem.

    Each solve begins with the forces of the one before, by the names of the contacts.

    Parameters
    ----------
    problem : problem whose contacts are points and surfaces with dimensions.
    is_moving : whether velocities of the contacts are known; else all contacts are at rest.

    Raises
    ------
    InputError
        If a contact is a selection, or a surface without dimensions; names the contact.
    """

    def __init__(self, problem: Problem, is_moving: bool = True) -> None:
        self._problem, self._is_moving = problem, is_moving
        self._settings = ForceSettings()
        self._cones: Recent[tuple[tuple[str, ...], tuple[str, ...]], _Cones] = (
            Recent(_MOST_SOLVERS)
        )
        self._last: ContactForces | None = None
        self._cones_of(problem.contacts.names, problem.contacts.names)

    def reset(self) -> None:
        """Begin the next solve without forces of an earlier one."""
        self._last = None

    def solve(
        self, solution: Solution, touching: Container[str] | None, settings: ForceSettings
    ) -> ForceResult:
        """Return the forces of a solution.

        Parameters
        ----------
        solution : solution with the output a0.
        touching : contacts that touch, those of the solution if None; the forces of its other
            contacts are zero.
        settings : friction of contacts that have none, law and velocities.
        """
        if settings != self._settings:
            self._settings = settings
            self._cones.clear()
        names = solution.contacts
        if touching is not None:
            names = tuple(name for name in names if name in touching)
        cones = self._cones.get((solution.contacts, names))
        if cones is None:
            cones = self._cones_of(solution.contacts, names)
        G, (a0, v), rows = solution.matrix, accelerations_and_velocities(solution), cones.rows
        if rows is not None:
            G, a0, v = G[np.ix_(rows, rows)], a0[rows], v[rows]
        solver, last = cones.solver, self._last
        start = None
        if last is not None:
            same = last.contacts == names
            start = last.cone_forces if same else last.start(names, solver.rows.offsets)
        found = solver.solve(G, a0, start, v if self._is_moving else None)
        found.contacts = names
        usable = found.is_start
        self._last = found if usable else None
        forces = found.forces
        if not usable:
            forces = np.full(len(solution.matrix), np.nan)
        elif rows is not None:
            forces = np.zeros(len(solution.matrix))
            forces[rows] = found.forces
        validity, reason, text = _JUDGEMENTS[found.status]
        finding = None if found.status is _SOLVED else doubtful(reason, _description(text, found))
        return ForceResult(forces, cones.friction, cones.normals, found, validity, finding)

    def unknown(self, solution: Solution, settings: ForceSettings) -> ForceResult:
        """Return the INVALID forces of a solution while it is unknown which contacts touch."""
        self.reset()
        contacts = [c for c in self._problem.contacts if c.name in solution.contacts]
        nothing = np.full(len(solution.matrix), np.nan)
        friction, normals = _directions(contacts, settings)
        return ForceResult(nothing, friction, normals, None, Validity.INVALID, None)

    def _cones_of(self, contacts: tuple[str, ...], touching: tuple[str, ...]) -> _Cones:
        problem, settings = self._problem, self._settings
        by_name = {contact.name: contact for contact in problem.contacts}
        chosen = [by_name[name] for name in contacts]
        rows = None
        if touching != contacts:
            touches = [contact.name in touching for contact in chosen]
            rows = np.flatnonzero(np.repeat(touches, [contact.rows for contact in chosen]))
        cones = _Cones(
            new_solver(problem, touching, settings.friction, settings.options),
            *_directions(chosen, settings),
            rows,
        )
        self._cones.put((contacts, touching), cones)
        return cones


def _directions(contacts: Sequence[Contact], settings: ForceSettings) -> tuple[Array, Array]:
    """Return coefficients (k,) and normals (k, 3) of contacts."""
    friction = np.array(friction_of(contacts, settings.friction), float)
    return friction, np.array([direction(c.normal) for c in contacts]).reshape(-1, 3)


def _description(text: str, found: ContactForces) -> str:
    """Return why forces are not OK, in words."""
    if found.fault:
        return f"{text}: {found.fault}"
    if found.status is ForceStatus.NOT_FINITE:
        return text
    return f"{text}: residual {found.residual:.3g}, law {found.law}"
