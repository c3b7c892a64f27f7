"""Making the solver of another problem or algorithm while the present one goes on working."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from delassus_ros import algorithms
from delassus_ros.algorithms.base import TracedAlgorithm
from delassus_ros.compiler.build import cached_kernel
from delassus_ros.compiler.worker import BackgroundBuild
from delassus_ros.errors import AlgorithmError
from delassus_ros.node.on_demand import reason_against
from delassus_ros.node.realtime import follow, thread_priority
from delassus_ros.problem import Problem
from delassus_ros.solver import DelassusSolver

_POLL = 0.02  # s between looks at the child process
_SWITCH = 1e-4  # s after which a thread that makes a solver lets others go on


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
    """A solver in the making, by a thread; compiled in a process of its own where it has to be.

    Loading machine code takes many milliseconds, of which a control loop has none to spare.

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
        self._warm = warm
        self._found = algorithms.get(algorithm)
        self._solver: DelassusSolver | None = None
        self._error: Exception | None = None
        self._closed = threading.Event()
        self._priority = thread_priority()
        self._thread = threading.Thread(target=self._run, name=f"making {algorithm}", daemon=True)
        self._thread.start()

    def ready(self) -> bool:
        """Return whether :meth:`solver` has an answer; never blocks."""
        return not self._thread.is_alive()

    def solver(self) -> DelassusSolver:
        """Return the solver, once ready.

        Raises
        ------
        CompilerError
            If the build failed.
        DelassusError
            If the kernel is damaged, or the algorithm refuses the problem.
        Exception
            Whatever a plug-in raises.
        """
        self._thread.join()
        if self._solver is None:
            raise self._error or AlgorithmError(f"the change to {self.algorithm!r} was given up")
        return self._solver

    def close(self) -> None:
        """End thread and process, if there still are any."""
        self._closed.set()
        self._thread.join()
        self._solver = None

    def _run(self) -> None:
        follow(self._priority)
        try:
            self._solver = self._make()
        except Exception as error:
            self._error = error

    def _make(self) -> DelassusSolver | None:
        kernel: bytes | None = None
        found = self._found
        if isinstance(found, TracedAlgorithm):
            with _yielding():
                kernel = cached_kernel(self._problem, found) if self._warm is None else None
            if kernel is None:
                kernel = self._built()
            if kernel is None:
                return None
        with _yielding():
            return DelassusSolver(self._problem, self.algorithm, prebuilt=kernel)

    def _built(self) -> bytes | None:
        """Return the kernel that another process builds; None if it is given up."""
        build = BackgroundBuild(self._problem, self.algorithm, self._warm)
        try:
            while (kernel := build.poll()) is None and not self._closed.wait(_POLL):
                pass
            return kernel
        finally:
            build.cancel()


_lock = threading.Lock()
_loading = 0
_usual = 0.0


@contextmanager
def _yielding() -> Iterator[None]:
    """Have Python's threads take turns more often while one of them makes a solver."""
    global _loading, _usual
    with _lock:
        if not _loading:
            _usual = sys.getswitchinterval()
            sys.setswitchinterval(min(_usual, _SWITCH))
        _loading += 1
    try:
        yield
    finally:
        with _lock:
            _loading -= 1
            if not _loading:
                sys.setswitchinterval(_usual)
