"""``delassus config``: parameters of the node for a robot, proposed from its description."""

from __future__ import annotations

import argparse

import yaml

from delassus_ros.cli.options import described_robot, given_joints
from delassus_ros.cli.proposals import RULE, base_of, proposals
from delassus_ros.cli.report import Report


def propose(options: argparse.Namespace) -> Report:
    """Return a parameter file: contacts at the ends of limbs, of a kind by their shapes."""
    robot, document = described_robot(options)
    found = proposals(robot, document)
    chosen = [each for each in found if each.chosen]
    left = [each.frame for each in found if not each.chosen]
    base = f"base: {robot.base}"
    if options.base is None:
        held = base_of(document)
        other = "floating" if held.base == "fixed" else "fixed"
        base += f"  # {'' if held.surely else f'or {other}; '}{held.why}"
    lines = [
        f"# Parameters of delassus_node for {robot.name}, proposed by 'delassus config'.",
        *(f"# {line}" for line in RULE),
        "/**:",
        "  ros__parameters:",
        "    autostart: true",
        f"    {base}",
        "    axes: contact    # or world; with a floating base that needs its orientation",
        "    algorithm: auto  # the fewest operations for this robot",
    ]
    if options.loops:
        lines.append(f"    loops: {options.loops}")
    if options.lock:
        locked = given_joints("--lock", options.lock)
        names, values = ", ".join(map(_quoted, locked)), ", ".join(map(_number, locked.values()))
        lines.append(f"    lock: {{names: [{names}], values: [{values}]}}")
    names = ", ".join(_quoted(each.frame) for each in chosen)
    hint = "" if chosen else "   # none found; delassus inspect shows all frames"
    lines += ["    contacts:", f"      names: [{names}]{hint}"]
    for each in chosen:
        name = _quoted(each.frame)
        place = f", xyz: [{', '.join(map(str, each.xyz))}]" if any(each.xyz) else ""
        lines.append(f"      {name}: {{frame: {name}, kind: {each.kind}{place}}}   # {each.why}")
    if left:
        lines.append(f"    # Other ends: {', '.join(left)}")
    text = "\n".join(lines)
    return Report(text, yaml.safe_load(text))


def _number(value: float) -> str:
    """Return a number as YAML reads it: with a dot, or an exponent makes it text."""
    text = str(value)
    return text if "." in text else text.replace("e", ".0e")


def _quoted(name: str) -> str:
    """Return a name as YAML has it, quoted where it would be read as something else."""
    plain = name.replace("_", "").replace("-", "").isalnum() and not name[0].isdigit()
    reserved = name.lower() in ("y", "n", "yes", "no", "on", "off", "true", "false", "null")
    return name if plain and not reserved else '"' + name.replace('"', '\\"') + '"'
