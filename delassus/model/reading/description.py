"""What a URDF says about links, joints and closures, by name: built from a checked document.

The document is the one that :mod:`~delassus.model.reading.check` returns: all that it has is
read here, links and joints by urdf_parser_py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from xml.etree import ElementTree

import numpy as np
from urdf_parser_py import urdf
from urdf_parser_py.xml_reflection.core import ParseError

from delassus.errors import RobotError
from delassus.model.constraints import LoopKind
from delassus.model.joint import JointKind
from delassus.model.reading.elements import JOINT_TYPES, LOOP_TYPES
from delassus.model.reading.numbers import numbers_in
from delassus.model.reading.origin import origin_of
from delassus.model.spatial import Array, Inertia, Transform


@dataclass(frozen=True, eq=False)
class LinkDescription:
    """A link: its name and its inertia in the link's frame (zero without ``<inertial>``)."""

    name: str
    inertia: Inertia


@dataclass(frozen=True, eq=False)
class JointDescription:
    """A joint as the URDF has it.

    Attributes
    ----------
    name, parent, child : names of the joint and of its links.
    kind : None for a fixed joint.
    origin : pose of the joint, and of the child link at q = 0, in the parent link.
    axis : (3,) unit vector; (1, 0, 0) where the URDF has none.
    lower, upper : [rad or m], infinite where the URDF has neither and for continuous joints.
    chain : letters of X, Y, Z if the joint is a chain of revolute joints about these axes.
    mimic : the joint that this one follows, if any.
    independent : URDF+'s statement about the joint's position, None without one.
    velocity, effort : limits of the rate [rad/s or m/s] and of the torque or force [N·m or N],
        infinite where the URDF has none or 0.
    damping : viscous friction [N·m·s/rad or N·s/m].
    friction : dry friction [N·m or N], which does not count.
    """

    name: str
    kind: JointKind | None
    parent: str
    child: str
    origin: Transform
    axis: Array
    lower: float
    upper: float
    chain: str = ""
    mimic: Mimic | None = None
    independent: bool | None = None
    velocity: float = np.inf
    effort: float = np.inf
    damping: float = 0.0
    friction: float = 0.0


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
class TransmissionEnd:
    """A joint or actuator of a transmission: its name, role, reductions and offsets as written."""

    name: str = ""
    role: str = ""
    reductions: tuple[str, ...] = ()
    offsets: tuple[str, ...] = ()


@dataclass(frozen=True)
class Transmission:
    """A ``<transmission>`` as it is written, unchecked: most robots have them for other uses.

    Attributes
    ----------
    name, kind : its name, and the text of its type (ROS 1) or plugin (ROS 2).
    joints, actuators : in the order of the document.
    direct : what stands directly in the transmission, without name.
    in_ros2_control : whether it is a part of a ``<ros2_control>``, where missing reductions are 1.
    """

    name: str
    kind: str
    joints: tuple[TransmissionEnd, ...]
    actuators: tuple[TransmissionEnd, ...]
    direct: TransmissionEnd
    in_ros2_control: bool


@dataclass(frozen=True, eq=False)
class Description:
    """Name of a URDF and what it has by name, in document order."""

    name: str
    links: dict[str, LinkDescription]
    joints: dict[str, JointDescription]
    couplings: dict[str, LinkCoupling] = field(default_factory=dict)
    loops: dict[str, LinkLoop] = field(default_factory=dict)
    transmissions: tuple[Transmission, ...] = ()

    @property
    def inertias(self) -> dict[str, Inertia]:
        """Inertias of links by name, in the frames of the links."""
        return {name: link.inertia for name, link in self.links.items()}


def describe(root: ElementTree.Element) -> Description:
    """Build the description of a checked document.

    Raises
    ------
    RobotError
        If urdf_parser_py misses a required part; names the link or joint.
    """
    return Description(
        root.attrib["name"],
        {each.attrib["name"]: _link(each) for each in root.findall("link")},
        {each.attrib["name"]: _joint(each) for each in root.findall("joint")},
        {each.attrib["name"]: _coupling(each) for each in root.findall("coupling")},
        {each.attrib["name"]: _loop(each) for each in root.findall("loop")},
        tuple(_transmission(each) for each in root.findall("transmission")),
    )


def _link(element: ElementTree.Element) -> LinkDescription:
    name, part = element.attrib["name"], element.find("inertial")
    if part is None:
        return LinkDescription(name, Inertia())
    pose = _taken_pose(part)
    inertial = _parsed(urdf.Link, element).inertial
    about_com = np.array((inertial.inertia or urdf.Inertia()).to_matrix(), dtype=np.float64)
    turned = pose.rotation @ about_com @ pose.rotation.T
    return LinkDescription(name, Inertia.from_com(inertial.mass, pose.translation, turned))


def _joint(element: ElementTree.Element) -> JointDescription:
    # Of URDF+, which urdf_parser_py does not know.
    stated = element.attrib.pop("independent", None)
    origin = _taken_pose(element)
    parsed = _parsed(urdf.Joint, element)
    limit, mimic, dynamics = parsed.limit, parsed.mimic, parsed.dynamics
    return JointDescription(
        parsed.name,
        JOINT_TYPES.get(parsed.type),
        parsed.parent,
        parsed.child,
        origin,
        _axis(parsed.axis),
        -np.inf if limit is None else limit.lower,
        np.inf if limit is None else limit.upper,
        mimic=None if mimic is None else Mimic(mimic.joint, mimic.multiplier, mimic.offset),
        independent=None if stated is None else stated == "true",
        velocity=np.inf if limit is None else limit.velocity,
        effort=np.inf if limit is None else limit.effort,
        damping=0.0 if dynamics is None else dynamics.damping or 0.0,
        friction=0.0 if dynamics is None else dynamics.friction or 0.0,
    )


def _parsed(reader: Any, element: ElementTree.Element) -> Any:
    """Return what urdf_parser_py makes of a link or joint."""
    what = f"{element.tag} {element.attrib['name']!r}"
    try:
        return reader.from_xml_string(ElementTree.tostring(element))
    except ParseError as error:
        raise RobotError(f"{what}: {error.e} (at {error.path})") from error
    except ValueError as error:
        raise RobotError(f"{what}: {error}") from error


def _coupling(element: ElementTree.Element) -> LinkCoupling:
    predecessor, successor, ratio = element
    return LinkCoupling(
        element.attrib["name"],
        predecessor.attrib["link"],
        successor.attrib["link"],
        numbers_in(ratio.attrib["value"])[0],
    )


def _loop(element: ElementTree.Element) -> LinkLoop:
    predecessor, successor, *axis = element
    return LinkLoop(
        element.attrib["name"],
        LOOP_TYPES[element.attrib["type"]],
        predecessor.attrib["link"],
        successor.attrib["link"],
        origin_of(predecessor, "predecessor"),
        origin_of(successor, "successor"),
        _axis(numbers_in(axis[0].attrib["xyz"]) if axis else None),
    )


def _transmission(element: ElementTree.Element) -> Transmission:
    joints, actuators = (
        tuple(_transmission_end(each) for each in element.findall(tag))
        for tag in ("joint", "actuator")
    )
    return Transmission(
        element.attrib["name"],
        element.attrib["type"],
        joints,
        actuators,
        _transmission_end(element.find("direct")),
        element.attrib["ros2_control"] == "true",
    )


def _transmission_end(element: ElementTree.Element | None) -> TransmissionEnd:
    if element is None:
        return TransmissionEnd()
    reductions, offsets = (
        tuple(part.text or "" for part in element.findall(tag)) for tag in ("reduction", "offset")
    )
    return TransmissionEnd(element.attrib["name"], element.attrib["role"], reductions, offsets)


def _taken_pose(element: ElementTree.Element) -> Transform:
    """Take the ``<origin>`` out of an element, as urdf_parser_py knows no ``quat_xyzw``."""
    pose = origin_of(element, element.tag)
    for origin in element.findall("origin"):
        element.remove(origin)
    return pose


def _axis(xyz: Any) -> Array:
    """Return the unit vector (3,) of an axis, URDF's default (1, 0, 0) without one."""
    axis = np.array((1.0, 0.0, 0.0) if xyz is None else xyz, dtype=np.float64)
    return np.asarray(axis / np.linalg.norm(axis))
