"""Checks for packages that programs need beyond the dependencies that rosdep installs."""

from __future__ import annotations

import importlib.util
import sys

from delassus.errors import DelassusError


def missing(program: str, *packages: str) -> str | None:
    """Return a line about packages that are not installed, with the remedy, or None."""
    lacking = absent(packages)
    if not lacking:
        return None
    return (
        f"{program}: needs the Python package {' and '.join(lacking)}, not installed for "
        f"{sys.executable}; 'pip install {' '.join(lacking)}' with that Python installs it"
    )


def require(program: str, *packages: str) -> None:
    """Refuse to go on without packages.

    Raises
    ------
    DelassusError
        If a package is not installed; names the remedy.
    """
    lacking = missing(program, *packages)
    if lacking is not None:
        raise DelassusError(lacking)


def absent(packages: tuple[str, ...]) -> list[str]:
    """Return the packages that are not installed."""
    return [name for name in packages if importlib.util.find_spec(name) is None]
