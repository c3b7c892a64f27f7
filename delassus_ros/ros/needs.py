"""Checks for the packages of ROS that programs with a node need."""

from __future__ import annotations

import sys

from delassus.errors import DelassusError
from delassus.programs.needs import absent, missing

ROS = ("rclpy", "delassus_msgs", "delassus_msgs_py")
"""Packages of ROS that all programs with a node need."""
_TARGETS = {"delassus_demo": "demo", "soak": "soak"}
"""Targets of the Makefile that set up a program and run it."""


def missing_ros(program: str, *packages: str) -> str | None:
    """Return a line about packages that are not installed, including parts of ROS, or None."""
    lacking = absent(packages)
    if not lacking:
        return None
    return (
        f"{program} needs {', '.join(lacking)}, not installed for {sys.executable}; source the "
        "setup.bash of ROS and of the workspace where colcon has built delassus_msgs; in the "
        f"source tree, 'make {_TARGETS.get(program, 'setup')}' sets up all of it"
    )


def require_ros(program: str, *packages: str, ros: tuple[str, ...] = ROS) -> None:
    """Refuse to go on without packages, or without packages of ROS.

    Raises
    ------
    DelassusError
        If a package is not installed; names the remedy.
    """
    lacking = missing(program, *packages) or missing_ros(program, *ros)
    if lacking is not None:
        raise DelassusError(lacking)
