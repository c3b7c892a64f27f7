"""ROS domains for tests: no two processes that run tests of one user share one."""

from __future__ import annotations

import fcntl
import itertools
import os
import tempfile
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import TextIO

# Up to 101 the ports of a domain are free of the ephemeral ones on every system.
_BLOCK, _BLOCKS = 5, 20


def claimed(folder: Path) -> tuple[int, TextIO]:
    """Return the first domain of a block of them, and the open file that keeps others away."""
    for block in range(_BLOCKS):
        path = folder / f"delassus_test_domains_{os.getuid()}_{block}"
        file = path.open("a", encoding="utf-8")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
        else:
            return 1 + _BLOCK * block, file
    raise RuntimeError(f"{_BLOCKS} processes run tests with ROS; there are no domains for more")


@lru_cache(maxsize=1)
def _own() -> tuple[Iterator[int], TextIO]:
    first, file = claimed(Path(tempfile.gettempdir()))
    return itertools.cycle(range(first, first + _BLOCK)), file


def new_domain() -> int:
    """Return a ROS domain id that no other such process has; this one had it five calls ago."""
    return next(_own()[0])
