"""``delassus config``: parameters of the node for a robot, proposed from its description."""

from __future__ import annotations

import argparse
from xml.etree.ElementTree import Element

from delassus_ros.cli.commands import ends_of
from delassus_ros.cli.options import robot_of
from delassus_ros.model.reading.source import located
from delassus_ros.model.reading.xml import parse_xml
from delassus_ros.model.robot import Robot

_FEW = 8
"""Ends up to which all are proposed; of more, hands with fingers say, those with these names."""
_NAMED = ("foot", "sole", "toe", "ankle", "hand", "palm", "wrist", "tool", "gripper", "tcp")
_FLAT = ("sole", "hand", "palm", "wrist", "tool", "gripper", "tcp")
"""Names of what touches with a surface, where no shape says it."""


def propose(options: argparse.Namespace) -> str:
    """Return a parameter file: contacts at the ends of limbs, of a kind by their shapes."""
    robot = robot_of(options)
    shapes = _shapes(parse_xml(located(options.robot)))
    ends = ends_of(robot)
    chosen = ends if len(ends) <= _FEW else [end for end in ends if _is_named(end)]
    chosen = chosen or ends[:_FEW]
    left = [end for end in ends if end not in chosen]
    lines = [
        f"# Parameters of delassus_node for {robot.name}, proposed by 'delassus config'.",
        "# Contacts are the ends of limbs: spheres are points, other shapes surfaces.",
        "/**:",
        "  ros__parameters:",
        "    autostart: true",
        f"    base: {options.base}",
        "    axes: contact    # or world; with a floating base that needs its orientation",
        "    algorithm: auto  # the fewest operations for this robot",
    ]
    if options.loops:
        lines.append(f"    loops: {options.loops}")
    if options.lock:
        held = dict(part.partition("=")[::2] for part in options.lock.split(","))
        names, values = ", ".join(held), ", ".join(str(float(v)) for v in held.values())
        lines.append(f"    lock: {{names: [{names}], values: [{values}]}}")
    lines += ["    contacts:", f"      names: [{', '.join(map(_quoted, chosen))}]"]
    for end in chosen:
        kind, why = _kind(robot, end, shapes)
        lines.append(f"      {_quoted(end)}: {{frame: {_quoted(end)}, kind: {kind}}}   # {why}")
    if left:
        lines.append(f"    # Other ends: {', '.join(left)}")
    return "\n".join(lines)


def _is_named(frame: str) -> bool:
    return any(word in frame.lower() for word in _NAMED)


def _quoted(name: str) -> str:
    """Return a name as YAML has it, quoted where it would be read as something else."""
    plain = name.replace("_", "").replace("-", "").isalnum() and not name[0].isdigit()
    reserved = name.lower() in ("y", "n", "yes", "no", "on", "off", "true", "false", "null")
    return name if plain and not reserved else '"' + name.replace('"', '\\"') + '"'


def _shapes(document: Element) -> dict[str, set[str]]:
    """Return per link the kinds of its collision shapes."""
    found: dict[str, set[str]] = {}
    for link in document.iter("link"):
        kinds = found.setdefault(link.get("name", ""), set())
        for geometry in link.iterfind("collision/geometry"):
            kinds.update(shape.tag for shape in geometry)
    return found


def _kind(robot: Robot, frame: str, shapes: dict[str, set[str]]) -> tuple[str, str]:
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
