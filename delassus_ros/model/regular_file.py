"""Reading of files whose names others may choose."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def read_regular_file(path: str | Path, most: int) -> bytes:
    """Return the content of a file, or one byte more than `most` of a larger one.

    Raises
    ------
    OSError
        If it cannot be read or is not a regular file: a device may have no end.
    ValueError
        If it is no path.
    """
    with open(path, "rb", opener=_open) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "Not a regular file", str(path))
        content: bytes = file.read(most + 1)
        return content


def _open(path: str, flags: int) -> int:
    # To open a named pipe would otherwise wait for somebody who writes to it.
    return os.open(path, flags | os.O_NONBLOCK)
