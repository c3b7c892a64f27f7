"""Files that have their name only once they are whole, and remains of killed writers."""

from __future__ import annotations

import fcntl
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import IO
from uuid import uuid4

_END = ".partial"


class PartialFile:
    """A file that is written under a temporary name and then replaces its target.

    The temporary name is that of the target and ``.partial``. The writer holds a lock on the file,
    which ends with its process: the next writer overwrites the remains of a killed writer. A
    second writer of the same target, while the first one works, uses another unique name.

    Parameters
    ----------
    path : target.

    Attributes
    ----------
    file : open file to write to.

    Raises
    ------
    OSError
        If the file cannot be made.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._written = path.with_name(path.name + _END)
        file = _locked(self._written)
        if file is None:
            self._written = path.with_name(f"{path.name}.{uuid4().hex[:12]}{_END}")
            file = self._written.open("xb")
        self.file: IO[bytes] = file

    def finish(self) -> None:
        """Give the file its name, once its content is on the disk.

        Raises
        ------
        OSError
            If the content cannot be written; then no file is left.
        """
        try:
            self.file.flush()
            os.fsync(self.file.fileno())
            os.replace(self._written, self._path)
            self.file.close()
        except OSError:
            self.discard()
            raise

    def discard(self) -> None:
        """Leave no file behind."""
        # On a full disk, the buffered rest cannot be written.
        with suppress(OSError):
            self.file.close()
        self._written.unlink(missing_ok=True)


def _locked(path: Path) -> IO[bytes] | None:
    """Return an empty file that this process has locked; None if that is impossible."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    while True:
        try:
            number = os.open(path, flags, 0o666)
        except OSError:
            # A link, or a file of another user; an unusable folder is reported later.
            return None
        state = os.fstat(number)
        if not stat.S_ISREG(state.st_mode) or state.st_nlink > 1:
            os.close(number)
            return None
        file = os.fdopen(number, "r+b")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if path.exists() and os.path.samestat(path.stat(), state):
                file.truncate()
                return file
        except OSError:
            # Another process writes to the file, or the file system has no locks.
            file.close()
            return None
        # Its writer has just renamed the file to the target.
        file.close()
