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


@pytest.fixture(scope="module", autouse=True)
def one_cache_of_kernels(
    request: pytest.FixtureRequest, pytestconfig: pytest.Config
) -> Iterator[None]:
    """Build a kernel once for all processes of all runs, in pytest's cache, in no user's.

    Two thirds of the processor time of a run was the same machine code again. The cache is keyed
    by the sources, so code that has changed is built; `make clean` and `--cache-clear` empty it.
    Each folder of tests has a cache, as a cache that held the kernels of all tests, about 1000,
    would come to the number of files from which on it removes the oldest.
    """
    kernels = pytestconfig.cache.mkdir("kernels")  # type: ignore[union-attr]
    folder = kernels / request.path.relative_to(TESTS).parts[0]
    folder.mkdir(mode=0o700, exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        yield
