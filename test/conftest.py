"""Fixtures and options of all tests."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Of two runs of `make test` both try the same examples, however slow the machine is; chance has
# its turn in `make test-all`.
settings.register_profile(
    "chance", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=False
)
settings.register_profile("repeatable", settings.get_profile("chance"), derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))

TESTS = Path(__file__).resolve().parent
# For the benchmarks, which are not installed; behind the package, which is.
sys.path.append(str(TESTS.parent))

_OWN_CACHE = {"algorithms", "closure", "compiler", "rbda", "solver"}
"""Folders of tests whose kernels are mostly of robots that no other folder has."""
_FIRST = ("sim", "node", "estimator", "cli", "tools", "docs", "compiler")
"""Folders whose tests start programs and wait, in this order before all other folders: a run ends
with short files, so that no worker is left alone with a long one, and waiting meets computing."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort tests by their folders; see `_FIRST`. The Makefile keeps xdist from sorting again."""
    place = {name: k for k, name in enumerate(_FIRST)}

    def of(item: pytest.Item) -> int:
        parts = item.path.relative_to(TESTS.parent).parts
        return place.get(parts[1] if parts[0] == TESTS.name else "", len(place))

    items.sort(key=of)


@pytest.fixture(scope="module", autouse=True)
def one_cache_of_kernels(
    request: pytest.FixtureRequest, pytestconfig: pytest.Config
) -> Iterator[None]:
    """Build a kernel once for all processes of all runs, in pytest's cache, in no user's.

    Two thirds of the processor time of a run was the same machine code again. The cache is keyed
    by the sources, so code that has changed is built; `make clean` and `--cache-clear` empty it.
    Folders of tests that build many kernels have a cache of their own, as a cache that held the
    kernels of all tests, about 700, would come near the number of files from which on it removes
    the oldest; the other folders share what is mostly the quadruped of the demo.
    """
    kernels = pytestconfig.cache.mkdir("kernels")  # type: ignore[union-attr]
    first = request.path.relative_to(TESTS).parts[0]
    folder = kernels / (first if first in _OWN_CACHE else "shared")
    folder.mkdir(mode=0o700, exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        yield
