"""A function in a background thread, so that the control loop goes on meanwhile.

How the node adopts results is in :mod:`~delassus_ros.node.change`.
"""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

from delassus.errors import DelassusError
from delassus_ros.ros.realtime import following, thread_priority

CANCEL_LIMIT_S = 5.0
"""Time within which a cancelled task must end [s]."""
_SWITCH_INTERVAL_S = 1e-4
"""Switch interval of Python's threads while a task runs [s]."""

T = TypeVar("T")


class CancelledTaskError(DelassusError):
    """A task was cancelled before it had a result."""


class BackgroundTask(Generic[T]):
    """A thread that calls one function, and the future of its result.

    While a task runs, Python's threads take turns more often, so that the control loop waits for
    some 0.1 ms, not for Python's default of 5 ms. Unlike a thread of an executor, a thread that
    hangs can be abandoned, and does not delay the end of the process.

    Parameters
    ----------
    function : returns the result; called with an event, which is set when the task is cancelled.

    Attributes
    ----------
    future : result or exception of `function`; :class:`CancelledTaskError` after a cancellation.
    """

    def __init__(self, name: str, function: Callable[[threading.Event], T]) -> None:
        self.future: Future[T] = Future()
        self._cancelled = threading.Event()
        self._latest_end = math.inf
        self._is_reported = False
        self._function = function
        self._priority = thread_priority()
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)
        # Before the start: a thread that waits for its turn keeps the interval set at that time.
        _take_turns_more_often(self)
        try:
            self.thread.start()
        except BaseException:
            _take_turns_as_usual(self)
            raise

    @property
    def ended(self) -> bool:
        """Whether the thread has ended."""
        return not self.thread.is_alive()

    def cancel(self) -> None:
        """Cancel the task, which must end within :data:`CANCEL_LIMIT_S` of the first call."""
        if not self._cancelled.is_set():
            self._latest_end = time.monotonic() + CANCEL_LIMIT_S
            self._cancelled.set()

    def wait(self) -> None:
        """Wait until the thread has ended, or the time limit of a cancelled task is over."""
        rest = self._latest_end - time.monotonic()
        self.thread.join(None if rest == math.inf else max(0.0, rest))

    def is_abandoned(self, report: Callable[[str], object]) -> bool:
        """Return whether the task was cancelled and has not ended in time: a plug-in may hang.

        Parameters
        ----------
        report : called once with the text.
        """
        if self.ended or time.monotonic() < self._latest_end:
            return False
        if not self._is_reported:
            self._is_reported = True
            report(
                f"{self.thread.name} was given up but has not ended within {CANCEL_LIMIT_S:g} s: "
                "its thread is left alone"
            )
        return True

    def _run(self) -> None:
        try:
            with following(self._priority):
                result = self._function(self._cancelled)
            if self._cancelled.is_set():
                raise CancelledTaskError(f"{self.thread.name} was cancelled")
        except Exception as error:
            # Any exception of a plug-in: the future passes it on.
            self.future.set_exception(error)
        except BaseException as error:
            # A plug-in that wants to end the process ends this thread alone.
            self.future.set_exception(DelassusError(f"{type(error).__name__}: {error}"))
        else:
            self.future.set_result(result)
        finally:
            _take_turns_as_usual(self)


def wait_for_end(
    tasks: Sequence[BackgroundTask[T]], report: Callable[[str], object]
) -> list[BackgroundTask[T]]:
    """Cancel tasks, and wait until their threads and the processes of the threads have ended.

    Parameters
    ----------
    report : called with a text about every task that has not ended within
        :data:`CANCEL_LIMIT_S`.

    Returns
    -------
    The abandoned tasks.
    """
    for task in tasks:
        task.cancel()
    for task in tasks:
        task.wait()
    return [task for task in tasks if task.is_abandoned(report)]


_lock = threading.Lock()
_working: set[BackgroundTask[Any]] = set()
_usual = 0.0


def _take_turns_more_often(task: BackgroundTask[Any]) -> None:
    global _usual
    with _lock:
        if not _working:
            _usual = sys.getswitchinterval()
            sys.setswitchinterval(min(_usual, _SWITCH_INTERVAL_S))
        _working.add(task)


def _take_turns_as_usual(task: BackgroundTask[Any]) -> None:
    """Restore the interval after the last task; safe to call twice for a task."""
    with _lock:
        if task in _working:
            _working.remove(task)
            if not _working:
                sys.setswitchinterval(_usual)
