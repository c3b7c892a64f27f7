"""Contact forces with friction, on any Delassus matrix."""

from delassus_ros.contact_forces.forces import (
    ContactForces,
    ForceSolver,
    ForceStatus,
    solve_contacts,
)

__all__ = ["ContactForces", "ForceSolver", "ForceStatus", "solve_contacts"]
