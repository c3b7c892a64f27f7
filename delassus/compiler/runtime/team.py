"""Threads that share a batch; a thread stays awake for a moment after its part.

Waking a thread takes as long as a thousand configurations of an arm. Speed of two threads over
one, shortest of interleaved calls in two runs on two cores that other processes used as well:

============== =============== ===================== ============
configurations robot           pool, 4 or 8 parts    these
============== =============== ===================== ============
4096           arm             0.98, 1.18            1.41, 1.77
4096           quadruped       1.17, 1.49            1.58, 1.87
16384          arm             1.28, 1.59            1.56, 1.90
16384          quadruped       1.47, 1.80            1.57, 1.89
16384          humanoid        1.82, 1.93            1.80, 1.87
============== =============== ===================== ============

The pool is an ordinary one whose threads release the GIL; it pays from about 16384 configurations
of an arm on (0.3 ms in one thread), and is as good as these threads from 3 ms on.

So a thread that has done its part polls its mailbox for a moment before it sleeps, as the
threads of OpenMP do; it polls and computes in machine code, without the GIL. The caller's thread
works as well, and when no part is left it waits only for the threads that have begun: where their
processors are taken, the caller computes everything by itself.

The loops and the layout of jobs and mailboxes are in
:mod:`delassus.compiler.runtime.team_loops`.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
import time
from collections.abc import Sequence
from functools import lru_cache

from delassus.compiler.codegen.loops import modules_ir
from delassus.compiler.runtime import team_loops
from delassus.compiler.runtime.jit import LoadedCode, compile_ir
from delassus.compiler.runtime.kernel import aligned_zeros
from delassus.compiler.runtime.team_loops import BOX_SIZE, END

_CALLER_SHARE = 10
"""A caller polls for this fraction of the time of a thread before it sleeps: the parts that are
left are small."""
CALLER_POLL_S = 1e-4
"""Sleep of a caller between two polls while a thread is still at a longer part [s]."""
_AWAKE_S = 5e-4
"""Time for which a thread polls at once [s]; it sleeps after two times. Polls have no pause: a
hypervisor may take a processor that pauses often away from its guest."""
_TIMED_POLLS = 200_000
"""Polls whose duration is measured: about 0.1 ms, compared with which a call is short."""


class _Calls:
    """The machine code of the loops, as functions that release the GIL.

    Attributes
    ----------
    share, serve, post, settled : see :mod:`~delassus.compiler.runtime.team_loops`; arrays by
        their addresses.
    polls : number of polls of an empty mailbox in the time that a thread is awake.
    """

    def __init__(self) -> None:
        # Without LLVM's middle end, which takes longer than these loops gain by it.
        text = modules_ir([team_loops], ["share", "serve", "post", "settled"])
        self._code = LoadedCode(compile_ir(text))
        number = ctypes.c_int64
        polling = ctypes.CFUNCTYPE(number, number, number)
        self.serve = polling(self._code.address("serve"))
        self.settled = polling(self._code.address("settled"))
        self.post = ctypes.CFUNCTYPE(None, *[number] * 3)(self._code.address("post"))
        self.share = ctypes.CFUNCTYPE(None, number, number)(self._code.address("share"))
        self.polls = self._measured()

    def _measured(self) -> int:
        box, times = aligned_zeros(BOX_SIZE), []
        for _ in range(3):
            start = time.perf_counter()
            self.serve(box.ctypes.data, _TIMED_POLLS)
            times.append(time.perf_counter() - start)
        return round(_TIMED_POLLS * _AWAKE_S / min(times))


@lru_cache(maxsize=1)
def _calls() -> _Calls:
    """Return the machine code, compiled once."""
    return _Calls()


class _Member(threading.Thread):
    """A thread and its mailbox."""

    def __init__(self) -> None:
        super().__init__(name="delassus_batch", daemon=True)
        self._calls = _calls()
        self._memory = aligned_zeros(BOX_SIZE)
        self._box = self._memory.ctypes.data
        self._asleep = False
        self._called = threading.Event()
        self.start()

    def run(self) -> None:
        """Work at the jobs that are posted; sleep after a while without a job."""
        while not self._calls.serve(self._box, self._calls.polls):
            self._asleep = True
            # A job that was posted before the line above woke no thread.
            if self._calls.serve(self._box, self._calls.polls):
                return
            self._called.wait()
            self._called.clear()
            self._asleep = False

    def post(self, job: int, work: int) -> None:
        """Post a job, by addresses; the job before must be settled."""
        self._calls.post(self._box, job, work)
        if self._asleep:
            self._called.set()

    def is_settled(self) -> bool:
        """Return whether the job is done, or is taken back because the thread has not begun it."""
        return bool(self._calls.settled(self._box, self._calls.polls // _CALLER_SHARE))


def processors() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_idle: list[_Member] = []
"""Members without a job."""


def together(job: int, works: Sequence[int]) -> None:
    """Work at a job in this thread, and in further threads as far as they come in time.

    The job is done, and no thread works at it, when this function returns or raises.

    Parameters
    ----------
    job : address of its entries, :class:`~delassus.compiler.runtime.team_loops.Job`.
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
        _calls().share(job, works[0])
    finally:
        try:
            _finish(members)
        finally:
            _idle.extend(members)


def _finish(members: list[_Member]) -> None:
    """Wait until no member works; an exception of a signal handler is raised afterwards."""
    waiting = list(members)
    interrupt: BaseException | None = None
    while waiting:
        try:
            if waiting[-1].is_settled():
                waiting.pop()
            else:
                time.sleep(CALLER_POLL_S)
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
        member.post(END, 0)
    for member in ending:
        member.join()


# A fork leaves its child the members without their threads.
os.register_at_fork(after_in_child=_idle.clear)
