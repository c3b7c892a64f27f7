"""Checks for packages that programs need beyond the dependencies that rosdep installs."""

from __future__ import annotations

import importlib.util
import sys

from delassus_ros.errors import DelassusError

ROS = ("rclpy", "delassus_msgs", "delassus_msgs_py")
"""Packages of ROS that all programs with a node need."""
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


def require(program: str, *packages: str, ros: tuple[str, ...] = ()) -> None:
    """Refuse to go on without packages, and packages of ROS.

    Raises
    ------
    DelassusError
        If a package is not installed; names the remedy.
    """
    lacking = missing(program, *packages) or missing_ros(program, *ros)
    if lacking is not None:
        raise DelassusError(lacking)


def _absent(packages: tuple[str, ...]) -> list[str]:
    return [name for name in packages if importlib.util.find_spec(name) is None]
