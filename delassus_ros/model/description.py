"""What a URDF document says about links and joints: checked numbers, no tree yet.

Only ``link`` (``inertial``) and ``joint`` (``origin``, ``parent``, ``child``, ``axis``,
``limit``, ``mimic``) matter to the dynamics. Everything else (visual, collision, gazebo,
transmission, ros2_control, sensor, material, …) is dropped before urdf_parser_py sees it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

import numpy as np
from urdf_parser_py import urdf
from urdf_parser_py.xml_reflection.core import ParseError

from delassus_ros.errors import RobotError
from delassus_ros.model.robot import JointKind
from delassus_ros.model.spatial import Array, Inertia, Transform

FIXED = "fixed"
KINDS = {
    "revolute": JointKind.REVOLUTE,
    "continuous": JointKind.REVOLUTE,
    "prismatic": JointKind.PRISMATIC,
    "planar": JointKind.PLANAR,
    "floating": JointKind.FLOATING,
}
"""Kind of the moving joint types of URDF; the remaining type is :data:`FIXED`."""

MAX_NUMBER = 1e9
"""Largest length [m], angle [rad], mass [kg] or inertia [kg·m²] accepted: beyond it, sums
and products over a tree could overflow, and no robot comes near."""
MAX_NAME = 1000
"""Most characters of a name."""

_INERTIA = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
_ORIGIN = ("xyz", "rpy")


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
    """

    name: str
    kind: JointKind | None
    parent: str
    child: str
    origin: Transform
    axis: Array
    lower: float
    upper: float


@dataclass(frozen=True, eq=False)
class Description:
    """Name, links by name and joints by name of a URDF, in document order."""

    name: str
    links: dict[str, LinkDescription]
    joints: dict[str, JointDescription]


def describe(root: ElementTree.Element) -> Description:
    """Read the links and joints below the ``<robot>`` element.

    Raises
    ------
    RobotError
        For another root element, a missing, repeated or unreadable part, a number or an
        inertia that is not physical, and what is not supported: unknown joint types, mimic
        joints, URDF+ loops and couplings, unexpanded xacro. Names the link or joint.
    """
    namespace, brace, tag = root.tag.rpartition("}")
    if tag != "robot":
        raise RobotError(f"not a URDF: the root element is <{tag}>, expected <robot>")
    # A default namespace (Drake writes one) prefixes every tag; foreign tags keep theirs.
    prefix = namespace + brace
    _refuse_unsupported(root, prefix)
    links: dict[str, LinkDescription] = {}
    for element in root.findall(f"{prefix}link"):
        name = _name(element, "link", links)
        links[name] = _link(element, prefix, name)
    joints: dict[str, JointDescription] = {}
    for element in root.findall(f"{prefix}joint"):
        name = _name(element, "joint", joints)
        joints[name] = _joint(element, prefix, name)
    return Description(_name(root, "robot", ()), links, joints)


def _refuse_unsupported(root: ElementTree.Element, prefix: str) -> None:
    """Refuse what would change the dynamics if it were dropped like other unknown tags."""
    for element in root:
        tag = element.tag
        if tag in (f"{prefix}coupling", f"{prefix}loop"):
            what = tag[len(prefix) :]
            raise RobotError(
                f"{what} {element.get('name', '')!r}: closed loops and coupled joints (URDF+) "
                "are not supported yet; without them the matrix would be wrong"
            )
        if "xacro" in tag.partition("}")[0]:
            raise RobotError(
                f"<{tag.rpartition('}')[2]}> is xacro: expand the file first with "
                "'xacro robot.urdf.xacro > robot.urdf'"
            )


def _link(element: ElementTree.Element, prefix: str, name: str) -> LinkDescription:
    what = f"link {name!r}"
    node = ElementTree.Element("link", name=name)
    inertial = _only_child(element, prefix, "inertial", what)
    if inertial is None:
        return LinkDescription(name, Inertia())
    part = ElementTree.SubElement(node, "inertial")
    _copy(inertial, part, prefix, "origin", _ORIGIN, what)
    _copy(inertial, part, prefix, "mass", ("value",), what, required="value")
    _copy(inertial, part, prefix, "inertia", _INERTIA, what)
    parsed = _parse(urdf.Link, node, what).inertial
    mass = float(_numbers([parsed.mass], 1, f"{what}: mass")[0])
    if mass < 0:
        raise RobotError(f"{what}: mass must be >= 0 kg, got {mass:g}")
    inertia = parsed.inertia or urdf.Inertia()
    _numbers([getattr(inertia, key) for key in _INERTIA], 6, f"{what}: inertia")
    rotational = np.array(inertia.to_matrix(), dtype=np.float64)
    pose = _pose(parsed.origin, what)
    turned = pose.rotation @ rotational @ pose.rotation.T
    return LinkDescription(name, Inertia.from_com(mass, pose.translation, turned))


def _joint(element: ElementTree.Element, prefix: str, name: str) -> JointDescription:
    what = f"joint {name!r}"
    joint_type = element.get("type")
    if joint_type is None or joint_type not in (FIXED, *KINDS):
        raise RobotError(
            f"{what}: unknown joint type {(joint_type or '')[:MAX_NAME]!r}; "
            f"types: {', '.join((FIXED, *KINDS))}"
        )
    kind = KINDS.get(joint_type)
    # On a fixed joint mimic means nothing (reduced robots keep such left-overs).
    if kind is not None and _only_child(element, prefix, "mimic", what) is not None:
        raise RobotError(
            f"{what}: <mimic>: coupled joints are not supported yet; make the joint fixed, or "
            "remove <mimic> if it moves freely"
        )
    node = ElementTree.Element("joint", name=name, type=joint_type)
    _copy(element, node, prefix, "origin", _ORIGIN, what)
    for end in ("parent", "child"):
        _copy(element, node, prefix, end, ("link",), what, required="link")
    if kind in (JointKind.REVOLUTE, JointKind.PRISMATIC, JointKind.PLANAR):
        _copy(element, node, prefix, "axis", ("xyz",), what, required="xyz")
    if kind in (JointKind.REVOLUTE, JointKind.PRISMATIC) and joint_type != "continuous":
        _copy_limit(element, node, prefix, what)
    parsed = _parse(urdf.Joint, node, what)
    lower, upper = -np.inf, np.inf
    if parsed.limit is not None:
        lower, upper = float(parsed.limit.lower), float(parsed.limit.upper)
        if not lower <= upper:
            raise RobotError(
                f"{what}: limits must have lower <= upper, got {lower:g} and {upper:g}"
            )
    origin = _pose(parsed.origin, what)
    axis = _axis(parsed.axis, what)
    return JointDescription(name, kind, parsed.parent, parsed.child, origin, axis, lower, upper)


def _name(element: ElementTree.Element, what: str, taken: Iterable[str]) -> str:
    name = element.get("name", "")
    if not name:
        raise RobotError(f"a <{what}> has no name")
    if len(name) > MAX_NAME:
        raise RobotError(
            f"{what} {name[:40]!r}…: names may have at most {MAX_NAME} characters, "
            f"this one has {len(name)}"
        )
    if name in taken:
        raise RobotError(f"{what} {name!r} appears twice; names must be unique")
    return name


def _only_child(
    element: ElementTree.Element, prefix: str, tag: str, what: str
) -> ElementTree.Element | None:
    found = element.findall(prefix + tag)
    if len(found) > 1:
        raise RobotError(f"{what}: <{tag}> appears {len(found)} times; one is meant")
    return found[0] if found else None


def _copy(
    source: ElementTree.Element,
    target: ElementTree.Element,
    prefix: str,
    tag: str,
    keys: tuple[str, ...],
    what: str,
    required: str | None = None,
) -> None:
    """Copy child `tag` of `source`, if there is one, with the attributes `keys` alone."""
    child = _only_child(source, prefix, tag, what)
    if child is None:
        return
    if tag == "origin":
        # Newer URDF can give the rotation in other ways; dropping it would be wrong.
        for key in child.attrib.keys() - set(keys):
            raise RobotError(f"{what}: <origin {key}=…> is not supported; write xyz and rpy")
    if required is not None and not child.get(required):
        raise RobotError(f"{what}: <{tag}> has no attribute {required!r}")
    attributes = {key: child.attrib[key] for key in keys if key in child.attrib}
    ElementTree.SubElement(target, tag, attributes)


def _copy_limit(
    source: ElementTree.Element, target: ElementTree.Element, prefix: str, what: str
) -> None:
    """Copy the position limits; a limit that gives neither (only effort …) is none."""
    _copy(source, target, prefix, "limit", ("lower", "upper"), what)
    limit = target.find("limit")
    if limit is None:
        return
    if not limit.attrib:
        target.remove(limit)
        return
    # Required by urdf_parser_py, of no use here, and often missing in published models.
    limit.attrib.update(effort="0", velocity="0")


def _parse(reader: Any, node: ElementTree.Element, what: str) -> Any:
    """Read one sanitized element with urdf_parser_py."""
    try:
        return reader.from_xml_string(ElementTree.tostring(node))
    except ParseError as error:
        reason, place = error.e, f" (at {error.path})"
        failure: Exception = error
    except (ValueError, AssertionError) as error:
        reason, place = error, ""
        failure = error
    # urdf_parser_py asserts the length of vectors.
    said = "expected three numbers" if isinstance(reason, AssertionError) else str(reason)
    raise RobotError(f"{what}: {said}{place}") from failure


def _numbers(values: Iterable[float], count: int, what: str) -> Array:
    array = np.array(list(values), dtype=np.float64)
    if array.shape != (count,):
        raise RobotError(f"{what}: expected {count} numbers, got {array.size}")
    # Written so that NaN fails as well.
    if not np.all(np.abs(array) <= MAX_NUMBER):
        shown = " ".join(f"{value:g}" for value in array)
        raise RobotError(
            f"{what}: numbers must be finite and at most {MAX_NUMBER:g} in SI units, got {shown}"
        )
    return array


def _pose(origin: Any, what: str) -> Transform:
    if origin is None:
        return Transform()
    return Transform.from_xyz_rpy(
        _numbers(origin.xyz, 3, f"{what}: origin xyz"),
        _numbers(origin.rpy, 3, f"{what}: origin rpy"),
    )


def _axis(xyz: list[float] | None, what: str) -> Array:
    axis = _numbers((1.0, 0.0, 0.0) if xyz is None else xyz, 3, f"{what}: axis")
    length = float(np.linalg.norm(axis))
    if length < 1.0 / MAX_NUMBER:
        raise RobotError(f"{what}: the axis must not be zero; give its direction in <axis xyz>")
    return axis / length
