"""Making the solver of another problem or algorithm while the present one goes on working."""

from __future__ import annotations

from collections.abc import Callable

from delassus_ros import algorithms
from delassus_ros.algorithms.base import TracedAlgorithm
from delassus_ros.compiler.build import cached_kernel
from delassus_ros.compiler.worker import BackgroundBuild
from delassus_ros.errors import AlgorithmError
from delassus_ros.node.on_demand import reason_against
from delassus_ros.problem import Problem
from delassus_ros.solver import DelassusSolver


def refusal(algorithm: str, problem: Problem | None) -> str | None:
    """Return why `algorithm` cannot be used, or None if it can.

    Without a problem, as long as there is none, only its existence is asked for.
    """
    try:
        algorithms.get(algorithm)
        reason = None if problem is None else reason_against(algorithm, problem)
    except AlgorithmError as error:
        return str(error)
    if reason is None:
        return None
    return f"algorithm {algorithm!r} cannot solve this problem: {reason}"


class Exchange:
    """A solver in the making, compiled in a process of its own where it has to be compiled.

    Parameters
    ----------
    problem : what to compute.
    algorithm : name of the algorithm.
    warm : called with the problem in the other process, to have it fill the disk cache with
        more; the kernel is then built there even if the cache has it.

    Raises
    ------
    AlgorithmError
        For an unknown algorithm.
    """

    def __init__(
        self,
        problem: Problem,
        algorithm: str,
        warm: Callable[[Problem], object] | None = None,
    ) -> None:
        self.algorithm = algorithm
        self._problem = problem
        self._kernel: bytes | None = None
        self._build: BackgroundBuild | None = None
        found = algorithms.get(algorithm)
        self._compiled = isinstance(found, TracedAlgorithm)
        if isinstance(found, TracedAlgorithm):
            if warm is None:
                self._kernel = cached_kernel(problem, found)
            if self._kernel is None:
                self._build = BackgroundBuild(problem, algorithm, warm)

    def ready(self) -> bool:
        """Return whether :meth:`solver` has what it needs; never blocks.

        Raises
        ------
        CompilerError
            If the build failed.
        """
        if self._build is not None and self._kernel is None:
            self._kernel = self._build.poll()
        return self._kernel is not None or not self._compiled

    def solver(self) -> DelassusSolver:
        """Return the solver, once ready; takes one or two milliseconds.

        Raises
        ------
        DelassusError
            If the kernel is damaged, or the algorithm refuses the problem.
        """
        return DelassusSolver(self._problem, self.algorithm, prebuilt=self._kernel)

    def close(self) -> None:
        """End the process, if there still is one."""
        if self._build is not None:
            self._build.cancel()
            self._build = None
