"""Message types of vendors, generated once for all tests of the folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import vendor_messages


@pytest.fixture(scope="session")
def makers_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("makers")
    vendor_messages.generate(folder)
    return folder


@pytest.fixture(scope="module")
def makers(makers_folder: Path) -> Iterator[None]:
    """Make the message packages importable."""
    with vendor_messages.installed(makers_folder):
        yield
