"""Answers to questions about other configurations and algorithms, beside the stream of matrices.

Knows no ROS. The solver it is given computes with buffers of its own, so that the stream's are
not touched.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from delassus_ros import algorithms
from delassus_ros.bound_solver import Solution
from delassus_ros.compiler.kernel import Array
from delassus_ros.conditioning import ConditionMonitor, ConditionSettings, Damping, Examination
from delassus_ros.errors import InputError
from delassus_ros.node.bound_closures import BoundClosures
from delassus_ros.node.closed_gate import complaint_of
from delassus_ros.node.joint_names import JointNames, size_mismatch
from delassus_ros.node.reasons import Complaint, Reason
from delassus_ros.problem import Problem
from delassus_ros.solver import DelassusSolver


@dataclass(frozen=True)
class Applicability:
    """Whether an algorithm can solve a problem.

    Attributes
    ----------
    name : name of the algorithm.
    reason : why not; empty if it can.
    """

    name: str
    reason: str


def reason_against(name: str, problem: Problem) -> str | None:
    """Return why a registered algorithm cannot solve a problem, or None if it can.

    Raises
    ------
    AlgorithmError
        For an unknown algorithm.
    """
    algorithm = algorithms.get(name)
    try:
        return algorithm.supports(problem)
    except Exception as error:
        # A plug-in is somebody else's code: whatever it raises, the node goes on.
        return f"it cannot say: {type(error).__name__}: {error}"


def list_algorithms(problem: Problem | None) -> list[Applicability]:
    """Return all algorithms by name, with the reason where one does not apply.

    Those whose package is missing are among them; without a problem all others apply.
    """
    found = [
        Applicability(name, (problem and reason_against(name, problem)) or "")
        for name in algorithms.names()
    ]
    absent = [Applicability(name, reason) for name, reason in algorithms.unavailable().items()]
    return sorted(found + absent, key=lambda each: each.name)


@dataclass(frozen=True)
class Answer:
    """A matrix that somebody asked for, and what is known about it.

    Attributes
    ----------
    solution : the matrix.
    examination : its condition, exactly.
    caveats : why it is to be used with care; none, and it is right for what was asked.
    """

    solution: Solution
    examination: Examination
    caveats: Reason


class OnDemand:
    """Computes matrices at configurations that somebody asks for.

    Parameters
    ----------
    solver : computes them.
    structural : matrices of all contacts at generic configurations; see
        :class:`~delassus_ros.conditioning.ConditionMonitor`.
    settings : thresholds; its damping is not applied.
    closures : find the joints that are not given, for a robot with couplings or loops; of no
        other use.
    """

    def __init__(
        self,
        solver: DelassusSolver,
        structural: Array,
        settings: ConditionSettings,
        closures: BoundClosures | None = None,
    ) -> None:
        self._solver = solver
        self._closures = closures
        self._joints = solver.problem.robot.joint_names
        # Hysteresis has no meaning between configurations that do not follow each other.
        plain = ConditionSettings(
            settings.characteristic_length, settings.weak, settings.singular, hysteresis=1.0,
            damping=Damping.NONE,
        )  # fmt: skip
        self._monitor = ConditionMonitor(solver.problem, structural, plain)

    def compute(
        self,
        names: Sequence[str],
        positions: ArrayLike,
        active: Iterable[str],
        base_orientation: ArrayLike | None = None,
    ) -> Answer:
        """Return the matrix and what is known about it.

        Parameters
        ----------
        names, positions : joints in any order, and their positions [rad, m]; all joints, or
            those of a robot with couplings or loops that the others follow from. Joints that
            the robot does not have are passed over.
        active : names of the active contacts.
        base_orientation : (4,) unit quaternion x, y, z, w; with world axes and a floating base.

        Raises
        ------
        InputError
            If a joint is missing or listed twice, numbers are missing or not finite, a contact
            is unknown, the orientation is missing, superfluous or no unit quaternion, or
            no positions of the other joints close the loops on the branch of the reference.
        NumericalError
            If the matrix cannot be computed there.
        BeingMadeError
            If the code for other joints than the independent ones or all of them is being made.
        """
        q, complaint = self._q(names, np.asarray(positions, dtype=np.float64).ravel())
        wanted = list(active)
        solution = self._solver.solve(q, wanted, base_orientation)
        self._monitor.activate(wanted)
        seen = self._monitor.examine(solution.matrix, exact=True)
        caveats = Reason.NONE if complaint is None else complaint.reason
        if self._solver.is_approximate:
            caveats |= Reason.APPROXIMATE_ALGORITHM
        return Answer(solution, seen, caveats)

    def _q(self, names: Sequence[str], positions: Array) -> tuple[Array, Complaint | None]:
        """Return the positions of all joints, and what there is to say about them."""
        found = JointNames(names, self._joints)
        if found.refusal is not None:
            raise InputError(found.refusal.text)
        if positions.size != found.count:
            raise InputError(size_mismatch(names, positions.size)[1])
        if self._closures is None and not found.is_complete:
            raise InputError(found.missing()[1])
        given = positions[found.places]
        if not np.isfinite(given).all():
            raise InputError(found.not_finite(given)[1])
        if self._closures is None:
            return given, None
        bound = self._closures.of(tuple(self._joints[i] for i in found.targets))
        # The answer depends on the question alone.
        bound.reset()
        bound.measured[...] = given
        status = bound.solve()
        complaint = complaint_of(bound, status)
        if complaint is not None and not status.is_valid:
            raise InputError(complaint.text)
        return bound.q.copy(), complaint
