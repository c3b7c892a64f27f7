"""Reading of files whose names others may choose."""

from __future__ import annotations

import errno
import os
import re
import stat
from pathlib import Path

_INHERITED = re.compile(r"/dev/stdin|(/dev|/proc/self)/fd/[0-9]+", re.ASCII)


def read_regular_file(path: str | Path, most: int, inherited: bool = False) -> bytes:
    """Return the content of a file, or one byte more than `most` of a larger one.

    Parameters
    ----------
    inherited : whether a pipe that the process has open counts as well: ``/dev/stdin``, or
        ``/dev/fd/63``, as a shell makes it of ``<(xacro …)``. Who writes to it is waited for.

    Raises
    ------
    OSError
        If it cannot be read or is not a regular file: a device may have no end.
    ValueError
        If it is no path.
    """
    with open(path, "rb", opener=_open) as file:
        mode = os.fstat(file.fileno()).st_mode
        if inherited and stat.S_ISFIFO(mode) and _INHERITED.fullmatch(str(path)):
            os.set_blocking(file.fileno(), True)
        elif not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "Not a regular file", str(path))
        content: bytes = file.read(most + 1)
        return content


def _open(path: str, flags: int) -> int:
    # To open a named pipe would otherwise wait for somebody who writes to it.
    return os.open(path, flags | os.O_NONBLOCK)
