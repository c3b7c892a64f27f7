"""The robots of this package, as URDF: generated ones, and a quadruped in a file."""

from __future__ import annotations

from importlib.resources import files
from xml.etree import ElementTree

from delassus.errors import RobotError, unknown

__all__ = ["ROBOTS", "demo_urdf"]

ROBOTS = ("quadruped", "geared")
"""The demo robots: a quadruped, and a quadruped with geared joints and a four-bar on its trunk."""


def demo_urdf(robot: str = "quadruped") -> str:
    """Return the URDF text of a demo robot.

    Raises
    ------
    RobotError
        If no demo robot has this name.
    """
    if robot not in ROBOTS:
        raise RobotError(unknown("demo robot", robot, ROBOTS))
    text = _read("quadruped.urdf")
    if robot == "quadruped":
        return text
    # The files of this package are trusted, so the plain parser suffices.
    added = ElementTree.fromstring(_read("geared_additions.xml"))
    tree = ElementTree.fromstring(text)
    tree.set("name", added.get("name", ""))
    tree.extend(added)
    return ElementTree.tostring(tree, encoding="unicode")


def _read(name: str) -> str:
    return files(__name__).joinpath(name).read_text(encoding="utf-8")
