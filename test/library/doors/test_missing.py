"""A door whose package is absent names the package and the command that installs it."""

from __future__ import annotations

import importlib
import importlib.util
import sys

import pytest

from delassus.doors import MissingPackageError


@pytest.mark.parametrize("name", ["casadi", "jax", "torch"])
def test_an_absent_package_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    absent = f"{name}_that_nobody_has"
    with pytest.raises(MissingPackageError, match=f"needs the package {absent}, which is not"):
        importlib.import_module("delassus.doors").needed(absent)
    if importlib.util.find_spec(name) is None:
        monkeypatch.delitem(sys.modules, f"delassus.doors.{name}", raising=False)
        with pytest.raises(MissingPackageError, match=rf"pip install {name}$"):
            importlib.import_module(f"delassus.doors.{name}")
