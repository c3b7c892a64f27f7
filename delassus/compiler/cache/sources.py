"""The Python sources that shape a kernel, as a part of its cache key.

A cached kernel is not used again after one of them has changed.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import sys
import time
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from delassus.algorithms.registry import Algorithm

_OURS = Path(__file__).absolute().parents[2]
_STARTED_NS = time.time_ns()


class Source(NamedTuple):
    """What some files hold.

    Attributes
    ----------
    digest : hash of their names and contents.
    changed : when one of them was put there or changed last [ns of the system's clock]; not the
        time of modification, which packages bring with them.
    """

    digest: bytes
    changed: int

    @property
    def is_what_runs(self) -> bool:
        """Whether no file was changed since this process began, which may have read it before.

        A time to come is of a clock that has been set back since, as on a board before it asks
        for the time: the file has been there.
        """
        return not _STARTED_NS <= self.changed <= time.time_ns()


@lru_cache(maxsize=1)
def package_source() -> Source:
    """Return everything in this package that shapes a kernel."""
    files = [_OURS / "contacts.py", _OURS / "problem.py"]
    for part in ("model", "scalars", "rbda", "algorithms", "compiler", "closure"):
        files += sorted((_OURS / part).rglob("*.py"))
    return _hash(_OURS, files)


def algorithm_source(algorithm: Algorithm) -> Source:
    """Return the file of an algorithm and, if it is not ours, what is around it.

    That is its package from the top, or, for a module or script in no package, the modules
    beside it. The algorithm's file is read at each call, the further files once in a process.

    Raises
    ------
    OSError, TypeError
        If the source cannot be read, there is none, or the values of a function's defaults or
        enclosing variables are no part of it.
    """
    definition = algorithm.definition
    bound = ("__closure__", "__defaults__", "__kwdefaults__")
    if any(getattr(definition, name, None) for name in bound):
        raise TypeError(f"{definition} has values that its source lacks")
    file = Path(inspect.getfile(definition))
    digest, changed = hashlib.sha256(file.read_bytes()), file.stat().st_ctime_ns
    package = _package_of(definition)
    if package != _OURS:
        around = _beside(file.parent) if package is None else _below(package)
        digest.update(around.digest)
        changed = max(changed, around.changed)
    return Source(digest.digest(), changed)


def _package_of(definition: Any) -> Path | None:
    """Return the folder of a definition's package, from the top; None: of no package."""
    spec = sys.modules[definition.__module__].__spec__
    names = spec.parent.split(".") if spec is not None and spec.parent else []
    for depth in range(1, len(names) + 1):
        file = getattr(sys.modules.get(".".join(names[:depth])), "__file__", None)
        if file is not None:  # else a name that several distributions share
            return Path(file).parent
    return None


@lru_cache
def _below(folder: Path) -> Source:
    return _hash(folder, sorted(folder.rglob("*.py")))


@lru_cache
def _beside(folder: Path) -> Source:
    return _hash(folder, sorted(folder.glob("*.py")))


def _hash(folder: Path, files: Iterable[Path]) -> Source:
    # Half of what it takes to a cached kernel: without pathlib, and with the faster hash.
    digest, changed, prefix = hashlib.blake2b(), 0, len(str(folder))
    for file in map(str, files):
        if os.path.isfile(file):  # an editor's lock is a link to nowhere
            with open(file, "rb", buffering=0) as opened:
                digest.update(hashlib.blake2b(os.fsencode(file[prefix:])).digest())
                digest.update(hashlib.blake2b(opened.read()).digest())
                changed = max(changed, os.fstat(opened.fileno()).st_ctime_ns)
    return Source(digest.digest(), changed)
