"""What every test has around it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def one_cache_of_kernels(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Build a kernel once for all tests of this process and its children, in no user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield
