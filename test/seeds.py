"""Cases of tests: some of them in each run, all of them in the long one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest


def seeds(count: int, every: int = 6) -> list[Any]:
    """Return the seeds below `count`: every so many run always, the others by `make test-all`."""
    rest = pytest.mark.slow
    return [k if k % every == 0 else pytest.param(k, marks=rest) for k in range(count)]


def but_slow(cases: Sequence[Any], *slow: Any) -> list[Any]:
    """Return named cases, of which these run by `make test-all` alone: larger ones of a kind."""
    rest = pytest.mark.slow
    names = [getattr(case, "name", case) for case in cases]
    assert set(slow) <= set(names), slow
    return [
        pytest.param(case, marks=rest) if name in slow else case
        for case, name in zip(cases, names, strict=True)
    ]
