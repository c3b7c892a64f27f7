"""Matrices of the soak run, computed again by an algorithm of another family."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from delassus_ros import Contact, ContactSet, DelassusSolver, Problem, Robot
from delassus_ros.sim.humanoid import CONTACTS, Motion, humanoid_urdf

_TOLERANCE = 1e-10  # relative
_ALGORITHM = "ltl"  # factorises the mass matrix, as the recursive algorithms do not


def problem() -> Problem:
    """Return what the node solves in the soak run."""
    robot = Robot.from_urdf(humanoid_urdf().encode())
    contacts = (Contact(name, frame, "surface") for name, frame in CONTACTS.items())
    return Problem(robot, ContactSet(contacts))


def recomputed(
    stamps: npt.NDArray[np.int64], matrices: npt.NDArray[np.float64]
) -> tuple[int, int]:
    """Return how many matrices there are, and how many differ from the other algorithm's.

    Parameters
    ----------
    stamps
        Of the joint states, (n,), ns; they tell the positions.
    matrices
        As published, (n, m, m), 1/kg, 1/(kg m), 1/(kg m²).
    """
    if not len(stamps):
        return 0, 0
    solver = DelassusSolver(problem(), _ALGORITHM)
    motion = Motion(solver.problem.robot.joint_names)
    expected = np.array([solver.solve(motion.at(int(stamp))).matrix for stamp in stamps])
    error = np.linalg.norm(matrices - expected, axis=(1, 2))
    right = error <= _TOLERANCE * np.linalg.norm(expected, axis=(1, 2))
    return len(stamps), int((~right).sum())
