"""Changes while the node is configured: another algorithm, another robot description.

A background thread builds the new part (:mod:`~delassus_ros.ros.background`; a kernel is
compiled in another process) while the stream uses the present one. The new part is adopted between
two joint states. If the build fails, the log, the diagnostics and the parameter report it, and the
stream keeps the present part. Which changes are refused at once is decided in
:mod:`~delassus_ros.node.lifecycle.refusals`.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

from rclpy.node import Node
from rclpy.parameter import Parameter

from delassus_ros.algorithms import registered, spelling
from delassus_ros.errors import AlgorithmError
from delassus_ros.inputs.findings import Reason
from delassus_ros.node.lifecycle.computation import Computation, make_solver
from delassus_ros.node.lifecycle.refusals import refusal_of_algorithm
from delassus_ros.node.settings import Settings
from delassus_ros.problem import Problem
from delassus_ros.ros.background import BackgroundTask, wait_for_end
from delassus_ros.ros.logs import LoopLog, Throttle
from delassus_ros.ros.timers import STEADY
from delassus_ros.solver.solver import DelassusSolver

_HANDOVER_POLL_S = 0.02
"""Period of looks at the background task."""

T = TypeVar("T")


class Handover(Generic[T]):
    """Builds one part at a time in the background, and adopts it between two joint states.

    A later build replaces an earlier one, and starts when the thread of the earlier one has ended:
    of several in a row only the last one runs. A thread that does not end in time is abandoned,
    and later builds do not wait for it.

    Parameters
    ----------
    node : node with the timers.
    between : defers a function until after the next published matrix.
    adopt : called with the part.
    failed : called with the exception of a build.
    """

    def __init__(
        self,
        node: Node,
        between: Callable[[Callable[[], None]], None],
        adopt: Callable[[T], object],
        failed: Callable[[Exception], object],
    ) -> None:
        self._node = node
        self._report = LoopLog(node.get_logger()).error
        self._between = between
        self._adopt = adopt
        self._failed = failed
        self._task: BackgroundTask[T] | None = None
        self._future: Future[T] | None = None
        """The part to come; None for none, or while its thread waits for its turn."""
        self._next: tuple[str, Callable[[threading.Event], T]] | None = None
        self._tasks: list[BackgroundTask[T]] = []
        """Tasks whose threads may be at work; all but the present one are cancelled."""
        self._timer: Any = None
        self._offered = False

    @property
    def building(self) -> bool:
        """Whether a part is being built, waits for its thread, or waits to be adopted."""
        return self._future is not None or self._next is not None

    def begin(self, name: str, build: Callable[[threading.Event], T]) -> None:
        """Begin to build a part, instead of an earlier one.

        Parameters
        ----------
        name : of the thread.
        build : returns the part; called by the thread with an event, which is set when the
            build is cancelled.
        """
        self.cancel()
        self._next = name, build
        self._start_timer()
        self._start()

    def offer(self, part: T) -> None:
        """Adopt a part that exists already, instead of an earlier one."""
        self.cancel()
        self._future = Future()
        self._future.set_result(part)
        self._start_timer()
        self._offer(self._future)

    def cancel(self) -> None:
        """Cancel the build. Its thread ends later; nothing waits for it."""
        if self._task is not None:
            self._task.cancel()
        self._task = self._future = self._next = None
        self._offered = False
        if self._timer is not None:
            self._node.destroy_timer(self._timer)
            self._timer = None

    def close(self) -> None:
        """Cancel the build, and wait until all threads and their processes have ended."""
        self.cancel()
        self._tasks = wait_for_end(self._tasks, self._report)

    def poll(self) -> None:
        """Start the next build, or adopt a part that is ready; called by a timer."""
        self._start()
        future = self._future
        if future is None or not future.done():
            return
        if self._offered:
            # No matrix has come since the last look.
            self._finish(future)
        else:
            self._offer(future)

    def _start(self) -> None:
        """Start the next build, unless a cancelled one is at work and still has time to end."""
        self._tasks = [task for task in self._tasks if not task.ended]
        if self._next is None:
            return
        # A list, so that all abandoned tasks are reported.
        if not all([task.is_abandoned(self._report) for task in self._tasks]):
            return
        task = BackgroundTask(*self._next)
        self._task, self._future, self._next = task, task.future, None
        self._tasks.append(task)

    def _start_timer(self) -> None:
        self._timer = self._node.create_timer(_HANDOVER_POLL_S, self.poll, clock=STEADY)

    def _offer(self, future: Future[T]) -> None:
        self._offered = True
        self._between(lambda: self._finish(future))

    def _finish(self, future: Future[T]) -> None:
        """Adopt the part, unless it was cancelled meanwhile."""
        if future is not self._future:
            return
        self.cancel()
        try:
            part = future.result()
        except Exception as error:
            self._failed(error)
        else:
            self._adopt(part)


class Change(ABC, Generic[T]):
    """Follows one parameter: builds what its value names, and adopts it.

    Parameters
    ----------
    node : node with the timers and the parameter.
    between : defers a function until after the next published matrix.

    Attributes
    ----------
    failure : reason why the last change failed; empty after a success.
    """

    def __init__(self, node: Node, between: Callable[[Callable[[], None]], None]) -> None:
        self.failure = ""
        self._wanted = ""
        self._handover: Handover[T] = Handover(node, between, self._adopt, self._failed)

    @property
    def building(self) -> bool:
        """Whether a change has begun and not ended."""
        return self._handover.building

    def keep(self) -> None:
        """Keep the present part: cancel a change, and clear the failure of the last one."""
        self.failure = ""
        self._handover.cancel()

    def cancel(self) -> None:
        """Cancel a change; nothing waits for its thread."""
        self._handover.cancel()

    def close(self) -> None:
        """Cancel a change, and wait until its thread and process have ended."""
        self._handover.close()

    def _builds(self, wanted: str) -> bool:
        """Return whether this value is being built already; else cancel what is."""
        if self.building and self._wanted == wanted:
            return True
        self.keep()
        return False

    @abstractmethod
    def _adopt(self, part: T) -> None:
        """Use the part from now on."""

    @abstractmethod
    def _failed(self, error: Exception) -> None:
        """Report the exception of a build."""


_KEPT_SOLVERS = 3
"""Number of solvers kept besides the one in use; a kernel takes some 100 kB."""


class AlgorithmChange(Change[DelassusSolver]):
    """Follows the parameter ``algorithm``.

    The pipeline uses its present solver until the new one is built. If the build fails, the
    parameter is set back. The last few compiled solvers that were in use are kept until the node
    is deactivated, so that a change back takes one tick.

    Parameters
    ----------
    node : node with the parameter ``algorithm``.
    computation : the present computation; its fallback replaces an algorithm that fails.
    between : defers a function until after the next published matrix.
    prepare : prepares other users of a new solver; called by the background thread.
    changed : called with every new solver.
    """

    def __init__(
        self,
        node: Node,
        computation: Computation,
        between: Callable[[Callable[[], None]], None],
        prepare: Callable[[DelassusSolver], object],
        changed: Callable[[DelassusSolver], object],
    ) -> None:
        super().__init__(node, between)
        self._node = node
        self._log = LoopLog(node.get_logger())
        self._fail = Throttle(self._log.error)
        self._prepare = prepare
        self._changed = changed
        self._kept: dict[str, DelassusSolver] = {}
        self._dropped: list[DelassusSolver] = []
        """Solvers that are freed by the next background thread: a tick has no time for that."""
        self.set_computation(computation)

    def set_computation(self, computation: Computation) -> None:
        """Follow the parameter for another robot; cancel a change that has begun."""
        self.keep()
        self._kept.clear()
        self._computation = computation
        self._pipeline = computation.pipeline
        self._solver, self._fallback = computation.solver, computation.fallback
        self._wanted = self._solver.algorithm

    @property
    def configured(self) -> str:
        """Name of the algorithm that was adopted last; the fallback may replace it."""
        return self._solver.algorithm

    def follow(self) -> None:
        """Read the parameter, and begin a change to its value."""
        wanted = spelling(self._node.get_parameter("algorithm").value)
        if self._builds(wanted):
            return
        # An algorithm that the fallback replaced is built anew: its back end may be in any state.
        if wanted == self._solver.algorithm == self._pipeline.algorithm:
            return
        self._wanted = wanted
        kept = self._kept.get(wanted)
        if kept is not None:
            self._handover.offer(kept)
            return
        self._handover.begin(f"making {wanted}", lambda cancelled: self._build(wanted, cancelled))

    def stand_in(self) -> None:
        """Use the fallback from the next joint state on, if there is one."""
        failed = self._pipeline.algorithm
        if self._fallback is None:
            return
        # Under another name the same algorithm would fail again.
        if registered(failed) != registered(self._fallback.algorithm):
            self._pipeline.set_solver(self._fallback, Reason.FALLBACK_ALGORITHM)
            self._changed(self._fallback)
            self._fail(
                "stand in",
                f"{failed!r} failed: {self._fallback.algorithm!r} stands in for it until the "
                "parameter 'algorithm' is set again or the node is activated",
            )

    def close(self) -> None:
        """Cancel a change, wait until its thread and process have ended, and keep no solver."""
        super().close()
        self._kept.clear()
        self._dropped.clear()

    def _build(self, wanted: str, cancelled: threading.Event) -> DelassusSolver:
        """Return the solver, bound and prepared; called by the background thread."""
        self._dropped.clear()
        computation = self._computation
        solver = make_solver(computation.problem, wanted, cancelled)
        computation.pipeline.bindings.of(solver)
        self._prepare(solver)
        return solver

    def _adopt(self, part: DelassusSolver) -> None:
        before = self._pipeline.algorithm
        self._pipeline.set_solver(part)
        self._keep_solver(self._solver, part)
        self._solver = part
        self._changed(part)
        self._log.info(f"algorithm changed from {before!r} to {part.algorithm!r}")

    def _keep_solver(self, before: DelassusSolver, now: DelassusSolver) -> None:
        """Keep the solver that was in use until now, if it is machine code, which has no state."""
        self._kept.pop(now.algorithm, None)
        if before.operations is None or before.algorithm == now.algorithm:
            return
        self._kept[before.algorithm] = before
        if len(self._kept) > _KEPT_SOLVERS:
            # The first one was in use least recently.
            self._dropped.append(self._kept.pop(next(iter(self._kept))))

    def _failed(self, error: Exception) -> None:
        """Log the failure, and set the parameter to the algorithm that was adopted last."""
        wanted, configured = self._wanted, self._solver.algorithm
        self._fail(
            "change",
            f"cannot change the algorithm to {wanted!r}, {self._pipeline.algorithm!r} goes on: "
            f"{error}",
        )
        # The parameter may have another value by now, which comes with another robot.
        if spelling(self._node.get_parameter("algorithm").value) == wanted != configured:
            self._node.set_parameters([Parameter("algorithm", value=configured)])
        # Last: the change of the parameter is followed, which clears the failure.
        self.failure = f"cannot change to {wanted!r}: {error}"


class DescriptionChange(Change[Computation]):
    """Follows the robot description, of the parameter or the topic.

    Parameters
    ----------
    node : node with the timers.
    between : defers a function until after the next published matrix.
    make : returns the computation of settings and a description, with solvers made by a
        function; called by the background thread.
    adopt : called with the computation, to use it from now on.
    refused : called with the reason why a description cannot be used.
    """

    def __init__(
        self,
        node: Node,
        between: Callable[[Callable[[], None]], None],
        make: Callable[[Settings, str, Callable[[Problem, str], DelassusSolver]], Computation],
        adopt: Callable[[Computation], object],
        refused: Callable[[str], object],
    ) -> None:
        super().__init__(node, between)
        self._make, self._adopted, self._refused = make, adopt, refused

    def follow(self, description: str, settings: Settings) -> None:
        """Begin a change to another description.

        Parameters
        ----------
        description : URDF text.
        settings : contacts, algorithm and outputs to use with it.
        """
        if self._builds(description):
            return
        self._wanted = description
        self._handover.begin(
            "making another robot",
            lambda cancelled: self._build(description, settings, cancelled),
        )

    def _build(
        self, description: str, settings: Settings, cancelled: threading.Event
    ) -> Computation:
        """Return the computation of a description; called by the background thread."""

        def solver_of(problem: Problem, algorithm: str) -> DelassusSolver:
            reason = refusal_of_algorithm(algorithm, problem)
            if reason is not None:
                raise AlgorithmError(reason)
            # The first build compiles the closure of a closed robot as well.
            closed = problem.robot.clustered.is_closed and algorithm == settings.algorithm
            return make_solver(problem, algorithm, cancelled, settings.closure if closed else None)

        return self._make(settings, description, solver_of)

    def _adopt(self, part: Computation) -> None:
        self._adopted(part)

    def _failed(self, error: Exception) -> None:
        self._refused(str(error))
        # Last: the parameter may be set back, which is followed. If that began another change,
        # its result counts.
        if not self.building:
            self.failure = str(error)
