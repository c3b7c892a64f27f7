"""Threads that share a batch, awake for a moment after each.

Waking a thread takes as long as a thousand configurations of an arm. So a thread that has done
its part looks out for the next one for a moment before it sleeps, as those of OpenMP do. It looks
and computes in machine code, without the GIL (:mod:`delassus_ros.compiler.team_code`). The
caller's thread works as well, and when nothing is left it waits for those alone that have begun:
where the others' processors are taken, it does all by itself.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
import time
from collections.abc import Sequence

from delassus_ros.compiler.kernel import aligned_zeros
from delassus_ros.compiler.team_code import BOX, LETTER, calls

_SOON = 10
"""A caller looks this many times shorter than a thread before it naps: the parts that are left are
small."""
_NAP = 1e-4
"""Between looks of a caller whose own part was much shorter than the others' [s]."""


class _Member(threading.Thread):
    """A thread and its letter box."""

    def __init__(self) -> None:
        super().__init__(name="delassus_batch", daemon=True)
        self._calls = calls()
        self._memory = aligned_zeros(BOX)
        self._box = self._memory.ctypes.data
        self._letter = (ctypes.c_int64 * 2).from_address(self._box + 8 * LETTER)
        self._asleep = False
        self._called = threading.Event()
        self.start()

    def run(self) -> None:
        """Do what is posted; sleep after a while without."""
        while not self._calls.serve(self._box, self._calls.looks):
            self._asleep = True
            # What was posted before the line above woke nobody.
            if self._calls.serve(self._box, self._calls.looks):
                return
            self._called.wait()
            self._called.clear()
            self._asleep = False

    def post(self, job: int, work: int) -> None:
        """Have it work at a job, by addresses; what was posted before must be settled."""
        self._letter[0], self._letter[1] = job, work
        self._calls.post(self._box)
        if self._asleep:
            self._called.set()

    def is_settled(self) -> bool:
        """Return whether it is done with its job, or will not begin; take back what it has not."""
        return bool(self._calls.settled(self._box, self._calls.looks // _SOON))


def processors() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_idle: list[_Member] = []
"""Those of which nobody waits for anything."""


def together(job: int, works: Sequence[int]) -> None:
    """Work at a job in this thread, and in others as far as they come in time.

    It is done, and nobody works at it any more, when this returns or raises, whoever interrupts.

    Parameters
    ----------
    job : address of its entries, :data:`~delassus_ros.compiler.team_code.JOB`.
    works : addresses of work areas, one for each thread.
    """
    members: list[_Member] = []
    try:
        for work in works[1:]:
            try:
                members.append(_idle.pop())
            except IndexError:
                members.append(_Member())
            members[-1].post(job, work)
        calls().share(job, works[0])
    finally:
        try:
            _finish(members)
        finally:
            _idle.extend(members)


def _finish(members: list[_Member]) -> None:
    """Wait until nobody works any more; what a signal raises meanwhile, comes after."""
    waiting = list(members)
    interrupt: BaseException | None = None
    while waiting:
        try:
            if waiting[-1].is_settled():
                waiting.pop()
            else:
                time.sleep(_NAP)
        except BaseException as error:
            interrupt = error
    if interrupt is not None:
        raise interrupt


@atexit.register
def _end() -> None:
    """End all threads, before the machine code that they run goes."""
    ending = list(_idle)
    _idle.clear()
    for member in ending:
        member.post(0, 0)
    for member in ending:
        member.join()


# A fork leaves its child the members without their threads.
os.register_at_fork(after_in_child=_idle.clear)
