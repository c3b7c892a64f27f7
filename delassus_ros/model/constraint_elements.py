"""What a URDF says beyond its tree, by the names of links and joints.

URDF+ couplings and loops, ``<mimic>`` and ``<transmission>``. What they mean for the joints of
the tree is found in :mod:`~delassus_ros.model.closed_robot`.
"""

from __future__ import annotations

from dataclasses import dataclass
from xml.etree import ElementTree

from delassus_ros.errors import RobotError, unknown
from delassus_ros.model.constraints import LoopKind
from delassus_ros.model.elements import (
    MAX_NAME,
    ORIGIN,
    attribute,
    axis_of,
    check_parts,
    floats,
    only_child,
)
from delassus_ros.model.spatial import Array, Transform

LOOP_TYPES = {
    "revolute": LoopKind.HINGE,
    "continuous": LoopKind.HINGE,
    "prismatic": LoopKind.SLIDER,
    "planar": LoopKind.PLANAR,
    "fixed": LoopKind.WELD,
    "spherical": LoopKind.POINT,
    "universal": LoopKind.POINT,
}
"""Kind of the loop types of URDF+: what a joint of that type between the frames would allow.
The last two are not in URDF+; the order of a universal joint's axes is not known to it."""
_ENDS = ("predecessor", "successor")


@dataclass(frozen=True)
class LinkCoupling:
    """A URDF+ coupling: ratio · Σ q(ancestor → predecessor) − Σ q(ancestor → successor) = 0.

    The ancestor is the nearest one that both links have.
    """

    name: str
    predecessor: str
    successor: str
    ratio: float


@dataclass(frozen=True, eq=False)
class LinkLoop:
    """A loop between a frame on a link and a frame on another; axis (3,) in both frames."""

    name: str
    kind: LoopKind
    predecessor: str
    successor: str
    predecessor_placement: Transform
    successor_placement: Transform
    axis: Array


@dataclass(frozen=True)
class Mimic:
    """A joint's position is multiplier · (position of `joint`) + offset."""

    joint: str
    multiplier: float
    offset: float


@dataclass(frozen=True)
class Transmission:
    """A ``<transmission>`` as it is written, unchecked: most robots have them for other uses."""

    name: str
    joints: tuple[str, ...]
    actuators: tuple[str, ...]
    reductions: tuple[str, ...]


def coupling_of(element: ElementTree.Element, prefix: str, name: str) -> LinkCoupling:
    """Read a URDF+ ``<coupling>``."""
    what = f"coupling {name!r}"
    # Published files have a type, "rolling", which does not change the equation.
    check_parts(element, prefix, what, ("name", "type"), (*_ENDS, "ratio"))
    text = attribute(_child(element, prefix, "ratio", what, "value"), "value", what)
    predecessor, successor = (
        attribute(_child(element, prefix, end, what, "link"), "link", what) for end in _ENDS
    )
    return LinkCoupling(name, predecessor, successor, float(floats(text, 1, f"{what}: ratio")[0]))


def loop_of(element: ElementTree.Element, prefix: str, name: str) -> LinkLoop:
    """Read a URDF+ ``<loop>``."""
    what = f"loop {name!r}"
    check_parts(element, prefix, what, ("name", "type"), (*_ENDS, "axis"))
    loop_type = element.get("type", "")
    if loop_type not in LOOP_TYPES:
        raise RobotError(f"{what}: {unknown('type', loop_type[:MAX_NAME], LOOP_TYPES)}")
    ends = []
    for end in _ENDS:
        child = _child(element, prefix, end, what, "link", ("origin",))
        link = attribute(child, "link", what)
        ends.append((link, _origin(child, prefix, f"{what}: {end}")))
    (predecessor, placement), (successor, other) = ends
    axis = only_child(element, prefix, "axis", what)
    xyz = None
    if axis is not None:
        check_parts(axis, prefix, what, ("xyz",))
        xyz = floats(attribute(axis, "xyz", what), 3, f"{what}: axis")
    kind = LOOP_TYPES[loop_type]
    return LinkLoop(name, kind, predecessor, successor, placement, other, axis_of(xyz, what))


def mimic_of(joint: ElementTree.Element, prefix: str, what: str) -> Mimic | None:
    """Read a joint's ``<mimic>``, if there is one."""
    element = only_child(joint, prefix, "mimic", what)
    if element is None:
        return None
    multiplier, offset = (
        float(floats(element.get(key, default), 1, f"{what}: mimic {key}")[0])
        for key, default in (("multiplier", "1"), ("offset", "0"))
    )
    if multiplier == 0.0:
        raise RobotError(
            f'{what}: <mimic multiplier="0">: the joint would not move; make it fixed'
        )
    return Mimic(attribute(element, "joint", f"{what}: mimic"), multiplier, offset)


def transmissions_of(root: ElementTree.Element, prefix: str) -> tuple[Transmission, ...]:
    """Read the transmissions that have a name; the others cannot be referred to.

    Nothing is refused here: without the inertia of its rotor, a transmission has no effect.
    """
    transmissions = []
    for element in root.findall(f"{prefix}transmission"):
        joints, actuators = (
            tuple(part.get("name", "") for part in element.findall(f"{prefix}{tag}"))
            for tag in ("joint", "actuator")
        )
        reductions = [each.text or "" for each in element.iter(f"{prefix}mechanicalReduction")]
        if element.get("name"):
            transmissions.append(
                Transmission(element.attrib["name"], joints, actuators, tuple(reductions))
            )
    return tuple(transmissions)


def _child(
    element: ElementTree.Element,
    prefix: str,
    tag: str,
    what: str,
    key: str,
    children: tuple[str, ...] = (),
) -> ElementTree.Element:
    """Return the child with this tag, which may have this attribute and these children alone."""
    child = only_child(element, prefix, tag, what)
    if child is None:
        raise RobotError(f"{what} has no <{tag}>")
    check_parts(child, prefix, what, (key,), children)
    return child


def _origin(element: ElementTree.Element, prefix: str, what: str) -> Transform:
    origin = only_child(element, prefix, "origin", what)
    if origin is None:
        return Transform()
    check_parts(origin, prefix, what, ORIGIN)
    xyz, rpy = (floats(origin.get(key, "0 0 0"), 3, f"{what}: origin {key}") for key in ORIGIN)
    return Transform.from_xyz_rpy(xyz, rpy)
