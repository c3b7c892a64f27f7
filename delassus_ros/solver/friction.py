"""The contact-force solver of a solution's active contacts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from numpy.typing import ArrayLike

from delassus_ros.contact_forces.forces import ForceOptions, ForceSolver, solver_for
from delassus_ros.errors import InputError, listed
from delassus_ros.problem import Problem


def active_solver(
    problem: Problem | None,
    active: Sequence[str],
    friction: ArrayLike | Mapping[str, float],
    options: ForceOptions,
) -> ForceSolver:
    """Return this thread's solver for the active contacts.

    Parameters
    ----------
    friction : coefficient of all contacts, one for each active contact, or by name.
    options : arguments of the solver.

    Raises
    ------
    InputError
        If there is no problem, a coefficient is missing, or a contact is a selection.
    """
    if problem is None:
        raise InputError("this solution has no problem, which tells the kinds of contacts")
    known = {contact.name: contact.kind_name for contact in problem.contacts}
    kinds = [known[name] for name in active]
    if "selection" in kinds:
        name = active[kinds.index("selection")]
        raise InputError(
            f"contact {name!r} is a selection of rows; friction needs points and surfaces. "
            "solve_contacts takes rows of any kind"
        )
    if isinstance(friction, Mapping):
        missing = [name for name in active if name not in friction]
        if missing:
            raise InputError(f"friction lacks {listed('contact', missing)}")
        friction = [friction[name] for name in active]
    return solver_for(kinds, friction, options)
