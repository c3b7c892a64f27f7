"""Running code in a process that gets little more memory than its imports take."""

from __future__ import annotations

import subprocess
import sys
import textwrap

ROOM = 700 << 20
"""Bytes beyond what the imports take: what is refused takes far less, a bomb far more."""
LIMIT_S = 60.0
"""Longest time [s] of what takes a second or two."""
_BEGIN = """
import resource

def limit():
    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[0])
    most = pages * resource.getpagesize() + {room}
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
"""


def run(code: str, room: int = ROOM) -> subprocess.CompletedProcess[str]:
    """Run code that imports what it needs and then calls ``limit()``.

    Parameters
    ----------
    room : bytes that it may take after that.
    """
    program = _BEGIN.format(room=room) + textwrap.dedent(code)
    return subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True, text=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip
