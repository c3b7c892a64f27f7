"""Changes while the node runs: another algorithm, another robot description.

One story. A thread makes what is wanted (:class:`Handover`, with the thread of
:mod:`~delassus_ros.node.system.background` and, for a kernel, a process of its own), while the
stream goes on with what it has; what is ready is taken into use between two joint states. If it
cannot be made, the log, the diagnostics and the parameter say so, and the stream still goes on.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from rclpy.node import Node
from rclpy.parameter import Parameter
from std_msgs.msg import String

from delassus_ros import algorithms
from delassus_ros.algorithms import registered, spelling
from delassus_ros.algorithms.registry import TracedAlgorithm
from delassus_ros.compiler.build import cached_kernel
from delassus_ros.compiler.cache.cached_code import stored_kernel
from delassus_ros.compiler.runtime.kernel import CompiledKernel
from delassus_ros.compiler.worker import BackgroundBuild
from delassus_ros.errors import AlgorithmError
from delassus_ros.node.inputs.topics import LATCHED
from delassus_ros.node.lifecycle.computation import Computation
from delassus_ros.node.lifecycle.services import reason_against
from delassus_ros.node.reasons import Reason
from delassus_ros.node.settings import Settings
from delassus_ros.node.system.background import BackgroundTask, GivenUpError, Ready, wait_for_end
from delassus_ros.node.system.logs import LoopLog, Throttle
from delassus_ros.node.system.qos import subscribe
from delassus_ros.node.system.queue import take
from delassus_ros.node.system.timers import STEADY
from delassus_ros.problem import Problem
from delassus_ros.solver.solver import DelassusSolver

_POLL = 0.02  # s between looks at the thread

T = TypeVar("T")


class Handover(Generic[T]):
    """Has one thing at a time made, waits for it, and hands it over between two joint states.

    What is begun later replaces what was begun before, and has its turn when the thread of that
    has ended: of many that follow each other only the last one is made. A thread that does not end
    in time is left alone and holds up nothing any more.

    Parameters
    ----------
    node : to make timers with.
    between : calls a function after the next matrix is published, if one is.
    done : called with what was made.
    failed : called with what making it raised.
    """

    def __init__(
        self,
        node: Node,
        between: Callable[[Callable[[], None]], None],
        done: Callable[[T], object],
        failed: Callable[[Exception], object],
    ) -> None:
        self._node = node
        self._say = LoopLog(node.get_logger()).error
        self._between = between
        self._done = done
        self._failed = failed
        self._task: BackgroundTask[T] | Ready[T] | None = None
        self._next: tuple[str, Callable[[threading.Event], T]] | None = None
        self._tasks: list[BackgroundTask[T]] = []
        """All whose threads may be at work; the others than the present one were given up."""
        self._timer: Any = None
        self._offered = False

    @property
    def building(self) -> bool:
        """Whether something is being made, or is to be, or waits to be taken."""
        return self._task is not None or self._next is not None

    def begin(self, name: str, make: Callable[[threading.Event], T]) -> None:
        """Begin to make something, instead of what was begun before.

        Parameters
        ----------
        name : of the thread.
        make : returns it; called by the thread with an event, which is set when it is not
            wanted any more.
        """
        self.give_up()
        self._next = name, make
        self._look_often()
        self._start()

    def offer(self, made: T) -> None:
        """Hand over what was made before, instead of what was begun."""
        self.give_up()
        self._task = Ready(made)
        self._look_often()
        self._offer(self._task)

    def give_up(self) -> None:
        """Want nothing any more. A thread that works ends later, and nobody waits for it."""
        if self._task is not None:
            self._task.give_up()
        self._task = self._next = None
        self._offered = False
        if self._timer is not None:
            self._node.destroy_timer(self._timer)
            self._timer = None

    def close(self) -> None:
        """Give up, and wait until all threads, and their processes, have ended."""
        self.give_up()
        self._tasks = wait_for_end(self._tasks, self._say)

    def poll(self) -> None:
        """Go on with what can be done; a timer calls this."""
        self._start()
        task = self._task
        if task is None or not task.ended:
            return
        if self._offered:
            # No matrix has come since the last look.
            self._finish(task)
        else:
            self._offer(task)

    def _start(self) -> None:
        """Start what waits, unless what was given up is at work and still has time to end."""
        self._tasks = [task for task in self._tasks if not task.ended]
        if self._next is None or not all([task.is_left_alone(self._say) for task in self._tasks]):
            return
        task = BackgroundTask(*self._next)
        self._task, self._next = task, None
        self._tasks.append(task)

    def _look_often(self) -> None:
        self._timer = self._node.create_timer(_POLL, self.poll, clock=STEADY)

    def _offer(self, task: BackgroundTask[T] | Ready[T]) -> None:
        self._offered = True
        self._between(lambda: self._finish(task))

    def _finish(self, task: BackgroundTask[T] | Ready[T]) -> None:
        """Hand over, unless it was given up meanwhile."""
        if task is not self._task:
            return
        self.give_up()
        try:
            made = task.result()
        except Exception as error:
            self._failed(error)
        else:
            self._done(made)


_KEPT = 3
"""Solvers that are kept beside the one in use; a kernel takes some hundred kilobytes."""


class AlgorithmChange:
    """Brings the pipeline to the algorithm that the parameter names.

    The pipeline goes on with its present solver until the new one is ready; the exchange
    happens between two joint states. If it fails, the parameter goes back. The last few compiled
    ones that were in use are kept until the node is deactivated, to go back to within a tick.

    Parameters
    ----------
    node : its parameter ``algorithm`` is followed.
    computation : what is computed; its fallback stands in where the algorithm fails.
    between : calls a function after the next matrix is published, if one is.
    prepare : makes ready whatever else is to use a new solver; called by another thread.
    changed : called with each new solver.

    Attributes
    ----------
    failure : why the last change failed; empty if it did not.
    """

    def __init__(
        self,
        node: Node,
        computation: Computation,
        between: Callable[[Callable[[], None]], None],
        prepare: Callable[[DelassusSolver], object],
        changed: Callable[[DelassusSolver], object],
    ) -> None:
        self._node = node
        self._log = LoopLog(node.get_logger())
        self._fail = Throttle(self._log.error)
        self._prepare = prepare
        self._changed = changed
        self._handover = Handover(node, between, self._done, self._failed)
        self._kept: dict[str, DelassusSolver] = {}
        self._dropped: list[DelassusSolver] = []
        """No longer kept; the loop has no time to free machine code."""
        self.set_computation(computation)

    def set_computation(self, computation: Computation) -> None:
        """Follow for another robot; a change that has begun is given up."""
        self.failure = ""
        self._handover.give_up()
        self._kept.clear()
        self._computation = computation
        self._pipeline = computation.pipeline
        self._solver, self._fallback = computation.solver, computation.fallback
        self._wanted = self._solver.algorithm

    @property
    def building(self) -> bool:
        """Whether a change has begun and not ended."""
        return self._handover.building

    @property
    def configured(self) -> str:
        """Name of the algorithm that is to compute; where another one does, it stands in."""
        return self._solver.algorithm

    def follow(self) -> None:
        """Look at the parameter and begin what it takes to follow it."""
        wanted = spelling(self._node.get_parameter("algorithm").value)
        if self.building and self._wanted == wanted:
            return
        self._handover.give_up()
        self.failure = ""
        # Where something stands in for it, it is to be tried again: made anew, as a back end may
        # have been left in any state.
        if wanted == self._solver.algorithm == self._pipeline.algorithm:
            return
        self._wanted = wanted
        kept = self._kept.get(wanted)
        if kept is not None:
            self._handover.offer(kept)
            return
        self._handover.begin(f"making {wanted}", lambda unwanted: self._made(wanted, unwanted))

    def stand_in(self) -> None:
        """Have the fallback compute from the next joint state on, unless it does."""
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

    def give_up(self) -> None:
        """Give up a change that has begun; nobody waits for its thread."""
        self._handover.give_up()

    def close(self) -> None:
        """Give up a change that has begun, end its thread and process, and keep nothing."""
        self._handover.close()
        self._kept.clear()
        self._dropped.clear()

    def _made(self, wanted: str, unwanted: threading.Event) -> DelassusSolver:
        """Return a solver that is ready to be used; called by another thread."""
        self._dropped.clear()
        computation = self._computation
        solver = make_solver(computation.problem, wanted, unwanted)
        computation.pipeline.bindings.of(solver)
        self._prepare(solver)
        return solver

    def _done(self, solver: DelassusSolver) -> None:
        before = self._pipeline.algorithm
        self._pipeline.set_solver(solver)
        self._keep(self._solver, solver)
        self._solver = solver
        self._changed(solver)
        self._log.info(f"algorithm changed from {before!r} to {solver.algorithm!r}")

    def _keep(self, before: DelassusSolver, now: DelassusSolver) -> None:
        """Keep the solver that was in use until now, if it is machine code: that has no state."""
        self._kept.pop(now.algorithm, None)
        if before.operations is None or before.algorithm == now.algorithm:
            return
        self._kept[before.algorithm] = before
        if len(self._kept) > _KEPT:
            # The one that is not in use for longest.
            self._dropped.append(self._kept.pop(next(iter(self._kept))))

    def _failed(self, error: Exception) -> None:
        """Say what went wrong, and set the parameter to the algorithm that is configured."""
        wanted, configured = self._wanted, self._solver.algorithm
        self._fail(
            "change",
            f"cannot change the algorithm to {wanted!r}, {self._pipeline.algorithm!r} goes on: "
            f"{error}",
        )
        # It may have been set to another one meanwhile, which comes with another robot.
        if spelling(self._node.get_parameter("algorithm").value) == wanted != configured:
            self._node.set_parameters([Parameter("algorithm", value=configured)])
        # Last, as setting the parameter is followed, too.
        self.failure = f"cannot change to {wanted!r}: {error}"


class DescriptionChange:
    """Brings the node to another robot, while it goes on with the present one.

    It is read by another thread, and kernels are built in a process of their own; the exchange
    happens between two joint states. A description that cannot be used changes nothing.

    Parameters
    ----------
    node : to make timers with.
    between : calls a function after the next matrix is published, if one is.
    make : returns what follows from a description, given settings and solvers; called by
        another thread.
    adopt : called with that, to use it from now on.
    give_up : called with the reason, if the description cannot be used.

    Attributes
    ----------
    failure : why the last change failed; empty if it did not.
    """

    def __init__(
        self,
        node: Node,
        between: Callable[[Callable[[], None]], None],
        make: Callable[[Settings, str, DelassusSolver, DelassusSolver | None], Computation],
        adopt: Callable[[Computation], object],
        give_up: Callable[[str], object],
    ) -> None:
        self.failure = ""
        self._make = make
        self._give_up = give_up
        self._wanted = ""
        self._handover = Handover(node, between, adopt, self._failed)

    @property
    def building(self) -> bool:
        """Whether a change has begun and not ended."""
        return self._handover.building

    def follow(self, description: str, settings: Settings) -> None:
        """Begin to change to another description, instead of one that was begun with.

        Parameters
        ----------
        description : the URDF text.
        settings : what to make of it.
        """
        if self.building and description == self._wanted:
            return
        self.failure = ""
        self._wanted = description
        self._handover.begin(
            "making another robot",
            lambda unwanted: self._made(description, settings, unwanted),
        )

    def stay(self) -> None:
        """Want the present description; a change that has begun is given up."""
        self.failure = ""
        self._handover.give_up()

    def close(self) -> None:
        """Give up a change that has begun, and end its thread and process."""
        self._handover.close()

    def _made(
        self, description: str, settings: Settings, unwanted: threading.Event
    ) -> Computation:
        """Return all that follows from a description; called by another thread."""
        problem = settings.problem(description)
        # Of a closed robot the closure is compiled as well.
        warm = settings.closure if problem.robot.is_closed else None
        solvers: dict[str, DelassusSolver] = {}
        for algorithm in dict.fromkeys((settings.algorithm, settings.fallback)):
            if algorithm:
                reason = refusal(algorithm, problem)
                if reason is not None:
                    raise AlgorithmError(reason)
                solvers[algorithm] = make_solver(problem, algorithm, unwanted, warm)
                warm = None
        fallback = solvers.get(settings.fallback)
        return self._make(settings, description, solvers[settings.algorithm], fallback)

    def _failed(self, error: Exception) -> None:
        self._give_up(str(error))
        # Last, as the parameter may be set back, which is followed, too: then what comes of that
        # is to be said, unless it is the description in use.
        if not self.building:
            self.failure = str(error)


_TOPIC = "robot_description"
_POLL_DESCRIPTION = 0.01  # s


class DescriptionTopic:
    """Keeps the latest robot description.

    Parameters
    ----------
    node : the node to subscribe with.
    arrived : called with every new description.
    stopping : returns whether the process is to end, so that nothing is worth waiting for.

    Attributes
    ----------
    text : the latest URDF text; empty before the first.

    Raises
    ------
    InputError
        If a parameter was given a value that its QoS policy cannot have.
    """

    def __init__(
        self, node: Node, arrived: Callable[[], object], stopping: Callable[[], bool]
    ) -> None:
        self.text = ""
        self._node = node
        self._arrived = arrived
        self._stopping = stopping
        self._subscription = subscribe(node, String, _TOPIC, self._on_description, LATCHED)

    @property
    def topic(self) -> str:
        """Full name of the topic."""
        return str(self._subscription.topic_name)

    def wait(self, limit: float) -> str:
        """Return the latest description; wait for the first one at most `limit` seconds.

        It is taken here, not in a callback: callbacks do not run while a transition does.
        """
        deadline = time.monotonic() + limit
        while not self.text:
            taken = take(self._subscription)
            if taken is not None:
                self.text = taken[0].data
            elif time.monotonic() > deadline or self._stopping():
                break
            else:
                time.sleep(_POLL_DESCRIPTION)
        return self.text

    def close(self) -> None:
        """End the subscription."""
        self._node.destroy_subscription(self._subscription)

    def _on_description(self, message: String) -> None:
        if message.data != self.text:
            self.text = message.data
            self._arrived()


_POLL_CHILD = 0.02  # s between looks at the child process


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
            kernel = stored_kernel(problem, found.name).unpacked(built)
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
            if unwanted.wait(_POLL_CHILD):
                raise GivenUpError(f"the kernel of {algorithm!r} was given up")
        return kernel
    finally:
        build.cancel()
