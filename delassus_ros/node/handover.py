"""Taking what a background thread has made into use between two joint states.

The thread itself is in :mod:`~delassus_ros.node.background`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from rclpy.node import Node

from delassus_ros.node.background import BackgroundTask, Ready, wait_for_end
from delassus_ros.node.clocks import STEADY
from delassus_ros.node.loop_log import LoopLog

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
