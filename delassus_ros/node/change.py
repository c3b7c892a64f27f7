"""Changes while the node is configured: another algorithm, another robot description.

Either is another :class:`Computation`. A background thread builds it
(:mod:`~delassus_ros.ros.background`; a kernel is compiled in another process) while the stream
uses the present one, and it is adopted between two joint states. If the build fails, the log and
the diagnostics report it, the parameters are set back, and the stream keeps the present
computation. Which changes are refused at once is decided in
:mod:`~delassus_ros.node.refusals`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Set
from concurrent.futures import Future
from typing import Any, Generic, NamedTuple, TypeVar

from rclpy.node import Node
from rclpy.parameter import Parameter

from delassus.algorithms import spelling
from delassus_ros.node.computation import Computation
from delassus_ros.node.declared_parameters import values_of
from delassus_ros.node.parameters import Settings
from delassus_ros.node.refusals import ALGORITHM, DESCRIPTION
from delassus_ros.ros.background import BackgroundTask, wait_for_end
from delassus_ros.ros.lifecycle_program import LifecycleProgram
from delassus_ros.ros.logs import LoopLog, Throttle
from delassus_ros.ros.stream import Stream
from delassus_ros.ros.timers import STEADY

_HANDOVER_POLL_S = 0.02
"""Period of checks of the background task [s]."""

T = TypeVar("T")


class Handover(Generic[T]):
    """Builds one part at a time in the background, and adopts it between two joint states.

    A later build replaces an earlier one, and starts when the thread of the earlier one has ended:
    of several in a row only the last one runs. A thread that does not end in time is abandoned,
    and later builds do not wait for it.

    Parameters
    ----------
    between : defers a function until after the next published matrix.
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
        """Future of the part; None without a build, or while its thread waits for its turn."""
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
        build : returns the part; called by the thread with an event, which is set when the
            build is cancelled.
        """
        self.cancel()
        self._next = name, build
        self._timer = self._node.create_timer(_HANDOVER_POLL_S, self.poll, clock=STEADY)
        self._start()

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
            self._offered = True
            self._between(lambda: self._finish(future))

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


class Target(NamedTuple):
    """Target of a change: URDF text, and name of an algorithm."""

    description: str
    algorithm: str


class Change:
    """Follows the parameter ``algorithm``, and the robot description of parameter or topic.

    Parameters
    ----------
    stream : stream between whose matrices a computation is adopted.
    build : returns the computation of a target, made with settings if its description is new, else
        without; called by the background thread with an event, which is set when the build is
        cancelled.
    adopt : called with the computation before, to use the present one from now on.

    Attributes
    ----------
    present : the computation that was adopted last.
    failures : reason why the last change failed, by parameter; without an entry after a success.
    """

    def __init__(
        self,
        node: LifecycleProgram,
        stream: Stream,
        computation: Computation,
        build: Callable[[Target, Settings | None, threading.Event], Computation],
        adopt: Callable[[Computation], object],
    ) -> None:
        self.failures: dict[str, str] = {}
        self.present = computation
        self._node, self._stream = node, stream
        self._build, self._adopted = build, adopt
        self._fail = Throttle(LoopLog(node.get_logger()).error)
        self._target = self._configured
        self._accept()
        self._handover: Handover[Computation] = Handover(
            node, stream.after_answer, self._adopt, self._failed
        )

    @property
    def building(self) -> Target | None:
        """The computation that is being built, or waits to be adopted; None for none."""
        return self._target if self._handover.building else None

    @property
    def builds_robot(self) -> bool:
        """Whether the computation that is being built is of another robot description."""
        target = self.building
        return target is not None and target.description != self.present.description

    @property
    def _configured(self) -> Target:
        return Target(self.present.description, self.present.solver.algorithm)

    def close(self) -> None:
        """Cancel a change, and wait until its thread and process have ended."""
        self._handover.close()

    def follow(self, names: Set[str] = frozenset()) -> None:
        """Begin a change to the wanted description and algorithm, instead of an earlier change.

        An algorithm that is set while another robot is built follows that robot. An inactive node
        changes its algorithm when it is activated, or with a new description.

        Parameters
        ----------
        names : parameters that were set; ``robot_description`` also for the topic.
        """
        node, present, building = self._node, self.present, self.building
        algorithm: str = node.get_parameter(ALGORITHM).value
        # Without a new one: the description of the topic may have been refused.
        description = present.description if building is None else building.description
        if DESCRIPTION in names:
            description = node.wanted_description or description
        target = Target(description, spelling(algorithm))
        if target == building:
            return
        if DESCRIPTION not in names and self.builds_robot:
            # The algorithm changes after the robot: frequent changes must not delay the build.
            self._accepted[ALGORITHM] = algorithm
            return
        self._handover.cancel()
        is_new = description != present.description
        if DESCRIPTION in names:
            self.failures.pop(DESCRIPTION, None)
            if not is_new:
                self._accepted[DESCRIPTION] = node.get_parameter(DESCRIPTION).value
        if not is_new or DESCRIPTION not in names:
            # This algorithm was set by itself, and stays if the description is refused.
            self._accepted[ALGORITHM] = algorithm
        if is_new:
            settings = Settings.from_parameters(values_of(node))
            self._begin(target, settings, "making another robot")
            return
        if not self._stream.active:
            return
        # An algorithm that the fallback replaced is built anew when it is set again: its back end
        # may be in any state.
        is_replaced = ALGORITHM in names and target.algorithm != present.tick.algorithm
        if is_replaced or target != self._configured:
            self._begin(target, None, f"making {target.algorithm}")
        elif ALGORITHM in names:
            self.failures.pop(ALGORITHM, None)

    def _begin(self, target: Target, settings: Settings | None, name: str) -> None:
        self.failures.pop(ALGORITHM, None)
        self._target = target
        self._handover.begin(name, lambda cancelled: self._build(target, settings, cancelled))

    def _accept(self) -> None:
        """Note the values of the parameters, which are set back to them after a failure."""
        self._accepted = {
            name: self._node.get_parameter(name).value for name in (DESCRIPTION, ALGORITHM)
        }

    def _adopt(self, computation: Computation) -> None:
        before, self.present = self.present, computation
        self._accept()
        self._adopted(before)
        # An algorithm may have been set while a robot was built.
        self.follow()

    def _failed(self, error: Exception) -> None:
        if self._target.description == self.present.description:
            self._refuse_algorithm(error)
        else:
            self._refuse_robot(error)

    def _refuse_algorithm(self, error: Exception) -> None:
        """Log why the algorithm cannot be used, and set its parameter back."""
        wanted, configured = self._target.algorithm, self._configured.algorithm
        active = self.present.tick.algorithm
        text = f"cannot change the algorithm to {wanted!r}, {active!r} goes on: {error}"
        self._fail("algorithm", text)
        if wanted != configured:
            self._accepted[ALGORITHM] = configured
        self._set_back()
        # Last: the change of the parameter is followed, which clears the failure.
        self.failures[ALGORITHM] = f"cannot change to {wanted!r}: {error}"

    def _refuse_robot(self, error: Exception) -> None:
        """Log why the description cannot be used, and set the parameters back."""
        robot = self.present.problem.robot.name
        # Separate kinds of log lines: when a bad parameter is set back, the topic's description
        # counts, which may be bad as well.
        source = "parameter" if self._node.get_parameter(DESCRIPTION).value else "topic"
        text = f"cannot change the robot description, {robot} goes on: {error}"
        self._fail(f"description by {source}", text)
        self._set_back()
        # The algorithm may have been set by itself, for the present robot as well.
        self.follow()
        # Last: the change of the parameter is followed. If that began another change of the
        # description, its result counts.
        if not self.builds_robot:
            self.failures[DESCRIPTION] = str(error)

    def _set_back(self) -> None:
        changes = [
            Parameter(name, value=value)
            for name, value in self._accepted.items()
            if self._node.get_parameter(name).value != value
        ]
        if changes:
            # Set back together: either value may be valid only with the other.
            result = self._node.set_parameters_atomically(changes)
            if not result.successful:
                names = " and ".join(repr(change.name) for change in changes)
                text = f"{names} cannot be set back to what is in use: {result.reason}"
                self._fail("set back", text)
