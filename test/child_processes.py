"""Which child processes a process has, and which have ended."""

from __future__ import annotations

import contextlib
from pathlib import Path


def children_of(pid: int | str) -> list[int]:
    """Return the ids of the child processes of a process, or of ``"self"`` (Linux)."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        # A thread that has ended meanwhile has none.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found += map(int, (task / "children").read_text().split())
    return found


def ended(pid: int) -> bool:
    """Whether a process has ended; it may be a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True
