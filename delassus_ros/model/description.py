"""What a URDF document says about links and joints: checked numbers, no tree yet.

Only ``link`` (``inertial``), ``joint`` (``origin``, ``parent``, ``child``, ``axis``, ``limit``,
``mimic``) and what closes the tree (:mod:`~delassus_ros.model.constraint_elements`) matter to the
dynamics. Everything else (visual, collision, gazebo, ros2_control, sensor, material, …) is
dropped before urdf_parser_py sees it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from xml.etree import ElementTree

import numpy as np
from urdf_parser_py import urdf

from delassus_ros.errors import RobotError
from delassus_ros.model.constraint_elements import (
    LinkCoupling,
    LinkLoop,
    Mimic,
    Transmission,
    coupling_of,
    loop_of,
    mimic_of,
    transmissions_of,
)
from delassus_ros.model.elements import (
    MAX_NAME,
    ORIGIN,
    axis_of,
    copy,
    name_of,
    numbers,
    only_child,
    parse,
    pose_of,
)
from delassus_ros.model.robot import JointKind
from delassus_ros.model.spatial import Array, Inertia, Transform
from delassus_ros.model.unread import meant, refuse_unread

FIXED = "fixed"
KINDS = {
    "revolute": JointKind.REVOLUTE,
    "continuous": JointKind.REVOLUTE,
    "prismatic": JointKind.PRISMATIC,
    "planar": JointKind.PLANAR,
    "floating": JointKind.FLOATING,
}
"""Kind of the moving joint types of URDF; the remaining type is :data:`FIXED`."""

_INERTIA = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")


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


@dataclass(frozen=True, eq=False)
class Description:
    """Name of a URDF and what it has by name, in document order."""

    name: str
    links: dict[str, LinkDescription]
    joints: dict[str, JointDescription]
    couplings: dict[str, LinkCoupling] = field(default_factory=dict)
    loops: dict[str, LinkLoop] = field(default_factory=dict)
    transmissions: tuple[Transmission, ...] = ()


def describe(root: ElementTree.Element) -> Description:
    """Read what is below the ``<robot>`` element.

    Raises
    ------
    RobotError
        For another root element, a missing, repeated or unreadable part, a number or an
        inertia that is not physical, and what is not supported: unknown joint types and what
        :mod:`~delassus_ros.model.unread` refuses. Names the link, joint, coupling or loop.
    """
    namespace, brace, tag = root.tag.rpartition("}")
    if tag != "robot":
        raise RobotError(f"not a URDF: the root element is <{tag}>, expected <robot>")
    # A default namespace (Drake writes one) prefixes every tag; foreign tags keep theirs.
    prefix = namespace + brace
    refuse_unread(root, prefix)
    links: dict[str, LinkDescription] = {}
    for element in root.findall(f"{prefix}link"):
        name = name_of(element, "link", links)
        links[name] = _link(element, prefix, name)
    joints: dict[str, JointDescription] = {}
    for element in root.findall(f"{prefix}joint"):
        name = name_of(element, "joint", joints)
        joints[name] = _joint(element, prefix, name)
    couplings: dict[str, LinkCoupling] = {}
    for element in root.findall(f"{prefix}coupling"):
        name = name_of(element, "coupling", couplings)
        couplings[name] = coupling_of(element, prefix, name)
    loops: dict[str, LinkLoop] = {}
    taken = set(couplings)
    for element in root.findall(f"{prefix}loop"):
        name = name_of(element, "loop", taken)
        taken.add(name)
        loops[name] = loop_of(element, prefix, name)
    name = name_of(root, "robot", ())
    return Description(name, links, joints, couplings, loops, transmissions_of(root, prefix))


def _link(element: ElementTree.Element, prefix: str, name: str) -> LinkDescription:
    what = f"link {name!r}"
    node = ElementTree.Element("link", name=name)
    inertial = only_child(element, prefix, "inertial", what)
    if inertial is None:
        return LinkDescription(name, Inertia())
    part = ElementTree.SubElement(node, "inertial")
    copy(inertial, part, prefix, "origin", ORIGIN, what)
    copy(inertial, part, prefix, "mass", ("value",), what, required="value")
    copy(inertial, part, prefix, "inertia", _INERTIA, what)
    parsed = parse(urdf.Link, node, what).inertial
    mass = float(numbers([parsed.mass], 1, f"{what}: mass")[0])
    if mass < 0:
        raise RobotError(f"{what}: mass must be >= 0 kg, got {mass:g}")
    inertia = parsed.inertia or urdf.Inertia()
    numbers([getattr(inertia, key) for key in _INERTIA], 6, f"{what}: inertia")
    rotational = np.array(inertia.to_matrix(), dtype=np.float64)
    pose = pose_of(parsed.origin, what)
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
    node = ElementTree.Element("joint", name=name, type=joint_type)
    copy(element, node, prefix, "origin", ORIGIN, what)
    for end in ("parent", "child"):
        copy(element, node, prefix, end, ("link",), what, required="link")
    if kind in (JointKind.REVOLUTE, JointKind.PRISMATIC, JointKind.PLANAR):
        copy(element, node, prefix, "axis", ("xyz",), what, required="xyz")
    if kind in (JointKind.REVOLUTE, JointKind.PRISMATIC) and joint_type != "continuous":
        _copy_limit(element, node, prefix, what)
    parsed = parse(urdf.Joint, node, what)
    lower, upper = -np.inf, np.inf
    if parsed.limit is not None:
        lower, upper = float(parsed.limit.lower), float(parsed.limit.upper)
        if not lower <= upper:
            given = [end for part in node.iter("limit") for end in part.attrib]
            missing = [end for end in ("lower", "upper") if end not in given]
            hint = f"; {missing[0]} is not given, which means 0" if missing else ""
            raise RobotError(
                f"{what}: limits must have lower <= upper, got {lower:g} and {upper:g}{hint}"
            )
    origin = pose_of(parsed.origin, what)
    axis = axis_of(parsed.axis, what)
    return JointDescription(
        name,
        kind,
        parsed.parent,
        parsed.child,
        origin,
        axis,
        lower,
        upper,
        "",
        # On a fixed joint mimic means nothing (reduced robots keep such left-overs).
        None if kind is None else mimic_of(element, prefix, what),
        _independent(element, what),
    )


def _independent(element: ElementTree.Element, what: str) -> bool | None:
    for key in element.attrib:
        if meant(key, ("independent", "name", "type")) == "independent":
            raise RobotError(f"{what}: {key}=… is not read; did you mean independent=…?")
    stated = element.get("independent")
    # Published files have True and False as well, as Python writes them.
    if stated not in (None, "true", "false", "True", "False"):
        raise RobotError(f"{what}: independent must be 'true' or 'false', got {stated[:40]!r}")
    return None if stated is None else stated.lower() == "true"


def _copy_limit(
    source: ElementTree.Element, target: ElementTree.Element, prefix: str, what: str
) -> None:
    """Copy the position limits; a limit that gives neither (only effort …) is none."""
    copy(source, target, prefix, "limit", ("lower", "upper"), what)
    limit = target.find("limit")
    if limit is None:
        return
    if not limit.attrib:
        target.remove(limit)
        return
    # Required by urdf_parser_py, of no use here, and often missing in published models.
    limit.attrib.update(effort="0", velocity="0")
