"""Checks for packages that programs need beyond the dependencies that rosdep installs."""

from __future__ import annotations

import importlib.util
import sys

_TARGETS = {"delassus_demo": "demo", "soak": "soak"}
"""Targets of the Makefile that set up a program and run it."""


def missing_ros(program: str, *packages: str) -> str | None:
    """Return a line about packages that are not installed, including parts of ROS, or None."""
    absent = _absent(packages)
    if not absent:
        return None
    return (
        f"{program} needs {', '.join(absent)}, not installed for {sys.executable}; source the "
        "setup.bash of ROS and of the workspace where colcon has built delassus_msgs; in the "
        f"source tree, 'make {_TARGETS.get(program, 'setup')}' sets up all of it"
    )


def missing(program: str, *packages: str) -> str | None:
    """Return a line about packages that are not installed, with the remedy, or None."""
    absent = _absent(packages)
    if not absent:
        return None
    return (
        f"{program}: needs the Python package {' and '.join(absent)}, not installed for "
        f"{sys.executable}; 'pip install {' '.join(absent)}' with that Python installs it"
    )


def _absent(packages: tuple[str, ...]) -> list[str]:
    return [name for name in packages if importlib.util.find_spec(name) is None]
