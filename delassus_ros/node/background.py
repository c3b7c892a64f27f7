"""Making one thing in a thread, so that the control loop goes on meanwhile.

How the node takes what was made is in :mod:`~delassus_ros.node.handover`.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from delassus_ros.errors import DelassusError
from delassus_ros.node.scheduling import following, thread_priority

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
        self._make = make
        self._made: list[T] = []
        self._error: Exception = GivenUpError(f"{name} was given up")
        self._priority = thread_priority()
        self.thread = threading.Thread(target=self._run, name=name, daemon=daemon)
        # Before it starts: whoever waits for its turn by then waits for the time that counts then.
        _take_turns_more_often()
        try:
            self.thread.start()
        except BaseException:
            _take_turns_as_usual()
            raise

    @property
    def ended(self) -> bool:
        """Whether there is a result."""
        return not self.thread.is_alive()

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
            _take_turns_as_usual()


class Ready(Generic[T]):
    """Something that was made before, in place of a task that makes it."""

    ended = True

    def __init__(self, made: T) -> None:
        self.unwanted = threading.Event()
        self._made = made

    def result(self) -> T:
        """Return it."""
        return self._made


def wait_for_end(
    threads: Iterable[threading.Thread], say: Callable[[str], object]
) -> list[threading.Thread]:
    """Wait until threads whose work is not wanted any more, and their processes, have ended.

    A plug-in may hang. What has not ended after :data:`PATIENCE` is left alone, and said.

    Parameters
    ----------
    threads : those that may be at work.
    say : called with what is wrong.

    Returns
    -------
    Those that have not ended.
    """
    end = time.monotonic() + PATIENCE
    left = []
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
        if thread.is_alive():
            left.append(thread)
            say(
                f"{thread.name} was given up but has not ended within {PATIENCE:g} s: its thread "
                "is left alone"
            )
    return left


_lock = threading.Lock()
_working = 0
_usual = 0.0


def _take_turns_more_often() -> None:
    global _working, _usual
    with _lock:
        if not _working:
            _usual = sys.getswitchinterval()
            sys.setswitchinterval(min(_usual, _SWITCH))
        _working += 1


def _take_turns_as_usual() -> None:
    global _working
    with _lock:
        _working -= 1
        if not _working:
            sys.setswitchinterval(_usual)
