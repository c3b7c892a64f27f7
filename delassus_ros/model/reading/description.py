"""What a URDF document says about links, joints and closures: checked numbers by name.

Only ``link`` (``inertial``), ``joint`` (``origin``, ``parent``, ``child``, ``axis``, ``limit``,
``mimic``) and what closes the tree (URDF+ couplings and loops, ``<transmission>``) matter to the
dynamics. Everything else (visual, collision, gazebo, ros2_control, sensor, material, …) is
dropped before urdf_parser_py sees it, but for what :mod:`~delassus_ros.model.reading.unread`
refuses. Links and joints have to be one tree.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from xml.etree import ElementTree

import numpy as np
from urdf_parser_py import urdf

from delassus_ros.errors import RobotError, unknown
from delassus_ros.model.constraints import LoopKind
from delassus_ros.model.joint import JointKind
from delassus_ros.model.reading.unread import ENDS, meant, refuse_unread
from delassus_ros.model.reading.xml import (
    MAX_NAME,
    ORIGIN,
    attribute,
    axis_of,
    check_parts,
    copy,
    floats,
    name_of,
    numbers,
    only_child,
    parse,
    pose_of,
)
from delassus_ros.model.spatial import Array, Inertia, Transform

_log = logging.getLogger(__name__)

FIXED = "fixed"
KINDS = {
    "revolute": JointKind.REVOLUTE,
    "continuous": JointKind.REVOLUTE,
    "prismatic": JointKind.PRISMATIC,
    "planar": JointKind.PLANAR,
    "floating": JointKind.FLOATING,
}
"""Kind of the moving joint types of URDF; the remaining type is :data:`FIXED`."""

_OTHERS = {
    "sdf": "; SDF is not read, as no Python package does: use the URDF or xacro that the model "
    "was made from, or its MJCF",
    "mujoco": "; this is MJCF: write Robot.from_mujoco(path)",
    "mujocoinclude": "; this is a part of an MJCF: write Robot.from_mujoco(path) with the whole",
}
"""What to do with the root elements of other formats."""
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
    velocity : limit of the rate [rad/s or m/s], infinite where the URDF has none or 0.
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
        is refused unread. Names the link, joint, coupling or loop.
    """
    namespace, brace, tag = root.tag.rpartition("}")
    if tag != "robot":
        hint = _OTHERS.get(tag, "")
        raise RobotError(f"not a URDF: the root element is <{tag}>, expected <robot>{hint}")
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
        if np.isnan((lower, upper)).any():
            raise RobotError(f"{what}: limits must be numbers, got {lower:g} and {upper:g}")
        if lower > upper:
            given = [end for part in node.iter("limit") for end in part.attrib]
            missing = [end for end in ("lower", "upper") if end not in given]
            hint = f" ({missing[0]} is not given, which means 0)" if missing else ""
            _log.warning(
                "%s: limits are ignored, as lower is above upper: %g and %g%s",
                what, lower, upper, hint,
            )  # fmt: skip
            lower, upper = -np.inf, np.inf
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
        np.inf if kind is None else _velocity_limit(element, prefix, what),
    )


def _velocity_limit(element: ElementTree.Element, prefix: str, what: str) -> float:
    """Return the velocity limit; infinite for none, and for 0, as templates have it.

    No matrix depends on it, so a joint is not refused for a limit that is none.
    """
    limit = only_child(element, prefix, "limit", what)
    try:
        velocity = float("" if limit is None else limit.get("velocity", ""))
    except ValueError:
        return np.inf
    return velocity if velocity > 0.0 else np.inf


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
    check_parts(element, prefix, what, ("name", "type"), (*ENDS, "ratio"))
    text = attribute(_child(element, prefix, "ratio", what, "value"), "value", what)
    predecessor, successor = (
        attribute(_child(element, prefix, end, what, "link"), "link", what) for end in ENDS
    )
    return LinkCoupling(name, predecessor, successor, float(floats(text, 1, f"{what}: ratio")[0]))


def loop_of(element: ElementTree.Element, prefix: str, name: str) -> LinkLoop:
    """Read a URDF+ ``<loop>``."""
    what = f"loop {name!r}"
    check_parts(element, prefix, what, ("name", "type"), (*ENDS, "axis"))
    loop_type = element.get("type", "")
    if loop_type not in LOOP_TYPES:
        raise RobotError(f"{what}: {unknown('type', loop_type[:MAX_NAME], LOOP_TYPES)}")
    ends = []
    for end in ENDS:
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


class LinkTree:
    """The links and joints as a tree: the root link and the joints on each link.

    Raises
    ------
    RobotError
        If the joints do not make one tree of all links.
    """

    def __init__(self, description: Description) -> None:
        self._links = description.links
        self._parent_joint: dict[str, JointDescription] = {}
        self.joints_on: dict[str, list[JointDescription]] = {name: [] for name in self._links}
        if not self._links:
            raise RobotError(f"robot {description.name!r} has no links")
        for joint in description.joints.values():
            self._add(joint)
        self.root = self._root()
        self._check_reached()

    def _add(self, joint: JointDescription) -> None:
        for end, name in (("parent", joint.parent), ("child", joint.child)):
            if name not in self._links:
                raise RobotError(
                    f"joint {joint.name!r}: {end}: {unknown('link', name, self._links)}"
                )
        if joint.parent == joint.child:
            raise RobotError(
                f"joint {joint.name!r}: parent and child are the same link {joint.child!r}"
            )
        other = self._parent_joint.setdefault(joint.child, joint)
        if other is not joint:
            raise RobotError(
                f"joint {joint.name!r} closes a loop: its child link {joint.child!r} would have "
                f"two parents, {other.parent!r} (by joint {other.name!r}) and "
                f"{joint.parent!r}; remove one of the joints and put a <loop> (URDF+) in its place"
            )
        self.joints_on[joint.parent].append(joint)

    def _root(self) -> str:
        roots = [name for name in self._links if name not in self._parent_joint]
        if len(roots) > 1:
            raise RobotError(
                f"{len(roots)} root links: {listed(roots)}; a robot is one tree: connect them "
                "with joints or remove all but one"
            )
        if not roots:
            raise RobotError(self._cycle(next(iter(self._links))))
        return roots[0]

    def _check_reached(self) -> None:
        reached, pending = set(), [self.root]
        while pending:
            link = pending.pop()
            reached.add(link)
            pending.extend(joint.child for joint in self.joints_on[link])
        for link in self._links:
            if link not in reached:
                raise RobotError(self._cycle(link))

    def _cycle(self, link: str) -> str:
        """Say which joints make the cycle that the parents of `link` lead to."""
        seen: dict[str, JointDescription] = {}
        while link not in seen:
            seen[link] = self._parent_joint[link]
            link = seen[link].parent
        names = list(seen)
        joints = [seen[name].name for name in names[names.index(link) :]]
        return (
            f"joints {listed(joints)} form a cycle, from which no root link is reached; a "
            "robot is one tree"
        )


def listed(names: list[str], most: int = 10) -> str:
    """Return the first names, quoted, for a message."""
    shown = ", ".join(repr(name) for name in names[:most])
    return shown + (f", … ({len(names)} in all)" if len(names) > most else "")
