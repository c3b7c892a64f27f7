"""Kernels as functions of CasADi, JAX and PyTorch; each module needs its package."""

from __future__ import annotations

import importlib
from typing import Any

from delassus.errors import DelassusError


class MissingPackageError(DelassusError, ImportError):
    """Error for a package that a door needs and that is not installed."""


def needed(name: str) -> Any:
    """Return a package.

    Raises
    ------
    MissingPackageError
        If the package is not installed; names the command that installs the package.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise MissingPackageError(
            f"delassus.doors.{name} needs the package {name}, which is not installed: "
            f"pip install {name}"
        ) from None
