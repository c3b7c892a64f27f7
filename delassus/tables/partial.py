"""Files that have their name only once they are whole."""

from __future__ import annotations

import fcntl
import os
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

    Attributes
    ----------
    file : open file to write to.
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
    """Return an empty file that this process has locked; None if another process writes it."""
    try:
        file = path.open("ab")
    except OSError:
        # A file of another user; an unusable folder is reported with the unique name.
        return None
    # Without a lock, another process writes the file, or the file system has no locks.
    with suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # A writer may just have given the file its name, which is no longer this one.
        if os.path.samestat(os.fstat(file.fileno()), path.stat()):
            file.truncate(0)
            return file
    file.close()
    return None
