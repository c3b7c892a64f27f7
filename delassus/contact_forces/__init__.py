"""Contact forces with friction, on any Delassus matrix."""

from delassus.contact_forces.forces import ForceSolver, solve_contacts, solve_contacts_batch
from delassus.contact_forces.results import BatchContactForces, ContactForces, ForceStatus

__all__ = [
    "BatchContactForces",
    "ContactForces",
    "ForceSolver",
    "ForceStatus",
    "solve_contacts",
    "solve_contacts_batch",
]
