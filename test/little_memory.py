"""Running code in a process that gets little more memory or disk than its imports take."""

from __future__ import annotations

import subprocess
import sys
import textwrap

from hanging import HANG_S

ROOM = 700 << 20
"""Bytes beyond what the imports take: what is refused takes far less, a bomb far more."""
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
    """Run code that imports what it needs and then calls ``limit()``, or sets another limit.

    The process writes no bytecode: below a limit of the size of files, Python writes a part of a
    module's bytecode beside the module, and every later import of the module fails.

    Parameters
    ----------
    room : bytes that it may take after that.
    """
    program = _BEGIN.format(room=room) + textwrap.dedent(code)
    return subprocess.run(
        [sys.executable, "-B", "-c", program],
        capture_output=True, text=True, timeout=HANG_S, check=False,
    )  # fmt: skip
