"""Making one thing in a thread, so that the control loop goes on meanwhile.

How the node takes what was made is in :mod:`~delassus_ros.node.lifecycle.swaps`.
"""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from delassus_ros.errors import DelassusError
from delassus_ros.node.system.realtime import following, thread_priority

PATIENCE = 5.0
"""Time that what is not wanted any more has to end in [s]."""
_SWITCH = 1e-4  # s after which a thread that makes something lets others go on

T = TypeVar("T")


class GivenUpError(DelassusError):
    """What was being made is not wanted any more."""


class BackgroundTask(Generic[T]):
    """A thread that makes one thing, and what it has made.

    As long as it works, Python's threads take turns more often: the control loop is to wait for
    tenths of a millisecond, where by default it would be five.

    Parameters
    ----------
    name : of the thread.
    make : returns it; given an event, which is set when it is not wanted any more.
    daemon : whether the process may end without it, as where `make` may hang.
    """

    def __init__(
        self, name: str, make: Callable[[threading.Event], T], daemon: bool = True
    ) -> None:
        self.unwanted = threading.Event()
        self._latest_end = math.inf
        self._is_said = False
        self._make = make
        self._made: list[T] = []
        self._error: Exception = GivenUpError(f"{name} was given up")
        self._priority = thread_priority()
        self.thread = threading.Thread(target=self._run, name=name, daemon=daemon)
        # Before it starts: whoever waits for its turn by then waits for the time that counts then.
        _take_turns_more_often(self)
        try:
            self.thread.start()
        except BaseException:
            _take_turns_as_usual(self)
            raise

    @property
    def ended(self) -> bool:
        """Whether there is a result."""
        return not self.thread.is_alive()

    def give_up(self) -> None:
        """Want it no more; from the first time on it has :data:`PATIENCE` to end."""
        if not self.unwanted.is_set():
            self._latest_end = time.monotonic() + PATIENCE
            self.unwanted.set()

    def wait(self) -> None:
        """Wait until the thread has ended, or, once it was given up, has had its time to do so."""
        rest = self._latest_end - time.monotonic()
        self.thread.join(None if rest == math.inf else max(0.0, rest))

    def is_left_alone(self, say: Callable[[str], object]) -> bool:
        """Return whether it was given up and has not ended in time: a plug-in may hang.

        Parameters
        ----------
        say : called with that, once.
        """
        if self.ended or time.monotonic() < self._latest_end:
            return False
        if not self._is_said:
            self._is_said = True
            say(
                f"{self.thread.name} was given up but has not ended within {PATIENCE:g} s: its "
                "thread is left alone"
            )
        return True

    def result(self) -> T:
        """Return what was made, once its thread has ended; raises what that raised."""
        if not self._made:
            raise self._error
        return self._made[0]

    def _run(self) -> None:
        try:
            with following(self._priority):
                made = self._make(self.unwanted)
        except Exception as error:
            # Whatever a plug-in raises: who asks for the result gets it.
            self._error = error
        except BaseException as error:
            # A plug-in that wants to end the process ends this thread alone.
            self._error = DelassusError(f"{type(error).__name__}: {error}")
        else:
            if not self.unwanted.is_set():
                self._made.append(made)
        finally:
            _take_turns_as_usual(self)


class Ready(Generic[T]):
    """Something that was made before, in place of a task that makes it."""

    ended = True

    def __init__(self, made: T) -> None:
        self._made = made

    def give_up(self) -> None:
        """Want it no more; it costs nothing."""

    def result(self) -> T:
        """Return it."""
        return self._made


def wait_for_end(
    tasks: Sequence[BackgroundTask[T]], say: Callable[[str], object]
) -> list[BackgroundTask[T]]:
    """Give tasks up, and wait until their threads, and the processes of those, have ended.

    Parameters
    ----------
    tasks : those that may be at work.
    say : called with what is left alone, as it has not ended within :data:`PATIENCE`.

    Returns
    -------
    Those that are left alone.
    """
    for task in tasks:
        task.give_up()
    for task in tasks:
        task.wait()
    return [task for task in tasks if task.is_left_alone(say)]


_lock = threading.Lock()
_working: set[BackgroundTask[Any]] = set()
_usual = 0.0


def _take_turns_more_often(task: BackgroundTask[Any]) -> None:
    global _usual
    with _lock:
        if not _working:
            _usual = sys.getswitchinterval()
            sys.setswitchinterval(min(_usual, _SWITCH))
        _working.add(task)


def _take_turns_as_usual(task: BackgroundTask[Any]) -> None:
    """Undo it for this task, once: an interrupt may come when its thread has just begun."""
    with _lock:
        if task in _working:
            _working.remove(task)
            if not _working:
                sys.setswitchinterval(_usual)
