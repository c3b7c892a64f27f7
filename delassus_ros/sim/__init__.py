"""The demo robot, its physics, and the ROS nodes that show it; needs the extra ``sim``."""

from __future__ import annotations

from importlib.resources import files

__all__ = ["quadruped_urdf"]


def quadruped_urdf() -> str:
    """Return the URDF text of the demo robot."""
    return files(__name__).joinpath("quadruped.urdf").read_text(encoding="utf-8")
