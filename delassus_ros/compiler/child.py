"""How Python is started as a child of this process."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TypedDict

import delassus_ros


class Surroundings(TypedDict):
    """Arguments of :class:`subprocess.Popen`."""

    cwd: str
    env: dict[str, str]


def is_possible() -> bool:
    """Return whether this process knows a Python to start: one that embeds Python may not."""
    return Path(sys.executable or "").name.startswith("python")


def command(module: str, *arguments: str) -> list[str]:
    """Return the command that runs a module of this package."""
    return [sys.executable, "-m", module, *arguments]


def surroundings() -> Surroundings:
    """Return folder and environment in which the child imports what this process does."""
    # ``-m`` imports from the current folder first, which may be anybody's.
    return {"cwd": "/", "env": {**os.environ, "PYTHONPATH": _import_path()}}


def _import_path() -> str:
    """Return PYTHONPATH for the child: this process's, whatever folder the child starts in."""
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    # An empty entry means the current folder.
    paths = [os.path.abspath(path) for path in given if path]
    root = Path(delassus_ros.__file__).absolute().parents[1]
    # Where packages are installed the child looks anyway, and after the standard library.
    if root.name not in ("site-packages", "dist-packages"):
        paths.append(str(root))
    return os.pathsep.join(paths)
