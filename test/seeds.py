"""Random cases: some of them in each run, all of them in the long one."""

from __future__ import annotations

from typing import Any

import pytest


def seeds(count: int, every: int = 4) -> list[Any]:
    """Return the seeds below `count`: every so many run always, the others by `make test-all`."""
    rest = pytest.mark.slow
    return [k if k % every == 0 else pytest.param(k, marks=rest) for k in range(count)]
