"""The Python sources that shape a kernel: a cached one is not used again after they change."""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import delassus_ros
from delassus_ros.algorithms.base import Algorithm

_OURS = Path(delassus_ros.__file__).parent


@lru_cache(maxsize=1)
def package_source() -> bytes:
    """Return a hash of everything in this package that shapes a kernel."""
    files = [_OURS / "contacts.py", _OURS / "problem.py"]
    for part in ("model", "algorithms", "compiler", "closure"):
        files += sorted((_OURS / part).glob("*.py"))
    return _hash(_OURS, files)


def algorithm_source(algorithm: Algorithm) -> bytes:
    """Return a hash of the file of an algorithm and, if it is not ours, of what is around it.

    That is its package from the top, or, for a module or script in no package, the modules
    beside it. The file is read at each call, the others once in a process.

    Raises
    ------
    OSError, TypeError
        If the source cannot be read, or there is none.
    """
    cls = type(algorithm)
    file = Path(inspect.getfile(cls))
    digest = hashlib.sha256(file.read_bytes())
    package = _package_of(cls)
    if package != _OURS:
        digest.update(_beside(file.parent) if package is None else _below(package))
    return digest.digest()


def _package_of(cls: type) -> Path | None:
    """Return the folder of the package that holds a class, from the top; None: of no package."""
    spec = sys.modules[cls.__module__].__spec__
    names = spec.parent.split(".") if spec is not None and spec.parent else []
    for depth in range(1, len(names) + 1):
        file = getattr(sys.modules.get(".".join(names[:depth])), "__file__", None)
        if file is not None:  # else a name that several distributions share
            return Path(file).parent
    return None


@lru_cache
def _below(folder: Path) -> bytes:
    return _hash(folder, sorted(folder.rglob("*.py")))


@lru_cache
def _beside(folder: Path) -> bytes:
    return _hash(folder, sorted(folder.glob("*.py")))


def _hash(folder: Path, files: Iterable[Path]) -> bytes:
    digest = hashlib.sha256()
    for file in files:
        if file.is_file():  # an editor's lock is a link to nowhere
            digest.update(hashlib.sha256(bytes(file.relative_to(folder))).digest())
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.digest()
