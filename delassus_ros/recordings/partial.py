"""Files that have their name only once they are whole, and what killed writers leave of them."""

from __future__ import annotations

import fcntl
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import IO
from uuid import uuid4

_END = ".partial"


class PartialFile:
    """A file that is written under a name of its own and then takes the place of another.

    The writer holds a lock on it, which ends with its process. Files of the same target whose
    writer was killed are removed; those of other writers that still work are left alone.

    Parameters
    ----------
    path : target. Until :meth:`finish` the file is called ``name.0123456789ab.partial``.

    Attributes
    ----------
    file : to write to.

    Raises
    ------
    OSError
        If the file cannot be made.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        _remove_abandoned(path)
        while True:
            self._written = path.with_name(f"{path.name}.{uuid4().hex[:12]}{_END}")
            self.file: IO[bytes] = self._written.open("xb")
            # Some file systems have no locks; nothing is removed there.
            with suppress(OSError):
                fcntl.flock(self.file, fcntl.LOCK_EX)
            if os.fstat(self.file.fileno()).st_nlink:
                return
            # Another process took it for abandoned before it was locked.
            self.file.close()

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
        # On a full disk, what is still to be written cannot be.
        with suppress(OSError):
            self.file.close()
        self._written.unlink(missing_ok=True)


def _remove_abandoned(path: Path) -> None:
    """Remove the files of a target whose writers have ended without removing them."""
    pattern = re.compile(rf"{re.escape(path.name)}\.[0-9a-f]{{12}}{re.escape(_END)}")
    for file in path.parent.iterdir():
        if pattern.fullmatch(file.name):
            # Locked: another process writes to it. Absent: another process has removed it.
            with suppress(OSError), file.open("rb") as opened:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
                file.unlink()
