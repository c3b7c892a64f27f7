"""How Python is started as a child of this process, and ends with it."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, TypedDict

_PARENT_POLL_MS = 1000
"""Time between two looks at who the parent is [ms]."""


class Surroundings(TypedDict):
    """Arguments of :class:`subprocess.Popen`."""

    cwd: str
    env: dict[str, str]


class Child(subprocess.Popen[bytes]):
    """A module of this package that runs as a child, and does not outlive this process.

    However this process ends, by SIGKILL too, and whichever of its threads has started the child:
    the system closes the pipe whose other end the child watches, with :func:`end_with_parent`.

    Parameters
    ----------
    module : its full name.
    stdin, stdout, stderr : as of :class:`subprocess.Popen`.

    Raises
    ------
    OSError
        If it cannot be started.
    """

    def __init__(
        self, module: str, stdin: int | IO[bytes], stdout: IO[bytes], stderr: IO[bytes]
    ) -> None:
        # Neither end is inherited by other programs, which would keep the pipe open.
        watched, held = os.pipe()
        self._held = os.fdopen(held, "wb", buffering=0)
        try:
            super().__init__(
                [*command(module), str(watched)],
                stdin=stdin, stdout=stdout, stderr=stderr, pass_fds=(watched,), **surroundings(),
            )  # fmt: skip
        except BaseException:
            self._held.close()
            raise
        finally:
            os.close(watched)

    def close(self) -> None:
        """Kill it, if it still runs, and wait for it."""
        self.kill()
        self.wait()
        self._held.close()


def end_with_parent() -> None:
    """Have this process, which is a :class:`Child`, end as soon as the one that started it has."""
    pipe, parent = int(sys.argv[1]), os.getppid()
    os.set_inheritable(pipe, False)
    other_end = select.poll()
    other_end.register(pipe, select.POLLIN)

    def watch() -> None:
        # Nothing is written: the poll reports the end of the pipe once no process holds its other
        # end. Processes that the parent has forked may hold it for longer; this process then has
        # another parent.
        while not other_end.poll(_PARENT_POLL_MS) and os.getppid() == parent:
            pass
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, name="watch the parent", daemon=True).start()


def command(module: str, *arguments: str) -> list[str]:
    """Return the command that runs a module of this package."""
    return [sys.executable, "-m", module, *arguments]


def surroundings() -> Surroundings:
    """Return folder and environment in which the child imports what this process does."""
    # ``-m`` imports from the current folder first, which any user may be able to write.
    return {"cwd": "/", "env": {**os.environ, "PYTHONPATH": _import_path()}}


def _import_path() -> str:
    """Return PYTHONPATH for the child: this process's, whatever folder the child starts in."""
    inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    # An empty entry means the current folder.
    paths = [os.path.abspath(path) for path in inherited if path]
    root = Path(__file__).absolute().parents[3]
    # Where packages are installed the child looks anyway, and after the standard library.
    if root.name not in ("site-packages", "dist-packages"):
        paths.append(str(root))
    return os.pathsep.join(paths)
