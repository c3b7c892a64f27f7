"""Memory of this process that is not swapped out.

Each function does its part or leaves everything as it was, and returns in words what was done or
why not; none raises for that.
"""

from __future__ import annotations

import ctypes
import os
import resource
from pathlib import Path

from delassus_ros.node.outcome import Outcome

_MCL_CURRENT, _MCL_FUTURE = 1, 2
_CAP_IPC_LOCK = 14


def lock_memory() -> Outcome:
    """Keep all memory of the process, present and future, from being swapped out."""
    limit = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    # With a limit the call may work and some later allocation fail, anywhere.
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
    """Call a function of the C library that returns 0; return what went wrong, or None."""
    function = getattr(ctypes.CDLL(None, use_errno=True), name, None)
    if function is None:
        return f"this system has no {name}()"
    if function(*(ctypes.c_int(argument) for argument in arguments)):
        return os.strerror(ctypes.get_errno())
    return None
