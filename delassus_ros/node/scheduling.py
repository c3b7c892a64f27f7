"""Priority and processors of all threads of this process.

Each function that asks the system for something does it or leaves everything as it was, and
returns in words what was done or why not; none raises for that. It asks for all threads that the
process has at that time: the middleware takes a message from the network in threads of its own,
made before any parameter is read.
"""

from __future__ import annotations

import contextlib
import os
import resource
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from delassus_ros.node.outcome import Outcome

_followers: set[int] = set()
"""Threads that stay just below the others."""


def set_priority(priority: int) -> Outcome:
    """Run all threads of the process with SCHED_FIFO at a priority of 1 to 99; 0 is normal.

    Processes and threads that they start from then on have normal scheduling. Without
    CAP_SYS_NICE that stays so after 0: Linux lets nobody else take it back.
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
        _each_thread(change)
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
    """Keep all threads of the process to these processors; if none, to all that are allowed.

    Children inherit this.
    """
    if not hasattr(os, "sched_setaffinity"):
        return Outcome(False, "not kept to processors: this system cannot do that")
    wanted = sorted(set(processors))
    before = os.sched_getaffinity(0)
    # Some that exist may be switched off, and those that may be used have higher numbers then.
    existing = range(max(os.sysconf("SC_NPROCESSORS_CONF"), max(before) + 1))
    unknown = [cpu for cpu in wanted if cpu not in existing]
    if unknown:
        return Outcome(
            False,
            f"not kept to processors {_listed(wanted)}: there is no processor {unknown[0]}; "
            f"processors: 0 to {existing[-1]}",
        )
    try:
        _each_thread(lambda thread: os.sched_setaffinity(thread, wanted or existing))
        taken = os.sched_getaffinity(0)
        if wanted and taken != set(wanted):
            # A cgroup takes away processors without a word.
            _each_thread(lambda thread: os.sched_setaffinity(thread, before))
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
        _each_thread(lambda thread: os.sched_setaffinity(thread, before))
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
    """Run the calling thread just below a SCHED_FIFO priority, where that is one.

    Whoever waits for Python's lock waits for its holder, who therefore must not wait for all
    the others of the machine. Where :func:`set_priority` comes later, it stays below that.
    """
    thread = threading.get_native_id()
    _followers.add(thread)
    if priority > 1:
        # Without permission it stays as it is.
        with contextlib.suppress(OSError):
            policy = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK
            os.sched_setscheduler(0, policy, os.sched_param(priority - 1))
    try:
        yield
    finally:
        _followers.discard(thread)


def _each_thread(change: Callable[[int], object]) -> None:
    """Call a function with the id of each thread of the process, the calling one first.

    Raises
    ------
    OSError
        What the function raises, but for a thread that has ended meanwhile.
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
