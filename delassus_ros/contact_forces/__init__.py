"""Contact forces with friction, on any Delassus matrix."""

from delassus_ros.contact_forces.forces import (
    BatchContactForces,
    ContactForces,
    ForceSolver,
    ForceStatus,
    solve_contacts,
    solve_contacts_batch,
)

__all__ = [
    "BatchContactForces",
    "ContactForces",
    "ForceSolver",
    "ForceStatus",
    "solve_contacts",
    "solve_contacts_batch",
]
