"""Making another solver beside the control loop."""

from __future__ import annotations

import threading
from collections.abc import Callable

from delassus_ros import algorithms
from delassus_ros.algorithms.registry import TracedAlgorithm
from delassus_ros.compiler.build import cached_kernel
from delassus_ros.compiler.kernel import CompiledKernel
from delassus_ros.compiler.stored import stored_kernel
from delassus_ros.compiler.worker import BackgroundBuild
from delassus_ros.errors import AlgorithmError
from delassus_ros.node.background import GivenUpError
from delassus_ros.node.on_demand import reason_against
from delassus_ros.problem import Problem
from delassus_ros.solver import DelassusSolver

_POLL = 0.02  # s between looks at the child process


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


def make_solver(
    problem: Problem,
    algorithm: str,
    unwanted: threading.Event,
    warm: Callable[[Problem], object] | None = None,
) -> DelassusSolver:
    """Return a solver; compiled in a process of its own where it has to be.

    Parameters
    ----------
    problem : what to compute.
    algorithm : name of the algorithm.
    unwanted : to be set by another thread when the solver is not wanted any more.
    warm : called with the problem in the other process, to have it fill the disk cache with
        more; the kernel is then built there even if the cache has it.

    Raises
    ------
    GivenUpError
        If it is not wanted any more.
    CompilerError
        If the build failed.
    DelassusError
        If the algorithm is unknown or refuses the problem, or the kernel is damaged.
    Exception
        Whatever a plug-in raises.
    """
    kernel: CompiledKernel | None = None
    found = algorithms.get(algorithm)
    if isinstance(found, TracedAlgorithm):
        kernel = cached_kernel(problem, found) if warm is None else None
        if kernel is None:
            built = _built(problem, algorithm, unwanted, warm)
            kernel = stored_kernel(problem, algorithm).unpacked(built)
    return DelassusSolver(problem, algorithm, prebuilt=kernel)


def _built(
    problem: Problem,
    algorithm: str,
    unwanted: threading.Event,
    warm: Callable[[Problem], object] | None,
) -> bytes:
    """Return the kernel that another process builds."""
    build = BackgroundBuild(problem, algorithm, warm)
    try:
        while (kernel := build.poll()) is None:
            if unwanted.wait(_POLL):
                raise GivenUpError(f"the kernel of {algorithm!r} was given up")
        return kernel
    finally:
        build.cancel()
