"""Results of a run by key, kept while the run lasts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from delassus_ros.terminal import replace_line


class Kept:
    """Results by key, kept in a file until the run has ended."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._results: dict[str, Any] = (
            json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        )

    def of(self, key: str, compute: Callable[[], Any]) -> Any:
        """Return the kept result, or what `compute` returns, which is then kept."""
        if key not in self._results:
            replace_line(f"counting {key} ...")
            self._results[key] = compute()
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.write_text(json.dumps(self._results), encoding="utf-8")
        return self._results[key]

    def end(self) -> None:
        """Remove the file."""
        self._path.unlink(missing_ok=True)
