"""Contact-force solvers of active contacts: friction, dimensions and options of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike

from delassus.arguments import numbers
from delassus.contact_forces.forces import ForceOptions, ForceSolver, SolverOptions, solver_for
from delassus.contact_forces.machine_code import SPEED
from delassus.contact_forces.results import Law
from delassus.contacts import Contact
from delassus.errors import InputError, listed
from delassus.model.spatial import Array
from delassus.outputs import OutputArrays
from delassus.problem import Problem

PerContact: TypeAlias = ArrayLike | Mapping[str, float]
"""Numbers of contacts: one for all, one for each active contact, or by name."""


@dataclass(frozen=True)
class ForceSettings:
    """Friction and law of contact forces whose contacts do not say them.

    Attributes
    ----------
    friction : coefficient μ of contacts that have none.
    law : "coulomb" or "convex"; "auto" is another name of "coulomb".
    slip_speed, leave_speed, strike_speed : those of
        :class:`~delassus.contact_forces.forces.ForceOptions` [m/s].
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
    contacts = contacts_of(problem, active)
    refuse_unknown(problem, friction)
    kinds, coefficients, known = solver_arguments(contacts, friction, options)
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
    kinds, coefficients, known = solver_arguments(contacts_of(problem, active), friction, options)
    return ForceSolver(kinds, coefficients, **known)


def refuse_unknown(problem: Problem | None, friction: PerContact | None) -> None:
    """Raise InputError if friction by name has a contact that the problem lacks."""
    if problem is not None and isinstance(friction, Mapping):
        for name in friction:
            if name not in problem.contacts.names:
                raise InputError(f"friction: {problem.contacts.unknown(str(name))}")


def solver_arguments(
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


def contacts_of(problem: Problem | None, active: Sequence[str]) -> list[Contact]:
    """Return the active contacts; InputError for contacts other than points and surfaces."""
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
