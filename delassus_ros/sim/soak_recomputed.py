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
    sent: npt.NDArray[np.int64],
    stamps: npt.NDArray[np.int64],
    matrices: npt.NDArray[np.float64],
) -> tuple[int, int]:
    """Return how many matrices there are, and how many differ from the other algorithm's.

    Parameters
    ----------
    sent
        Stamps of all joint states that were sent, ns, rising: the number of one tells its
        positions.
    stamps
        Of those that the matrices answer, (n,), ns.
    matrices
        As published, (n, m, m), 1/kg, 1/(kg m), 1/(kg m²).
    """
    if not len(stamps):
        return 0, 0
    solver = DelassusSolver(problem(), _ALGORITHM)
    motion = Motion(solver.problem.robot.joint_names)
    numbers = np.searchsorted(sent, stamps)
    expected = np.array([solver.solve(motion.at(int(number))).matrix for number in numbers])
    error = np.linalg.norm(matrices - expected, axis=(1, 2))
    right = error <= _TOLERANCE * np.linalg.norm(expected, axis=(1, 2))
    return len(stamps), int((~right).sum())
