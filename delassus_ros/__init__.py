"""The Delassus matrix G = J M⁻¹ Jᵀ of a robot's contacts, compiled for that robot.

>>> robot = Robot.from_urdf("quadruped.urdf")
>>> contacts = ContactSet([Contact("LF", frame="LF_FOOT"), Contact("RH", frame="RH_FOOT")])
>>> solver = DelassusSolver(Problem(robot, contacts))
>>> solver.solve(robot.neutral(), active=["LF"]).matrix  # doctest: +SKIP
"""

from delassus_ros.algorithms import Status
from delassus_ros.closure import Closure, ClosureStatus
from delassus_ros.contact_forces import (
    BatchContactForces,
    ContactForces,
    ForceSolver,
    ForceStatus,
    solve_contacts,
    solve_contacts_batch,
)
from delassus_ros.contacts import (
    CenterOfMass,
    CentroidalMomentum,
    Contact,
    ContactSet,
    RelativeContact,
    WeightedSum,
)
from delassus_ros.errors import (
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
from delassus_ros.model import Robot, Transform
from delassus_ros.problem import Problem
from delassus_ros.solver import BatchSolution, BoundSolver, DelassusSolver, Solution
from delassus_ros.version import __version__

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
