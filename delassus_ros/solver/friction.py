"""The contact-force solvers of a solution's active contacts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike

from delassus_ros.arguments import numbers
from delassus_ros.contact_forces.forces import ForceOptions, ForceSolver, SolverOptions, solver_for
from delassus_ros.contact_forces.machine_code import SPEED
from delassus_ros.contact_forces.results import ContactForces, Law
from delassus_ros.contact_forces.rows import per_contact
from delassus_ros.contacts import Contact
from delassus_ros.errors import InputError, listed
from delassus_ros.model.spatial import Array
from delassus_ros.outputs import OutputArrays
from delassus_ros.problem import Problem
from delassus_ros.recent import Recent

if TYPE_CHECKING:
    from delassus_ros.solver.solution import Solution

PerContact: TypeAlias = ArrayLike | Mapping[str, float]
"""Numbers of contacts: one for all, one for each active contact, or by name."""
_MOST_SETS = 64
"""Number of sets of active contacts whose solvers are kept; n contacts have 2**n sets."""


@dataclass(frozen=True)
class ForceSettings:
    """Friction and law of contact forces whose contacts do not say them.

    Attributes
    ----------
    friction : coefficient μ of contacts that have none.
    law : "coulomb" or "convex"; "auto" is another name of "coulomb".
    slip_speed, leave_speed, strike_speed : those of
        :class:`~delassus_ros.contact_forces.forces.ForceOptions` [m/s].
    """

    friction: float = 0.6
    law: Law = "coulomb"
    slip_speed: float = SPEED
    leave_speed: float = SPEED
    strike_speed: float = SPEED

    @property
    def options(self) -> ForceOptions:
        """Arguments of a solver besides the friction."""
        return {
            "law": self.law, "slip_speed": self.slip_speed, "leave_speed": self.leave_speed,
            "strike_speed": self.strike_speed,
        }  # fmt: skip


def active_solver(
    problem: Problem | None,
    active: Sequence[str],
    friction: PerContact | None,
    options: ForceOptions,
    restitution: PerContact | None = None,
) -> ForceSolver:
    """Return this thread's solver for the active contacts.

    Parameters
    ----------
    friction : coefficient of contacts that have none; or one for each active contact, or by name,
        instead of the contacts'; None for the contacts' alone.
    options : arguments of the solver; dimensions (2,) are those of surfaces that have none.
    restitution : at the velocity level; None at that of accelerations.

    Raises
    ------
    InputError
        If there is no problem, a coefficient is missing, a contact is a selection, or `options`
        have a restitution.
    """
    contacts = _contacts(problem, active)
    _refuse_unknown(problem, friction)
    kinds, coefficients, known = _arguments(contacts, friction, options)
    if restitution is not None:
        known["restitution"] = _of_active("restitution", restitution, active)
    return solver_for(kinds, coefficients, known)


def new_solver(
    problem: Problem, active: Sequence[str], friction: PerContact | None, options: ForceOptions
) -> ForceSolver:
    """Return a solver for the active contacts that nothing else uses; see :func:`active_solver`.

    Raises
    ------
    InputError
        If a coefficient is missing, or a contact is a selection or a surface without dimensions.
    """
    kinds, coefficients, known = _arguments(_contacts(problem, active), friction, options)
    return ForceSolver(kinds, coefficients, **known)


def _refuse_unknown(problem: Problem | None, friction: PerContact | None) -> None:
    if problem is not None and isinstance(friction, Mapping):
        for name in friction:
            if name not in problem.contacts.names:
                raise InputError(f"friction: {problem.contacts.unknown(str(name))}")


def _arguments(
    contacts: Sequence[Contact], friction: PerContact | None, options: ForceOptions
) -> tuple[list[str], ArrayLike, SolverOptions]:
    """Return the arguments of a solver; :func:`active_solver` explains."""
    if "restitution" in options:
        raise InputError(
            "restitution is a matter of velocities, not of accelerations; expected it in "
            "solution.contact_impulses(rates, friction, restitution)"
        )
    known = cast(SolverOptions, options.copy())
    known["dimensions"] = dimensions_of(contacts, options.get("dimensions"))
    if options.get("normals") is None:
        known["normals"] = [contact.normal for contact in contacts]
    kinds = [contact.kind_name for contact in contacts]
    return kinds, friction_of(contacts, friction), known


def _of_active(what: str, values: PerContact, active: Sequence[str]) -> ArrayLike:
    if not isinstance(values, Mapping):
        return values
    missing = [name for name in active if name not in values]
    if missing:
        raise InputError(f"{what} lacks {listed('contact', missing)}")
    return [values[name] for name in active]


def _contacts(problem: Problem | None, active: Sequence[str]) -> list[Contact]:
    if problem is None:
        raise InputError("this solution has no problem, which tells the kinds of contacts")
    by_name = {contact.name: contact for contact in problem.contacts}
    contacts = [by_name[name] for name in active]
    for contact in contacts:
        if contact.kind_name not in ("point", "surface"):
            raise InputError(
                f"contact {contact.name!r} is of kind {contact.kind_name!r}; friction needs "
                "points and surfaces. solve_contacts takes rows of any kind"
            )
    return contacts


def friction_of(contacts: Sequence[Contact], friction: PerContact | None) -> ArrayLike:
    """Return one coefficient per contact.

    Parameters
    ----------
    friction : coefficient of contacts that have none, one for each contact, or by name.

    Raises
    ------
    InputError
        If a coefficient is missing; names the contacts.
    """
    by_name: Mapping[str, float] = {}
    default: float | None = None
    if isinstance(friction, Mapping):
        by_name = friction
    elif friction is not None:
        values = numbers("friction", friction)
        if values.ndim:
            return values
        default = float(values)
    found: list[float] = []
    missing: list[str] = []
    for contact in contacts:
        own = default if contact.friction is None else contact.friction
        coefficient = by_name.get(contact.name, own)
        if coefficient is None:
            missing.append(contact.name)
        else:
            found.append(coefficient)
    if missing:
        raise InputError(
            f"friction lacks {listed('contact', missing)}: Contact(…, friction=0.6), or the "
            "argument friction"
        )
    return found


def dimensions_of(contacts: Sequence[Contact], dimensions: ArrayLike | None) -> Array:
    """Return dimensions (contacts, 2) of surfaces [m], NaN for contacts without dimensions.

    Parameters
    ----------
    dimensions : (2,) of surfaces that have none, or (contacts, 2) instead of the contacts'.

    Raises
    ------
    InputError
        If the dimensions are not numbers, or a surface has none.
    """
    given = None if dimensions is None else numbers("dimensions", dimensions)
    if given is not None and given.shape != (2,):
        return given
    default = (np.nan, np.nan) if given is None else given
    own = [default if c.dimensions is None else c.dimensions for c in contacts]
    found = np.array(own, float).reshape(-1, 2)
    for contact, sizes in zip(contacts, found, strict=True):
        if contact.kind_name == "surface" and np.isnan(sizes).any():
            raise InputError(
                f"contact {contact.name!r} is a surface and has no dimensions; expected length "
                "and width in m: Contact(…, dimensions=(0.2, 0.1)), or the argument dimensions"
            )
    return found


def accelerations_and_velocities(solution: OutputArrays) -> tuple[Array, Array]:
    """Return free accelerations and velocities of the contacts' material points, in their rows.

    Parameters
    ----------
    solution : with the output ``a0``; in contact axes, which turn, the accelerations differ from
        ``a0`` by ``turning``.

    Raises
    ------
    InputError
        If an output is missing.
    """
    a0, v = solution.output("a0"), solution.output("v")
    turning = solution.secondary.get("turning")
    return (a0 if turning is None else a0 + turning), v


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
        _refuse_unknown(problem, friction)
        self._names = () if problem is None else problem.contacts.names
        self._kinds, coefficients, self._options = _arguments(
            _contacts(problem, self._names), friction, options
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
