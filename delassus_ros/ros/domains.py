"""ROS domains of this machine, claimed by programs: no two programs of a user share a domain."""

from __future__ import annotations

import fcntl
import os
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import TextIO

from delassus.errors import DelassusError

# Up to 101 the ports of a domain are free of the ephemeral ones on every system.
_BLOCK, _BLOCKS = 5, 20


def claimed(folder: Path) -> tuple[range, TextIO]:
    """Return a block of domains, and the open file whose lock keeps other processes away.

    The folder has one lock file per block. A DelassusError is raised if all blocks are claimed.
    """
    for block in range(_BLOCKS):
        path = folder / f"delassus_test_domains_{os.getuid()}_{block}"
        file = path.open("a", encoding="utf-8")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
        else:
            first = 1 + _BLOCK * block
            return range(first, first + _BLOCK), file
    raise DelassusError(f"{_BLOCKS} processes have claimed ROS domains; there are no more")


@lru_cache(maxsize=1)
def _own() -> tuple[range, TextIO]:
    return claimed(Path(tempfile.gettempdir()))


def own_domains() -> range:
    """Return the domains of this process, which are claimed until the process ends.

    Raises
    ------
    DelassusError
        If all domains are claimed.
    """
    return _own()[0]
