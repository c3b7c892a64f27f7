"""Solutions of contact problems by the library, checked by the independent residual."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks.contact_problems.generator import ContactProblem
from benchmarks.contact_problems.residual import point_residual
from delassus import solve_contacts
from delassus.model.spatial import Array

LAWS = ("coulomb", "convex")


@dataclass(frozen=True, eq=False)
class Checked:
    """Forces of one problem under one law.

    Attributes
    ----------
    forces, accelerations : (3n,), N and m/s².
    residual : of the independent function, in scaled rows, as a share of the norm of a0.
    status : of the solver.
    """

    forces: Array
    accelerations: Array
    residual: float
    status: str


@dataclass(frozen=True, eq=False)
class Solved:
    """A problem and its solutions by law."""

    problem: ContactProblem
    solutions: dict[str, Checked]


def solutions(problems: Iterable[ContactProblem]) -> list[Solved]:
    """Return problems with their solutions under both laws."""
    found = []
    for p in problems:
        by_law = {}
        for law in LAWS:
            forces = solve_contacts(p.G, p.a0, friction=p.mu, law=law)  # type: ignore[arg-type]
            r = point_residual(p.G, p.a0, p.mu, forces.forces, law)
            by_law[law] = Checked(forces.forces, forces.accelerations, r, forces.status.name)
        found.append(Solved(p, by_law))
    return found
