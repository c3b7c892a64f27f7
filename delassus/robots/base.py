"""The base of a robot from its description: floating where it stands, fixed where it is bolted."""

from __future__ import annotations

import re
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from delassus.model.reading.numbers import number
from delassus.model.robot import Base

_TRUNKS = ("pelvis", "torso", "trunk")
"""Names of root links of walking robots."""
WHEEL = re.compile(r"wheel|caster", re.IGNORECASE)
"""Names of links and joints of wheels."""
_LEG = re.compile(
    r"foot|sole|toe(?![a-z])|ankle|hip|knee|calf|shank|thigh|shin|leg", re.IGNORECASE
)
_ARM = re.compile(r"arm|shoulder|elbow|wrist|gripper|finger|palm|hand|manipulator", re.IGNORECASE)


def either(names: tuple[str, ...]) -> str:
    """Return e.g. ``pelvis, torso or trunk``."""
    return f"{', '.join(names[:-1])} or {names[-1]}"


BASE_RULE = (
    "fixed where the root link is called world, has no mass, stands on wheels, carries arms "
    f"without legs, or carries one limb alone and is not called {either(_TRUNKS)}; else floating"
)
"""How :func:`base_of` decides."""


@dataclass(frozen=True)
class Held:
    """Base of a robot, with the reason.

    Attributes
    ----------
    base : ``"fixed"`` or ``"floating"``.
    surely : whether the description excludes the other base.
    """

    base: Base
    why: str
    surely: bool = False


def base_of(document: Element) -> Held:
    """Return the likely base of a robot that a URDF describes.

    A base without mass cannot float; a base on a floating joint does. Otherwise names decide: a
    robot with legs floats, one on wheels or with arms alone is fixed. Flying arms are not
    recognised.
    """
    joints = [(_end(joint, "parent"), _end(joint, "child"), joint)
              for joint in document.findall("joint")]  # fmt: skip
    carried = {child for _, child, _ in joints}
    links = {link.get("name", ""): link for link in document.findall("link")}
    root = next((name for name in links if name not in carried), "")
    held, moving = [root], list[tuple[Element, str]]()
    for parent in held:  # grows meanwhile
        for above, child, joint in joints:
            if above == parent and joint.get("type") != "fixed":
                moving.append((joint, child))
            elif above == parent and child not in held:
                held.append(child)
    if [joint.get("type") for joint, _ in moving] == ["floating"]:
        return Held("floating", f"joint {moving[0][0].get('name')!r} is floating", surely=True)
    if root.lower() == "world":
        return Held("fixed", f"the root link is called {root!r}")
    if moving and not any(_has_mass(links[name]) for name in held if name in links):
        return Held("fixed", f"the root link {root!r} has no mass", surely=True)
    if any(word in root.lower() for word in _TRUNKS):
        return Held("floating", f"the root link is called {root!r}")
    return _by_limbs(root, [child for _, child in moving], list(links))


def _by_limbs(root: str, limbs: list[str], links: list[str]) -> Held:
    """Return the base by the first links of limbs and the names of all links."""
    wheels = [name for name in limbs if WHEEL.search(name)]
    if wheels:
        return Held("fixed", f"link {wheels[0]!r} looks like a wheel")
    if len(limbs) == 1:
        return Held("fixed", f"one limb alone moves on the root link {root!r}")
    arms = [name for name in links if _ARM.search(name)]
    if arms and limbs and not any(_LEG.search(name) for name in links):
        return Held("fixed", f"the links, such as {arms[0]!r}, are of arms without legs")
    return Held("floating", f"{len(limbs) or 'no'} limbs move on the root link {root!r}")


def _has_mass(link: Element) -> bool:
    mass = link.find("inertial/mass")
    try:
        return mass is not None and number(mass.get("value", "")) != 0.0
    except ValueError:
        # The reader of the robot reports this error.
        return True


def _end(joint: Element, which: str) -> str:
    element = joint.find(which)
    return "" if element is None else element.get("link", "")
