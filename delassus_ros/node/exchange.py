"""Building the solver of another algorithm while the present one goes on working."""

from __future__ import annotations

from delassus_ros import algorithms
from delassus_ros.algorithms.base import TracedAlgorithm
from delassus_ros.compiler.worker import BackgroundBuild
from delassus_ros.errors import AlgorithmError
from delassus_ros.problem import Problem
from delassus_ros.solver import DelassusSolver


def refusal(algorithm: str, problem: Problem | None) -> str | None:
    """Return why `algorithm` cannot be used, or None if it can.

    Without a problem, as long as there is none, only its existence is asked for.
    """
    try:
        found = algorithms.get(algorithm)
    except AlgorithmError as error:
        return str(error)
    reason = None if problem is None else found.supports(problem)
    if reason is None:
        return None
    return f"algorithm {algorithm!r} cannot solve this problem: {reason}"


class Exchange:
    """A solver in the making, compiled in a process of its own where it is compiled at all.

    Parameters
    ----------
    problem : what to compute.
    algorithm : name of the algorithm.

    Raises
    ------
    AlgorithmError
        For an unknown algorithm.
    """

    def __init__(self, problem: Problem, algorithm: str) -> None:
        self.algorithm = algorithm
        self._problem = problem
        traced = isinstance(algorithms.get(algorithm), TracedAlgorithm)
        self._build = BackgroundBuild(problem, algorithm) if traced else None

    def poll(self) -> DelassusSolver | None:
        """Return the solver once it is ready, None before.

        Raises
        ------
        DelassusError
            If it cannot be built.
        """
        if self._build is None:
            return DelassusSolver(self._problem, self.algorithm)
        kernel = self._build.poll()
        if kernel is None:
            return None
        return DelassusSolver(self._problem, self.algorithm, prebuilt=kernel)

    def close(self) -> None:
        """End the process, if there still is one."""
        if self._build is not None:
            self._build.cancel()
