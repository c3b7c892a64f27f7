"""Real-time mode: requests to the system that help a process to keep its rate, and their undoing.

No request is necessary, and most of them need permission. A function that makes a request returns
in words what was done, or why nothing was changed; a refusal raises nothing. Priority and
processors are requested for all threads that the process has at that time: the middleware receives
messages in separate threads, which exist before any parameter is read.

A control loop sleeps most of the time, and so do its processors. Deeper sleep states take longer
to leave: some 0.1 ms in the deepest states of common processors. Linux excludes all states beyond
a limit for as long as the file is open to which the limit was written.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import gc
import os
import resource
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from threadpoolctl import threadpool_info, threadpool_limits


@dataclass(frozen=True)
class RealtimeSettings:
    """Requests to the system; by default those that need no permission.

    Attributes
    ----------
    priority : of SCHED_FIFO, 1 to 99; 0 for normal scheduling.
    processors : numbers of the processors to run on; all if empty.
    hold_garbage : collect garbage between joint states only.
    wakeup_latency : longest wake-up time of idle processors [µs]; -1 for the system's setting.
    """

    priority: int = 0
    processors: tuple[int, ...] = ()
    lock_memory: bool = False
    hold_garbage: bool = True
    wakeup_latency: int = -1


class RealtimeMode:
    """Switches the process to real-time mode, and back to its earlier state.

    All requests except those for garbage and the wake-up time count for the whole process. Of
    several nodes in one process the latest request counts, and a node that leaves first undoes the
    requests of a node that entered later.
    """

    def __init__(self) -> None:
        self._undo: list[Callable[[], Outcome]] = []
        self._garbage = GarbageKeeper()
        self._wakeup = WakeupLimit()
        self.idle = self._garbage.idle
        """To be called after every tick, when the answer is published."""
        self.rest = self._garbage.rest
        """To be called about once per second, between two ticks."""

    def enter(self, settings: RealtimeSettings) -> list[Outcome]:
        """Make all requests; undo those of an earlier call first.

        Memory is locked and garbage collected before the priority is raised, as both take long.
        Requests of an earlier call that cannot be undone come first among the outcomes.
        """
        outcomes = [outcome for outcome in self.leave() if not outcome.done]
        outcomes.append(limit_blas_threads())

        def request(outcome: Outcome, undo: Callable[[], Outcome]) -> None:
            outcomes.append(outcome)
            if outcome.done:
                self._undo.append(undo)

        if settings.hold_garbage:
            request(self._garbage.hold(), self._garbage.release)
        if settings.lock_memory:
            request(lock_memory(), unlock_memory)
        if settings.wakeup_latency >= 0:
            request(self._wakeup.hold(settings.wakeup_latency), self._wakeup.release)
        if settings.processors:
            before = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
            request(set_processors(settings.processors), lambda: restore_processors(before))
        if settings.priority:
            priority = thread_priority()
            request(set_priority(settings.priority), lambda: set_priority(priority))
        return outcomes

    def leave(self) -> list[Outcome]:
        """Undo the requests of :meth:`enter`, the last one first; return the outcomes."""
        outcomes = []
        while self._undo:
            outcomes.append(self._undo.pop()())
        return outcomes


_followers: set[int] = set()
"""Ids of threads whose priority stays one below that of the process."""


def set_priority(priority: int) -> Outcome:
    """Run all threads of the process with SCHED_FIFO at a priority of 1 to 99; 0 is normal.

    Processes and threads that these threads start later have normal scheduling. A process without
    CAP_SYS_NICE cannot undo that flag, so that it stays after a priority of 0.
    """
    if not hasattr(os, "sched_setscheduler"):
        return Outcome(False, "no real-time priority: this system has no SCHED_FIFO")
    policy = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK if priority else os.SCHED_OTHER
    what = f"real-time priority {priority} (SCHED_FIFO)" if priority else "normal scheduling"

    def change(thread: int) -> None:
        below = priority > 1 and thread in _followers
        wanted = os.sched_param(priority - below)
        try:
            os.sched_setscheduler(thread, policy, wanted)
        except PermissionError:
            if priority:
                raise
            # The flag is set, and clearing it takes CAP_SYS_NICE.
            os.sched_setscheduler(thread, policy | os.SCHED_RESET_ON_FORK, wanted)

    try:
        _for_all_threads(change)
    except PermissionError:
        allowed = resource.getrlimit(resource.RLIMIT_RTPRIO)[0]
        return Outcome(
            False,
            f"no {what}: not permitted, this user may use at most {allowed}; allow more with "
            f"'<user> - rtprio {priority}' in /etc/security/limits.conf and log in again, or give "
            "the process CAP_SYS_NICE (in a container: --cap-add=sys_nice --ulimit "
            f"rtprio={priority})",
        )
    except OSError as error:
        low, high = (get(os.SCHED_FIFO) for get in (os.sched_get_priority_min,
                                                    os.sched_get_priority_max))  # fmt: skip
        return Outcome(False, f"no {what}: {error.strerror}; expected {low} to {high}, or 0")
    return Outcome(True, f"{what}; processes it starts have normal scheduling")


def set_processors(processors: Iterable[int]) -> Outcome:
    """Restrict all threads of the process to these processors; to all allowed ones if empty.

    Child processes inherit the restriction.
    """
    if not hasattr(os, "sched_setaffinity"):
        return Outcome(False, "not kept to processors: this system cannot do that")
    wanted = sorted(set(processors))
    before = os.sched_getaffinity(0)
    # Processors may be switched off, so that the numbers of usable ones may exceed their count.
    existing = range(max(os.sysconf("SC_NPROCESSORS_CONF"), max(before) + 1))
    unknown = [cpu for cpu in wanted if cpu not in existing]
    if unknown:
        return Outcome(
            False,
            f"not kept to processors {_listed(wanted)}: there is no processor {unknown[0]}; "
            f"processors: 0 to {existing[-1]}",
        )
    try:
        _for_all_threads(lambda thread: os.sched_setaffinity(thread, wanted or existing))
        taken = os.sched_getaffinity(0)
        if wanted and taken != set(wanted):
            # A cgroup removes processors without an error.
            _for_all_threads(lambda thread: os.sched_setaffinity(thread, before))
            return Outcome(
                False,
                f"not kept to processors {_listed(wanted)}: of these only "
                f"{_listed(sorted(taken))} are allowed here",
            )
    except OSError as error:
        return Outcome(
            False,
            f"not kept to processors {_listed(wanted)}: {error.strerror}; a container or "
            f"cgroup may allow others: {_listed(sorted(before))} were in use",
        )
    return Outcome(True, f"runs on processors {_listed(sorted(taken))}")


def restore_processors(processors: Iterable[int]) -> Outcome:
    """Let all threads of the process use the processors that they had before."""
    before = set(processors)
    try:
        _for_all_threads(lambda thread: os.sched_setaffinity(thread, before))
    except OSError as error:
        return Outcome(
            False, f"not back on processors {_listed(sorted(before))}: {error.strerror}"
        )
    return Outcome(True, f"runs on processors {_listed(sorted(os.sched_getaffinity(0)))}")


def thread_priority() -> int:
    """Return the SCHED_FIFO priority of the calling thread; 0 for normal scheduling."""
    if not hasattr(os, "sched_getscheduler"):
        return 0
    policy = os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK
    return os.sched_getparam(0).sched_priority if policy == os.SCHED_FIFO else 0


@contextlib.contextmanager
def following(priority: int) -> Iterator[None]:
    """Run the calling thread one below a SCHED_FIFO priority; 0 and 1 change nothing.

    A thread that waits for Python's lock waits for the holder of the lock, which therefore must
    not wait for all further threads of the machine. A later :func:`set_priority` keeps the thread
    one below the new priority.
    """
    thread = threading.get_native_id()
    _followers.add(thread)
    if priority > 1:
        # Without permission the priority does not change.
        with contextlib.suppress(OSError):
            policy = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK
            os.sched_setscheduler(0, policy, os.sched_param(priority - 1))
    try:
        yield
    finally:
        _followers.discard(thread)


def _for_all_threads(change: Callable[[int], object]) -> None:
    """Call a function with the ids of all threads of the process, the calling thread first.

    An OSError of the function is raised, except for a thread that has ended meanwhile.
    """
    # 0 is the calling thread. A refusal comes before anything has changed.
    change(0)
    try:
        threads = [int(entry.name) for entry in Path("/proc/self/task").iterdir()]
    except OSError:
        threads = []
    for thread in threads:
        if thread != threading.get_native_id():
            with contextlib.suppress(ProcessLookupError):
                change(thread)


def _listed(processors: Iterable[int]) -> str:
    return ", ".join(str(processor) for processor in processors) or "none"


_YOUNG = 2000
"""Number of new objects from which on a young collection is worth its time (about 50 µs)."""
_MIDDLE = 50
"""Number of young collections between two that include the middle generation."""
_FULL_PERIOD_S = 60.0
"""Time between two collections of all generations [s]."""


class GarbageKeeper:
    """Keeps Python's garbage collection out of a control loop.

    While at least one keeper of the process holds, Python's automatic collection is off, and
    earlier objects are frozen (never examined). New cycles are collected by :meth:`idle`, which
    the loop calls when it has time; cycles that outlive several such collections by :meth:`rest`;
    all remaining cycles by :meth:`release`.
    """

    _holders = 0
    _lock = threading.Lock()

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._holds = False
        self._clock = clock
        self._looked = 0.0

    def hold(self) -> Outcome:
        """Collect once, then stop collecting."""
        with self._lock:
            if not self._holds:
                self._holds = True
                GarbageKeeper._holders += 1
                gc.collect()
                gc.freeze()
                gc.disable()
                self._looked = self._clock()
        return Outcome(True, "garbage is collected between joint states only")

    def release(self) -> Outcome:
        """Restore the automatic collection, unless another keeper holds."""
        with self._lock:
            if self._holds:
                self._holds = False
                GarbageKeeper._holders -= 1
                if not GarbageKeeper._holders:
                    gc.unfreeze()
                    gc.enable()
                gc.collect()
        return Outcome(True, "garbage is collected as usual")

    def idle(self) -> bool:
        """Collect new objects if there are enough; return whether a collection was done."""
        young, middle, _ = gc.get_count()
        if not self._holds or young < _YOUNG:
            return False
        gc.collect(1 if middle >= _MIDDLE else 0)
        return True

    def rest(self) -> bool:
        """Collect all objects since :meth:`hold`, at most once per 60 s.

        To be called about once per second. In this node the collection takes 0.03 to 0.3 ms, as
        earlier objects are frozen; a collection of all objects takes 50 ms. Return whether a
        collection was done.
        """
        now = self._clock()
        if not self._holds or now - self._looked < _FULL_PERIOD_S:
            return False
        self._looked = now
        gc.collect()
        return True


_MCL_CURRENT, _MCL_FUTURE = 1, 2
_CAP_IPC_LOCK = 14


def lock_memory() -> Outcome:
    """Keep all memory of the process, present and future, from being swapped out."""
    limit = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    # With a limit, the call may succeed and any later allocation may fail.
    if limit != resource.RLIM_INFINITY and not _has_capability(_CAP_IPC_LOCK):
        return Outcome(
            False,
            f"memory not locked: this user may lock {limit // 1024} kB, and once memory is "
            "locked everything beyond could not be allocated; allow it with '<user> - memlock "
            "unlimited' in /etc/security/limits.conf and log in again (in a container: "
            "--ulimit memlock=-1)",
        )
    failure = _call_libc("mlockall", _MCL_CURRENT | _MCL_FUTURE)
    if failure is not None:
        return Outcome(False, f"memory not locked: {failure}")
    return Outcome(True, "all memory is locked into RAM")


def unlock_memory() -> Outcome:
    """Undo :func:`lock_memory`."""
    failure = _call_libc("munlockall")
    if failure is not None:
        return Outcome(False, f"memory not unlocked: {failure}")
    return Outcome(True, "memory may be swapped out again")


def _has_capability(number: int) -> bool:
    """Return whether the process has a capability of Linux."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return False
    effective = [line.split()[1] for line in status.splitlines() if line.startswith("CapEff:")]
    return bool(effective) and bool(int(effective[0], 16) >> number & 1)


def _call_libc(name: str, *arguments: int) -> str | None:
    """Call a function of the C library that returns 0 on success; return its error, or None."""
    function = getattr(ctypes.CDLL(None, use_errno=True), name, None)
    if function is None:
        return f"this system has no {name}()"
    if function(*(ctypes.c_int(argument) for argument in arguments)):
        return os.strerror(ctypes.get_errno())
    return None


def limit_blas_threads() -> Outcome:
    """Restrict numpy's linear algebra to the calling thread.

    For matrices as small as these, worker threads save no time, and waiting for them takes
    milliseconds when the machine is busy. A reference BLAS, as Debian's numpy has it by default,
    has no threads.
    """
    threadpool_limits(1, user_api="blas")
    libraries = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    unlimited = [Path(pool["filepath"]).name for pool in libraries if pool["num_threads"] != 1]
    if unlimited:
        return Outcome(
            False,
            f"linear algebra may use threads of its own: {unlimited[0]} is loaded, "
            "whose threads the node cannot limit; set OMP_NUM_THREADS=1 in the environment of "
            "the process",
        )
    if libraries:
        return Outcome(True, "linear algebra runs in the calling thread")
    return Outcome(True, "linear algebra: no library known to have threads is loaded")


DEVICE = "/dev/cpu_dma_latency"


class WakeupLimit:
    """A request for a limit of the wake-up time; the shortest of all processes counts."""

    def __init__(self) -> None:
        self._file: int | None = None

    def hold(self, microseconds: int) -> Outcome:
        """Exclude sleep states that take longer to leave [µs]; 0 keeps processors awake."""
        self.release()
        try:
            self._file = os.open(DEVICE, os.O_WRONLY)
            os.write(self._file, struct.pack("i", microseconds))
        except OSError as error:
            self.release()
            return Outcome(False, f"processors may sleep deeply: {_reason(error)}")
        return Outcome(True, f"idle processors wake up within {microseconds} µs")

    def release(self) -> Outcome:
        """Undo :meth:`hold`."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
        return Outcome(True, "idle processors sleep as the system is set")


def _reason(error: OSError) -> str:
    if error.errno in (errno.EACCES, errno.EPERM):
        return (
            f"not permitted, {DEVICE} cannot be written; allow it with a udev rule such as "
            'KERNEL=="cpu_dma_latency", GROUP="realtime", MODE="0660" (in a container: '
            f"--device={DEVICE})"
        )
    if error.errno == errno.ENOENT:
        return f"there is no {DEVICE} here (in a container: --device={DEVICE})"
    return f"{DEVICE}: {error.strerror}"


@dataclass(frozen=True)
class Outcome:
    """The outcome of a request.

    Attributes
    ----------
    done : whether the request was met, or needed no action.
    text : the action, or the reason of the refusal and a remedy, in a sentence.
    """

    done: bool
    text: str
