"""The load of the soak run: a humanoid with 30 swinging joints, and recomputed matrices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from delassus import Contact, ContactSet, DelassusSolver, Problem, Robot
from delassus.robots.built_in.humanoid import FEET, HANDS, humanoid_urdf

CONTACTS = {**FEET, **HANDS}
"""Contacts of the humanoid, all of kind surface, and their frames: 24 rows."""
TWIST = (0.2, 0.0, -0.1, 0.0, 0.0, 0.3)
"""Twist of the upright pelvis, linear first [m/s, rad/s]: rotation only about the vertical."""
_GRAVITY = (0.0, 0.0, -9.81)
_TOLERANCE = 1e-10  # relative
_ALGORITHM = "ltl"  # factorises the mass matrix, unlike the recursive algorithms


class JointSwing:
    """Joint positions over time: joints swing about a bent posture at different frequencies.

    Parameters
    ----------
    joints
        Names of the joints, in the order of the positions.
    """

    def __init__(self, joints: tuple[str, ...]) -> None:
        self._middle = np.array([0.6 if name.endswith("shank_joint") else 0.1 for name in joints])
        self._pace = 2.0 * np.pi * np.linspace(0.3, 1.1, len(joints))
        self._phase = np.linspace(0.0, 5.0, len(joints))

    def at(self, number: int) -> npt.NDArray[np.float64]:
        """Return the positions [rad] of joint state `number`, at 1 kHz."""
        swing = np.sin(self._pace * (1e-3 * number) + self._phase)
        return np.asarray(self._middle + 0.3 * swing, dtype=np.float64)

    def rates(self, number: int) -> npt.NDArray[np.float64]:
        """Return the velocities [rad/s] of joint state `number`."""
        swing = np.cos(self._pace * (1e-3 * number) + self._phase)
        return np.asarray(0.3 * self._pace * swing, dtype=np.float64)


def problem(outputs: Sequence[str] = ()) -> Problem:
    """Return the problem of the node in the soak run, with outputs besides the matrix."""
    robot = Robot.from_urdf(humanoid_urdf().encode())
    contacts = (Contact(name, frame, "surface") for name, frame in CONTACTS.items())
    return Problem(robot, ContactSet(contacts), outputs=outputs)


def recomputed(
    sent: npt.NDArray[np.int64],
    stamps: npt.NDArray[np.int64],
    kept: npt.NDArray[np.float64],
    names: Sequence[str] = ("G",),
) -> tuple[int, int]:
    """Return the number of answers, and of answers that differ from another algorithm's results.

    Parameters
    ----------
    sent
        Stamps of all sent joint states [ns], rising; the index of a stamp determines the
        positions.
    stamps
        Stamps of the kept answers (n,) [ns].
    kept
        Numbers of all outputs of the kept answers, output by output (n, size).
    names
        The outputs.
    """
    if not len(stamps):
        return 0, 0
    solver = DelassusSolver(problem(names), _ALGORITHM)
    needed = {port.name for port in solver.problem.inputs}
    motion = JointSwing(solver.problem.robot.joint_names)
    wrong = 0
    for number, found in zip(np.searchsorted(sent, stamps).tolist(), kept, strict=True):
        arguments = {
            "rates": np.r_[TWIST, motion.rates(number)],
            "torques": np.zeros(len(TWIST) + len(motion.at(0))),
            "gravity": np.array(_GRAVITY),
        }
        inputs = {name: values for name, values in arguments.items() if name in needed}
        solution = solver.solve(motion.at(number), **inputs)
        expected = [solution.matrix if name == "G" else solution.output(name) for name in names]
        parts = np.split(found, np.cumsum([part.size for part in expected])[:-1])
        wrong += not all(
            np.linalg.norm(part - right.ravel()) <= _TOLERANCE * np.linalg.norm(right)
            for part, right in zip(parts, expected, strict=True)
        )
    return len(stamps), wrong
