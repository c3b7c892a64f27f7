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
from delassus_ros.node.joint_names import JointNames
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


class OnDemand:
    """Computes matrices at configurations that somebody asks for.

    Parameters
    ----------
    solver : computes them.
    structural : matrices of all contacts at generic configurations; see
        :class:`~delassus_ros.conditioning.ConditionMonitor`.
    settings : thresholds; its damping is not applied.
    """

    def __init__(
        self, solver: DelassusSolver, structural: Array, settings: ConditionSettings
    ) -> None:
        self._solver = solver
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
    ) -> tuple[Solution, Examination]:
        """Return the matrix and what is known about it.

        Parameters
        ----------
        names, positions : joints in any order, and their positions [rad, m]; joints that the
            robot does not have are passed over.
        active : names of the active contacts.
        base_orientation : (4,) unit quaternion x, y, z, w; with world axes and a floating base.

        Raises
        ------
        InputError
            If a joint is missing or listed twice, numbers are missing or not finite, a contact
            is unknown, or the orientation is missing, superfluous or no unit quaternion.
        NumericalError
            If the matrix cannot be computed there.
        """
        q = self._q(names, np.asarray(positions, dtype=np.float64).ravel())
        wanted = list(active)
        solution = self._solver.solve(q, wanted, base_orientation)
        self._monitor.activate(wanted)
        return solution, self._monitor.examine(solution.matrix, exact=True)

    def _q(self, names: Sequence[str], positions: Array) -> Array:
        found = JointNames(names, self._joints)
        if found.refusal is not None:
            raise InputError(found.refusal.text)
        if positions.size != found.count:
            raise InputError(found.size_mismatch(positions.size)[1])
        if not found.is_complete:
            raise InputError(found.missing()[1])
        q = positions[found.places]
        if not np.isfinite(q).all():
            raise InputError(found.not_finite(q)[1])
        return q
