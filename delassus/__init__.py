"""The Delassus matrix G = J M⁻¹ Jᵀ of a robot's contacts, compiled for that robot.

>>> robot = Robot.from_urdf("quadruped.urdf")
>>> contacts = ContactSet([Contact("LF", frame="LF_FOOT"), Contact("RH", frame="RH_FOOT")])
>>> solver = DelassusSolver(Problem(robot, contacts))
>>> solver.solve(robot.neutral(), active=["LF"]).matrix  # doctest: +SKIP
"""

from delassus.algorithms import Status
from delassus.closure import Closure, ClosureStatus
from delassus.contact_forces import (
    BatchContactForces,
    ContactForces,
    ForceSolver,
    ForceStatus,
    solve_contacts,
    solve_contacts_batch,
)
from delassus.contacts import (
    CenterOfMass,
    CentroidalMomentum,
    Contact,
    ContactSet,
    RelativeContact,
    WeightedSum,
)
from delassus.errors import (
    AlgorithmError,
    CompilerError,
    ContactError,
    DelassusError,
    DelassusWarning,
    GeometryError,
    InputError,
    NumericalError,
    ProblemError,
    RobotError,
)
from delassus.model import Robot, Transform
from delassus.problem import Problem
from delassus.solver import BatchSolution, BoundSolver, DelassusSolver, Solution
from delassus.version import __version__

__all__ = [
    "AlgorithmError",
    "BatchContactForces",
    "BatchSolution",
    "BoundSolver",
    "CenterOfMass",
    "CentroidalMomentum",
    "Closure",
    "ClosureStatus",
    "CompilerError",
    "Contact",
    "ContactError",
    "ContactForces",
    "ContactSet",
    "DelassusError",
    "DelassusSolver",
    "DelassusWarning",
    "ForceSolver",
    "ForceStatus",
    "GeometryError",
    "InputError",
    "NumericalError",
    "Problem",
    "ProblemError",
    "RelativeContact",
    "Robot",
    "RobotError",
    "Solution",
    "Status",
    "Transform",
    "WeightedSum",
    "__version__",
    "solve_contacts",
    "solve_contacts_batch",
]
