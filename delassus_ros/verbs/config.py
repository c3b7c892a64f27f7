"""``delassus config``: parameters of the node for a robot, proposed from its description."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Collection, Mapping
from typing import Any

import yaml

from delassus.cli.options import add_robot, described
from delassus.cli.parsing import Verb
from delassus.cli.report import Report
from delassus.robots.base import base_of
from delassus.robots.description import Description
from delassus.robots.proposals import FIXED_WHEEL, RULE, Proposal

_NAMES = "names"
"""Key of the list of contacts; the further keys are names of contacts."""
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*", re.ASCII)
_RESERVED = frozenset("y n yes no on off true false null nan inf infinity".split())
"""Words that readers of YAML, including ROS's, do not read as text."""


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]
    """Writes text such that every reader of YAML reads it as text."""


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    plain = _PLAIN.fullmatch(text) and text.lower() not in _RESERVED
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, None if plain else '"')


class _InLine(dict[str, Any]):
    """A mapping written in one line."""


_Dumper.add_representer(str, _text)
_Dumper.add_representer(_InLine, lambda dumper, value: dumper.represent_mapping(
    "tag:yaml.org,2002:map", value, flow_style=True))  # fmt: skip
_Dumper.add_representer(list, lambda dumper, value: dumper.represent_sequence(
    "tag:yaml.org,2002:seq", value, flow_style=True))  # fmt: skip


def propose(options: argparse.Namespace) -> Report:
    """Return a parameter file: contacts at the ends of limbs, with kinds by their shapes."""
    return proposed(options, described(options))


CONFIG = Verb(
    "config",
    "propose a parameter file of the node for a robot",
    "my_robot.urdf > my_robot.yaml",
    propose,
    add_robot,
)


def proposed(options: argparse.Namespace, description: Description) -> Report:
    """Return the parameter file of a described robot."""
    robot, found = description.robot, description.proposals
    chosen = [proposal for proposal in found if proposal.chosen]
    left = [proposal for proposal in found if not proposal.chosen]
    wheels = [proposal.frame for proposal in left if proposal.why == FIXED_WHEEL]
    others = [proposal.frame for proposal in left if proposal.why != FIXED_WHEEL]
    base_comment = ""
    if options.base is None and description.model is None:
        held = base_of(description.document)
        other = "floating" if held.base == "fixed" else "fixed"
        base_comment = f"{'' if held.surely else f'or {other}; '}{held.why}"
    names = _contact_names(chosen)
    contacts: dict[str, Any] = {_NAMES: list(names)}
    contacts |= {name: _placed(proposal) for name, proposal in names.items()}
    values: dict[str, Any] = {
        "autostart": True, "base": robot.base, "axes": "contact", "algorithm": "auto",
    }  # fmt: skip
    if options.loops:
        values["loops"] = str(options.loops)
    if options.loops_as:
        values["loops_as"] = options.loops_as
    if options.no_passive:
        values["passive"] = False
    locked = description.held
    if locked:
        values["lock"] = {"names": list(locked), "values": list(locked.values())}
    comments = {
        "lock": description.held_words,
        "base": base_comment,
        "axes": "or world, which needs the orientation of a floating base",
        "algorithm": "chosen for few operations; `delassus compare` counts all algorithms",
    }
    lines = [
        f"# Parameters of delassus_node for {_said(robot.name)}, proposed by 'delassus config'.",
        *(f"# {line}" for line in RULE),
        "/**:",
        "  ros__parameters:",
        *(line for key, value in values.items()
          for line in _lines({key: value}, 4, comments.get(key, ""))),
        "    contacts:",
        *_lines({_NAMES: contacts[_NAMES]}, 6,
                "" if chosen else "none found; delassus inspect shows all frames"),
        *(line for name, proposal in names.items()
          for line in _lines({name: contacts[name]}, 6, proposal.why)),
    ]  # fmt: skip
    if any(proposal.moving != "nothing" for proposal in chosen):
        lines.append("    # The topic contact_placements has to tell the lowest points of wheels.")
    for what, frames in (("Wheels of a base that is fixed", wheels), ("Other ends", others)):
        if frames:
            lines.append(f"    # {what}: {', '.join(map(_said, frames))}")
    if description.limbs.fingers:
        lines.append(f"    # {description.finger_words}, and the joint states need not have them.")
    data = {"/**": {"ros__parameters": {**values, "contacts": contacts}}}
    return Report("\n".join(lines), data)


def _said(name: str) -> str:
    """Return a name for a comment."""
    return name if _PLAIN.fullmatch(name) else repr(name)


def _contact_names(chosen: Collection[Proposal]) -> dict[str, Proposal]:
    """Return the contacts by the name of their frame, changed where it cannot be a key.

    Dots separate the parts of parameters' names, and after a name with a leading dot the parser of
    ROS (rcl_yaml_param_parser 9.2) misreads further names.
    """
    found: dict[str, Proposal] = {}
    for proposal in chosen:
        name = proposal.frame.replace(".", "_")
        while name == _NAMES or name in found:
            name += "_"
        found[name] = proposal
    return found


def _placed(contact: Proposal) -> dict[str, Any]:
    """Return the parameters of a contact."""
    return _InLine(frame=contact.frame, **contact.parameters())


def _lines(entry: Mapping[str, Any], indent: int, comment: str) -> list[str]:
    """Return an entry of a mapping as YAML, with a comment behind its first line."""
    text = yaml.dump(
        dict(entry), Dumper=_Dumper, default_flow_style=False, sort_keys=False, width=math.inf,
        allow_unicode=True,
    )  # fmt: skip
    lines = [" " * indent + line for line in text.rstrip("\n").split("\n")]
    if comment:
        lines[0] += f"  # {comment}"
    return lines
