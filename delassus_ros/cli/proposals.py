"""Where a robot may touch: the ends of its limbs, each with the kind of contact by its shape."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from delassus_ros.model.robot import Robot
from delassus_ros.rbda.rotors import redistribute

_FEW = 8
"""Ends up to which all are proposed; of more, hands with fingers say, those with these names."""
_NAMED = ("foot", "sole", "toe", "ankle", "hand", "palm", "wrist", "tool", "gripper", "tcp")
_FLAT = ("sole", "hand", "palm", "wrist", "tool", "gripper", "tcp")
"""Names of what touches with a surface, where no shape says it."""


@dataclass(frozen=True)
class Proposal:
    """A frame that may touch.

    Attributes
    ----------
    frame : its name.
    kind : ``"point"`` or ``"surface"``.
    why : what tells the kind, in a few words.
    chosen : whether it is among those that a robot with many ends needs.
    """

    frame: str
    kind: str
    why: str
    chosen: bool


def proposals(robot: Robot, document: Element) -> list[Proposal]:
    """Return the ends of a robot's limbs.

    Parameters
    ----------
    document : its description, whose collision shapes tell the kinds.
    """
    shapes = _shapes(document)
    ends = _ends(robot)
    few = set(ends if len(ends) <= _FEW else filter(_is_named, ends)) or set(ends[:_FEW])
    return [Proposal(end, *_kind(robot, end, shapes), end in few) for end in ends]


def _ends(robot: Robot) -> list[str]:
    """Return the last frame on each body that carries no further joint and is no rotor."""
    parents = {joint.parent for joint in robot.joints}
    last = {frame.body: frame.name for frame in robot.frames.values()}
    kept = redistribute(robot).kept if robot.is_closed else range(len(robot.bodies))
    return [last[i] for i in kept if i not in parents and i in last]


def _is_named(frame: str) -> bool:
    return any(word in frame.lower() for word in _NAMED)


def _shapes(document: Element) -> dict[str, Set[str]]:
    """Return per link the kinds of its collision shapes."""
    found: dict[str, Set[str]] = {}
    for link in document.iter("link"):
        geometries = link.iterfind("collision/geometry")
        kinds = {shape.tag for geometry in geometries for shape in geometry}
        found[link.get("name", "")] = kinds
    return found


def _kind(robot: Robot, frame: str, shapes: Mapping[str, Set[str]]) -> tuple[str, str]:
    """Return the kind of contact at a frame, and why."""
    own = shapes.get(frame, set())
    if not own:
        # What is fixed to the same body counts where the link itself has no shape.
        body = robot.frames[frame].body
        same = [name for name, other in robot.frames.items() if other.body == body]
        own = set().union(*(shapes.get(name, set()) for name in same))
    if own == {"sphere"}:
        return "point", "a sphere"
    if own and "sphere" not in own and own & {"box", "cylinder"}:
        return "surface", f"a {sorted(own)[0]}"
    flat = any(word in frame.lower() for word in _FLAT)
    return ("surface", "by its name") if flat else ("point", "no shape says it")
