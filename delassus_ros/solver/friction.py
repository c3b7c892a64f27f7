"""The contact-force solver of a solution's active contacts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from delassus_ros.arguments import numbers
from delassus_ros.contact_forces.forces import ForceOptions, ForceSolver, solver_for
from delassus_ros.contacts import Contact
from delassus_ros.errors import InputError, listed
from delassus_ros.model.spatial import Array
from delassus_ros.problem import Problem


def active_solver(
    problem: Problem | None,
    active: Sequence[str],
    friction: ArrayLike | Mapping[str, float] | None,
    options: ForceOptions,
) -> ForceSolver:
    """Return this thread's solver for the active contacts.

    Parameters
    ----------
    friction : coefficient of contacts that have none, one for each active contact, or by name;
        None for the contacts' alone.
    options : arguments of the solver. Normals, and dimensions with one row for each active
        contact, stand instead of the contacts'; other dimensions are of surfaces that have none.

    Raises
    ------
    InputError
        If there is no problem, a coefficient is missing, or a contact is a selection.
    """
    contacts = _active(problem, active)
    kinds = [contact.kind_name for contact in contacts]
    known = options.copy()
    known["dimensions"] = dimensions_of(contacts, options.get("dimensions"))
    if options.get("normals") is None:
        known["normals"] = [contact.normal for contact in contacts]
    return solver_for(kinds, _friction_of(contacts, friction), known)


def _active(problem: Problem | None, active: Sequence[str]) -> list[Contact]:
    if problem is None:
        raise InputError("this solution has no problem, which tells the kinds of contacts")
    by_name = {contact.name: contact for contact in problem.contacts}
    contacts = [by_name[name] for name in active]
    for contact in contacts:
        if contact.kind_name == "selection":
            raise InputError(
                f"contact {contact.name!r} is a selection of rows; friction needs points and "
                "surfaces. solve_contacts takes rows of any kind"
            )
    return contacts


def _friction_of(
    contacts: Sequence[Contact], friction: ArrayLike | Mapping[str, float] | None
) -> ArrayLike:
    """Return one coefficient per contact."""
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
        If the dimensions are not numbers.
    """
    given = None if dimensions is None else numbers("dimensions", dimensions)
    if given is not None and given.shape != (2,):
        return given
    default = (np.nan, np.nan) if given is None else given
    own = [default if c.dimensions is None else c.dimensions for c in contacts]
    return np.array(own, float).reshape(-1, 2)
