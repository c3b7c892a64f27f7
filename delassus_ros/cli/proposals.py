"""Proposals from a robot description: the base, possible contacts, and their kinds."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

import numpy as np

from delassus_ros.contacts import Contact
from delassus_ros.model.reading.numbers import number, numbers_in
from delassus_ros.model.robot import Base, Robot
from delassus_ros.model.spatial import Array, Transform
from delassus_ros.rbda.rotors import redistribute

_FEW = 8
"""Number of ends up to which all are proposed; of more ends (e.g. fingers), those named below."""
_NAMED = ("foot", "sole", "toe", "ankle", "hand", "palm", "wrist", "tool", "gripper", "tcp")
_FLAT = ("sole", "hand", "palm", "wrist", "tool", "gripper", "tcp")
"""Parts of names of links that touch with a surface, used without a collision shape."""
_UNTOUCHED = re.compile(
    r"camera|optical|lidar|laser|sensor|propeller|(?<![a-z])(imu|head|rotor)", re.IGNORECASE
)
"""Names of links that are not meant to touch."""
_TRUNKS = ("pelvis", "torso", "trunk")
"""Names of root links of walking robots."""
_LEVEL = 2e-3
"""Largest distance of spheres from a plane, and difference of their radii, for one sole [m]."""


def _either(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


RULE = (
    "Contacts are the ends of limbs but for cameras, other sensors, heads and rotors; of more",
    f"than {_FEW} those called {_either(_NAMED)}.",
    "A sphere is a point; several in a plane, a box or a cylinder are a surface. Where no shape",
    f"says it, {_either(_FLAT)} in the name makes a surface.",
)
"""Rule of the proposed contacts, in lines."""


@dataclass(frozen=True)
class Proposal:
    """A frame that may touch.

    Attributes
    ----------
    frame : name of the frame.
    kind : ``"point"`` or ``"surface"``.
    why : reason for the kind, in a few words.
    chosen : whether the end is proposed as a contact.
    xyz : point of contact in the frame [m].
    """

    frame: str
    kind: str
    why: str
    chosen: bool
    xyz: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def contact(self) -> Contact:
        """Return the proposal as a contact with the name of its frame."""
        return Contact(self.frame, self.frame, self.kind, Transform.from_xyz_rpy(self.xyz))


@dataclass(frozen=True)
class _Shape:
    """A collision shape of a link: its kind, its centre, and the radius of a sphere [m]."""

    kind: str
    centre: Array | None
    radius: float


BASE_RULE = (
    "fixed where the root link is called world, has no mass, or carries one limb alone and is not "
    f"called {_either(_TRUNKS)}; else floating"
)
"""How :func:`base_of` decides."""


@dataclass(frozen=True)
class Held:
    """Base of a robot, with the reason.

    Attributes
    ----------
    base : ``"fixed"`` or ``"floating"``.
    why : reason, in a few words.
    surely : whether the description excludes the other base.
    """

    base: Base
    why: str
    surely: bool = False


def base_of(document: Element) -> Held:
    """Return the likely base of a robot.

    An arm's root link is fixed and has one limb; a walking robot has several limbs. A base without
    mass cannot float; a base on a floating joint does. A flying arm cannot be recognised.

    Parameters
    ----------
    document : robot description.
    """
    joints = [(_end(joint, "parent"), _end(joint, "child"), joint)
              for joint in document.findall("joint")]  # fmt: skip
    carried = {child for _, child, _ in joints}
    links = {link.get("name", ""): link for link in document.findall("link")}
    root = next((name for name in links if name not in carried), "")
    held, moving = [root], list[Element]()
    for parent in held:  # grows meanwhile
        for above, child, joint in joints:
            if above == parent and joint.get("type") != "fixed":
                moving.append(joint)
            elif above == parent and child not in held:
                held.append(child)
    if [joint.get("type") for joint in moving] == ["floating"]:
        return Held("floating", f"joint {moving[0].get('name')!r} is floating", surely=True)
    if root.lower() == "world":
        return Held("fixed", f"the root link is called {root!r}")
    if moving and not any(_has_mass(links[name]) for name in held if name in links):
        return Held("fixed", f"the root link {root!r} has no mass", surely=True)
    if any(word in root.lower() for word in _TRUNKS):
        return Held("floating", f"the root link is called {root!r}")
    if len(moving) == 1:
        return Held("fixed", f"one limb alone moves on the root link {root!r}")
    return Held("floating", f"{len(moving) or 'no'} limbs move on the root link {root!r}")


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


def proposals(robot: Robot, document: Element) -> list[Proposal]:
    """Return the ends of a robot's limbs.

    Parameters
    ----------
    document : robot description, whose collision shapes determine the kinds.
    """
    shapes = _shapes(document)
    ends = _ends(robot)
    able = [end for end, touches in ends.items() if touches]
    few = able if len(able) <= _FEW else list(filter(_is_named, able)) or able[:_FEW]
    found = []
    for end in ends:
        kind, why, xyz = _kind(robot, end, shapes)
        found.append(Proposal(end, kind, why, end in few, xyz))
    return found


def _ends(robot: Robot) -> dict[str, bool]:
    """Return frames on all bodies that carry no further joint and are no rotors.

    The frame of a body is the last one whose name is not that of a sensor. The flag beside it is
    False if the first link of the body has the name of a sensor, e.g. a head with cameras: such a
    body is not meant to touch.
    """
    parents = {joint.parent for joint in robot.joints}
    frames: dict[int, list[str]] = {}
    for frame in robot.frames.values():
        frames.setdefault(frame.body, []).append(frame.name)
    kept = redistribute(robot).kept if robot.is_closed else range(len(robot.bodies))
    found = {}
    for i in kept:
        if i not in parents and i in frames:
            able = [name for name in frames[i] if not _UNTOUCHED.search(name)]
            found[(able or frames[i])[-1]] = frames[i][0] in able
    return found


def _is_named(frame: str) -> bool:
    return any(word in frame.lower() for word in _NAMED)


def _shapes(document: Element) -> dict[str, list[_Shape]]:
    """Return the collision shapes per link."""
    return {
        link.get("name", ""): [
            _Shape(shape.tag, *_measures(collision, shape))
            for collision in link.iterfind("collision")
            for shape in collision.iterfind("geometry/*")
        ]
        for link in document.iter("link")
    }


def _measures(collision: Element, shape: Element) -> tuple[Array | None, float]:
    """Return a shape's centre in its link and its radius [m]; None if they are unreadable."""
    origin = collision.find("origin")
    place = "0 0 0" if origin is None else origin.get("xyz", "0 0 0")
    try:
        return np.reshape(numbers_in(place), 3), number(shape.get("radius", "0"))
    except ValueError:
        # Dynamics need no shapes: errors in shapes are not reported.
        return None, 0.0


def _kind(
    robot: Robot, frame: str, shapes: Mapping[str, Sequence[_Shape]]
) -> tuple[str, str, tuple[float, float, float]]:
    """Return the kind of contact at a frame, the reason, and the point of contact in the frame."""
    links = [frame]
    if not shapes.get(frame):
        # Shapes of further links of the same body are used if the link has no shape.
        body = robot.frames[frame].body
        links = [name for name, other in robot.frames.items() if other.body == body]
    kinds = {shape.kind for name in links for shape in shapes.get(name, ())}
    here = (0.0, 0.0, 0.0)
    if kinds == {"sphere"}:
        sole = _sole(robot, frame, links, shapes)
        if sole is not None:
            return "surface", "spheres in a plane", sole
        return "point", "a sphere", here
    flat_shapes = kinds & {"box", "cylinder"}
    if flat_shapes and "sphere" not in kinds:
        return "surface", f"a {min(flat_shapes)}", here
    flat = any(word in frame.lower() for word in _FLAT)
    return ("surface", "by its name", here) if flat else ("point", "no shape says it", here)


def _sole(
    robot: Robot, frame: str, links: Sequence[str], shapes: Mapping[str, Sequence[_Shape]]
) -> tuple[float, float, float] | None:
    """Return the middle of the sole below three or more spheres, in a frame; None without one.

    The spheres have to lie in a plane. The sole is on the side of the plane away from the joint.
    """
    to_body = [(robot.frames[name].placement, shape)
               for name in links for shape in shapes.get(name, ())]  # fmt: skip
    radii = [shape.radius for _, shape in to_body]
    centres = [pose.rotation @ shape.centre + pose.translation
               for pose, shape in to_body if shape.centre is not None]  # fmt: skip
    if not 3 <= len(centres) == len(radii) or np.ptp(radii) > _LEVEL:
        return None
    middle = np.mean(centres, axis=0)
    _, (_, width, height), axes = np.linalg.svd(np.array(centres) - middle)
    if width <= _LEVEL or height > _LEVEL:
        return None
    normal = axes[2]
    away = 1.0 if normal @ middle >= 0.0 else -1.0
    on_body = Transform(np.eye(3), middle + away * np.mean(radii) * normal)
    x, y, z = (robot.frames[frame].placement.inverse() @ on_body).translation.round(4) + 0.0
    return float(x), float(y), float(z)
