"""Results of a run by key, kept while the run lasts, and the bar of its progress."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import ours
from delassus import Problem
from delassus.programs.terminal import replace_line

_ROOT = Path(__file__).resolve().parents[2]
_BAR = 20
"""Characters of the progress bar."""
_FEW = 8
"""Calls below which processes would take longer to start than they save."""


def sources() -> str:
    """Return a digest of the sources of the library and of the benchmarks."""
    digest = hashlib.sha256()
    for folder in ("delassus", "benchmarks"):
        for file in sorted((_ROOT / folder).rglob("*.py")):
            digest.update(file.read_bytes())
    return digest.hexdigest()


class Kept:
    """Results by key, kept in a file until the run has ended.

    Results of other sources are dropped, so that all numbers of a page are of one state of them.

    Attributes
    ----------
    folder : of the pages that the run writes.
    done, parts : number of finished pages, and of all pages.
    """

    def __init__(self, path: Path, folder: Path = Path()) -> None:
        self._path, self.folder = path, folder
        self.done, self.parts = 0, 1
        self._results: dict[str, Any] = {"": sources()}
        if path.is_file():
            found = json.loads(path.read_text(encoding="utf-8"))
            if found.get("") == self._results[""]:
                self._results = found

    def of(self, key: str, compute: Callable[[], Any]) -> Any:
        """Return the kept result, or what `compute` returns, which is then kept."""
        if key not in self._results:
            self._show(key)
            self._keep(key, compute())
        return self._results[key]

    def all_of(
        self, calls: Mapping[str, Sequence[Any]], compute: Callable[..., Any]
    ) -> dict[str, Any]:
        """Return the results of `compute` by key.

        Results that are not kept are computed by one process per processor.

        Parameters
        ----------
        calls : the arguments of `compute` by key.
        """
        missing = [key for key in calls if key not in self._results]
        if len(missing) < _FEW:
            for key in missing:
                self.of(key, partial(compute, *calls[key]))
        else:
            with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
                keys = {pool.submit(compute, *calls[key]): key for key in missing}
                try:
                    for done in as_completed(keys):
                        self._keep(keys[done], done.result())
                        known = sum(each in self._results for each in calls)
                        self._show(keys[done], known / len(calls))
                except BaseException:
                    pool.shutdown(cancel_futures=True)
                    raise
        return {key: self._results[key] for key in calls}

    def _keep(self, key: str, result: Any) -> None:
        self._results[key] = result
        self._path.parent.mkdir(parents=True, exist_ok=True)
        part = self._path.with_suffix(".part")
        part.write_text(json.dumps(self._results), encoding="utf-8")
        part.replace(self._path)  # whenever a run ends, the file is whole

    def _show(self, words: str, inside: float = 0.0) -> None:
        """Show the bar on a terminal, with the result under way and its finished share."""
        if sys.stderr.isatty():
            share = (self.done + inside) / self.parts
            replace_line(f"{'█' * int(_BAR * share):░<{_BAR}} {100.0 * share:3.0f} %  {words}")

    def end(self) -> None:
        """Remove the file, and the bar."""
        self._path.unlink(missing_ok=True)
        if sys.stderr.isatty():
            replace_line("")


def counted(
    kept: Kept, key: str, make: Callable[[], Problem], algorithm: str, generic: bool = True
) -> int:
    """Return the kept operation count of an algorithm of G, without sines and cosines."""
    return int(kept.of(key, lambda: ours.operations(make(), algorithm, generic).total))
