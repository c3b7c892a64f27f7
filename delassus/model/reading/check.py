"""The one pass that checks a URDF document: what is unread, misspelt, missing or no sound number.

The result is a document of the elements and attributes of
:data:`~delassus.model.reading.elements.ELEMENTS` alone, without namespaces, with numbers that
are finite and of sensible size. Other elements (visual, collision, gazebo, ros2_control, sensor,
material, …) are dropped, but for those that
:mod:`~delassus.model.reading.unread` refuses.
"""

from __future__ import annotations

import fnmatch
import logging
from collections.abc import Callable, Collection
from functools import partial
from xml.etree import ElementTree

import numpy as np

from delassus.errors import RobotError, unknown
from delassus.model.reading.elements import (
    ELEMENTS,
    ENDS,
    FIXED,
    JOINT_TYPES,
    LOOP_TYPES,
    MAX_NAME,
    READ,
    VERSIONS,
)
from delassus.model.reading.numbers import (
    check_direction,
    counted_numbers,
    floats,
    numbers,
)
from delassus.model.reading.origin import origin_of
from delassus.model.reading.unread import meant, refuse_unread

_log = logging.getLogger(__name__)

_OTHER_FORMATS = {
    "sdf": "; SDF is not read, as no Python package does: use the URDF or xacro that the model "
    "was made from, or its MJCF",
    "mujoco": "; this is MJCF: write Robot.from_mujoco(path)",
    "mujocoinclude": "; this is a part of an MJCF: write Robot.from_mujoco(path) with the whole",
}
"""Advice for documents of other formats, by root element."""
MOST_SHOWN = 40
"""Most characters of an attribute's value or a long name in a message."""


def checked(root: ElementTree.Element, locked: Collection[str] = ()) -> ElementTree.Element:
    """Return the document of a ``<robot>`` element that is read, once it is found sound.

    Parameters
    ----------
    locked : names and patterns of joints whose limits are ignored without a warning.

    Raises
    ------
    RobotError
        For another root element or version, a missing, repeated or unreadable part, a number that
        is not finite or sensible, an unknown type, or an unread part that would change the robot.
        Names the link, joint, coupling or loop.
    """
    namespace, brace, tag = root.tag.rpartition("}")
    if tag != "robot":
        hint = _OTHER_FORMATS.get(tag, "")
        raise RobotError(f"not a URDF: the root element is <{tag}>, expected <robot>{hint}")
    version = root.get("version", VERSIONS[0])
    if version not in VERSIONS:
        raise RobotError(unknown("version of URDF", version[:MOST_SHOWN], VERSIONS, "versions"))
    # A default namespace (Drake writes one) prefixes every tag; foreign tags keep theirs.
    prefix = namespace + brace
    refuse_unread(root, prefix)
    clean = ElementTree.Element("robot")
    names: dict[str, set[str]] = {tag: set() for tag in READ}
    # A coupling and a loop may not have the same name.
    names["loop"] = names["coupling"]
    checks: dict[str, Callable[[ElementTree.Element, str, str], ElementTree.Element]] = {
        "link": _link,
        "joint": partial(_joint, locked=locked),
        "coupling": _coupling,
        "loop": _loop,
    }
    for tag, check in checks.items():
        for element in root.findall(prefix + tag):
            name = _name_of(element, tag, names[tag])
            names[tag].add(name)
            clean.append(check(element, prefix, name))
    for path in ("transmission", f"ros2_control/{prefix}transmission"):
        for element in root.findall(prefix + path):
            # Without a name nothing refers to a transmission.
            if element.get("name"):
                in_ros2_control = path != "transmission"
                clean.append(_transmission(element, prefix, in_ros2_control))
    clean.set("name", _name_of(root, "robot", ()))
    return clean


# --- links and joints ---------------------------------------------------------------------------


def _link(element: ElementTree.Element, prefix: str, name: str) -> ElementTree.Element:
    what = f"link {name!r}"
    clean = ElementTree.Element("link", name=name)
    inertial = _only_child(element, prefix, "inertial", what)
    if inertial is None:
        return clean
    part = ElementTree.SubElement(clean, "inertial")
    _copy_origin(inertial, part, prefix, what)
    mass = _copy(inertial, part, prefix, "mass", what)
    if mass is not None:
        value = float(floats(mass.attrib["value"], 1, f"{what}: mass")[0])
        if value < 0:
            raise RobotError(f"{what}: mass must be >= 0 kg, got {value:g}")
    inertia = _copy(inertial, part, prefix, "inertia", what)
    if inertia is not None:
        values = [float(text) for text in inertia.attrib.values()]
        numbers(values, len(values), f"{what}: inertia")
    return clean


def _joint(
    element: ElementTree.Element, prefix: str, name: str, locked: Collection[str]
) -> ElementTree.Element:
    what = f"joint {name!r}"
    joint_type = element.get("type", "")
    if joint_type not in (FIXED, *JOINT_TYPES):
        raise RobotError(
            f"{what}: unknown joint type {joint_type[:MAX_NAME]!r}; "
            f"types: {', '.join((FIXED, *JOINT_TYPES))}"
        )
    clean = ElementTree.Element("joint", name=name, type=joint_type)
    _copy_origin(element, clean, prefix, what)
    for tag in ("parent", "child"):
        _copy(element, clean, prefix, tag, what)
    if joint_type not in (FIXED, "floating"):
        axis = _copy(element, clean, prefix, "axis", what)
        if axis is not None:
            check_direction(floats(axis.attrib["xyz"], 3, f"{what}: axis"), what)
    # On a fixed joint the rest means nothing (reduced robots keep such left-overs).
    if joint_type != FIXED:
        is_locked = any(fnmatch.fnmatch(name, pattern) for pattern in locked)
        _copy_limit(element, clean, prefix, what, is_locked)
        dynamics = _copy(element, clean, prefix, "dynamics", what)
        if dynamics is not None:
            for key, text in dynamics.attrib.items():
                floats(text, 1, f"{what}: {key}")
        _copy_mimic(element, clean, prefix, what)
    _copy_independent(element, clean, what)
    return clean


def _copy_limit(
    source: ElementTree.Element,
    target: ElementTree.Element,
    prefix: str,
    what: str,
    is_locked: bool,
) -> None:
    """Write the limits of a joint with all attributes: infinite where none is stated.

    A limit that states neither lower nor upper (only effort …) is none, nor is one of a joint type
    without limits.
    """
    limit = _only_child(source, prefix, "limit", what)
    if limit is None:
        return
    ends: dict[str, str] = {}
    if target.get("type") in ("revolute", "prismatic"):
        ends = _attributes(limit, "limit", what)
    lower, upper = (float(ends.get(end, "0" if ends else bound)) for end, bound in _UNLIMITED)
    if np.isnan((lower, upper)).any():
        raise RobotError(f"{what}: limits must be numbers, got {lower:g} and {upper:g}")
    if lower > upper:
        missing = [end for end, _ in _UNLIMITED if end not in ends]
        hint = f" ({missing[0]} is not given, which means 0)" if missing else ""
        _log.log(
            logging.DEBUG if is_locked else logging.WARNING,
            "%s: limits are ignored, as lower is above upper: %g and %g%s",
            what, lower, upper, hint,
        )  # fmt: skip
        lower, upper = -np.inf, np.inf
    ElementTree.SubElement(
        target,
        "limit",
        lower=repr(float(lower)),
        upper=repr(float(upper)),
        velocity=repr(_limit_of_motion(limit, "velocity")),
        effort=repr(_limit_of_motion(limit, "effort")),
    )


_UNLIMITED = (("lower", "-inf"), ("upper", "inf"))


def _limit_of_motion(limit: ElementTree.Element, name: str) -> float:
    """Return a velocity or effort limit; infinite for none, and for 0, as templates have it.

    G does not depend on the limit, so an unreadable one is ignored.
    """
    try:
        found = float(limit.get(name, ""))
    except ValueError:
        return np.inf
    return found if found > 0.0 else np.inf


def _copy_mimic(
    source: ElementTree.Element, target: ElementTree.Element, prefix: str, what: str
) -> None:
    element = _only_child(source, prefix, "mimic", what)
    if element is None:
        return
    values = {"multiplier": element.get("multiplier", "1"), "offset": element.get("offset", "0")}
    for key, text in values.items():
        floats(text, 1, f"{what}: mimic {key}")
    if float(values["multiplier"]) == 0.0:
        raise RobotError(
            f'{what}: <mimic multiplier="0">: the joint would not move; make it fixed'
        )
    joint = _required(element, "joint", f"{what}: mimic")
    ElementTree.SubElement(target, "mimic", {"joint": joint, **values})


def _copy_independent(source: ElementTree.Element, target: ElementTree.Element, what: str) -> None:
    """Write the statement of URDF+ whether the joint's position is independent."""
    known = ELEMENTS["joint"].texts
    for key in source.attrib:
        if meant(key, known) == "independent":
            raise RobotError(f"{what}: {key}=… is not read; did you mean independent=…?")
    stated = source.get("independent")
    # Published files have True and False as well, as Python writes them.
    if stated not in (None, "true", "false", "True", "False"):
        raise RobotError(
            f"{what}: independent must be 'true' or 'false', got {stated[:MOST_SHOWN]!r}"
        )
    if stated is not None:
        target.set("independent", stated.lower())


# --- couplings, loops and transmissions ---------------------------------------------------------


def _coupling(element: ElementTree.Element, prefix: str, name: str) -> ElementTree.Element:
    what = f"coupling {name!r}"
    _refuse_others(element, prefix, what)
    clean = ElementTree.Element("coupling", name=name)
    ratio = _child(element, prefix, "ratio", what)
    for end in ENDS:
        child = _child(element, prefix, end, what, ())
        ElementTree.SubElement(clean, end, link=_required(child, "link", what))
    text = _required(ratio, "value", what)
    floats(text, 1, f"{what}: ratio")
    ElementTree.SubElement(clean, "ratio", value=text)
    return clean


def _loop(element: ElementTree.Element, prefix: str, name: str) -> ElementTree.Element:
    what = f"loop {name!r}"
    _refuse_others(element, prefix, what)
    loop_type = element.get("type", "")
    if loop_type not in LOOP_TYPES:
        raise RobotError(f"{what}: {unknown('type', loop_type[:MAX_NAME], LOOP_TYPES)}")
    clean = ElementTree.Element("loop", name=name, type=loop_type)
    for end in ENDS:
        child = _child(element, prefix, end, what)
        part = ElementTree.SubElement(clean, end, link=_required(child, "link", what))
        _copy_origin(child, part, prefix, f"{what}: {end}")
    axis = _only_child(element, prefix, "axis", what)
    if axis is not None:
        _refuse_others(axis, prefix, what)
        text = _required(axis, "xyz", what)
        check_direction(floats(text, 3, f"{what}: axis"), what)
        ElementTree.SubElement(clean, "axis", xyz=text)
    return clean


def _transmission(
    element: ElementTree.Element, prefix: str, in_ros2_control: bool
) -> ElementTree.Element:
    """Copy a transmission unchecked: without the inertia of its rotors it has no effect."""
    kind = element.get("type", "")
    for tag in ("type", "plugin"):
        kind = element.findtext(prefix + tag, kind).strip()
    clean = ElementTree.Element(
        "transmission",
        name=element.attrib["name"],
        type=kind,
        ros2_control=str(in_ros2_control).lower(),
    )
    for tag in ("joint", "actuator"):
        for part in element.findall(prefix + tag):
            _copy_end(part, ElementTree.SubElement(clean, tag), prefix)
    _copy_end(element, ElementTree.SubElement(clean, "direct"), prefix)
    return clean


def _copy_end(source: ElementTree.Element, target: ElementTree.Element, prefix: str) -> None:
    """Copy name, role, reductions and offsets of a transmission's joint or actuator."""
    target.set("name", source.get("name", ""))
    role = source.findtext(f"{prefix}role", source.get("role", ""))
    target.set("role", role.strip())
    # ROS 1 writes mechanicalReduction, ROS 2 mechanical_reduction.
    for tag in ("mechanicalReduction", "mechanical_reduction", "offset"):
        for part in source.findall(prefix + tag):
            own = "offset" if tag == "offset" else "reduction"
            ElementTree.SubElement(target, own).text = part.text


def _child(
    element: ElementTree.Element,
    prefix: str,
    tag: str,
    what: str,
    children: Collection[str] | None = None,
) -> ElementTree.Element:
    """Return the child of a coupling or loop that must be there, with nothing else inside."""
    child = _only_child(element, prefix, tag, what)
    if child is None:
        raise RobotError(f"{what} has no <{tag}>")
    _refuse_others(child, prefix, what, children)
    return child


def _refuse_others(
    element: ElementTree.Element,
    prefix: str,
    what: str,
    children: Collection[str] | None = None,
) -> None:
    """Refuse unread attributes and children; those of other namespaces are dropped.

    Parameters
    ----------
    children : the tags that are read inside, those of the table by default.
    """
    tag = element.tag.removeprefix(prefix)
    place, known = f"{what}: <{tag}>", ELEMENTS[tag]
    for key in element.attrib:
        if "}" not in key and key not in known.attributes:
            raise RobotError(f"{place}: {unknown('attribute', key[:MAX_NAME], known.attributes)}")
    inside = known.children if children is None else children
    for child in element:
        namespace, brace, own = child.tag.rpartition("}")
        if namespace + brace == prefix and own not in inside:
            raise RobotError(f"{place}: {unknown('element', own[:MAX_NAME], inside)}")


# --- parts of elements --------------------------------------------------------------------------


def _name_of(element: ElementTree.Element, what: str, taken: Collection[str]) -> str:
    """Return the name of an element; refuse none, an endless one and a taken one."""
    name = element.get("name", "")
    if not name:
        raise RobotError(f"a <{what}> has no name")
    if len(name) > MAX_NAME:
        raise RobotError(
            f"{what} {name[:MOST_SHOWN]!r}…: names may have at most {MAX_NAME} characters, "
            f"this one has {len(name)}"
        )
    if name in taken:
        raise RobotError(f"{what} {name!r} appears twice; names must be unique")
    return name


def _only_child(
    element: ElementTree.Element, prefix: str, tag: str, what: str
) -> ElementTree.Element | None:
    """Return the child with this tag, or None; refuse several."""
    found = element.findall(prefix + tag)
    if len(found) > 1:
        raise RobotError(f"{what}: <{tag}> appears {len(found)} times; one is meant")
    return found[0] if found else None


def _copy(
    source: ElementTree.Element, target: ElementTree.Element, prefix: str, tag: str, what: str
) -> ElementTree.Element | None:
    """Copy child `tag` of an inertial or a joint, with the attributes that are read.

    Returns
    -------
    The copy, None without such a child.
    """
    child = _only_child(source, prefix, tag, what)
    if child is None:
        return None
    known = ELEMENTS[tag]
    if known.required and not child.get(known.required):
        raise RobotError(f"{what}: <{tag}> has no attribute {known.required!r}")
    return ElementTree.SubElement(target, tag, _attributes(child, tag, what))


def _copy_origin(
    source: ElementTree.Element, target: ElementTree.Element, prefix: str, what: str
) -> None:
    """Copy the ``<origin>`` of a link's inertial, of a joint or of an end of a loop."""
    origin = _only_child(source, prefix, "origin", what)
    if origin is not None:
        # An unread attribute might be another way to write the rotation.
        _refuse_others(origin, prefix, what)
        origin_of(source, what, prefix)
        ElementTree.SubElement(target, "origin", _attributes(origin, "origin", what))


def _attributes(element: ElementTree.Element, tag: str, what: str) -> dict[str, str]:
    """Return the attributes of an element that are read, with the right count of numbers."""
    known = ELEMENTS[tag]
    attributes = {key: element.attrib[key] for key in known.attributes if key in element.attrib}
    for key, count in known.numbers.items():
        if key in attributes:
            counted_numbers(attributes[key], count, f"{what}: <{tag} {key}=…>")
    return attributes


def _required(element: ElementTree.Element, key: str, what: str) -> str:
    """Return an attribute that must be there, without white space around it."""
    value = element.get(key, "").strip()
    if not value:
        tag = element.tag.rpartition("}")[2]
        raise RobotError(f"{what}: <{tag}> has no attribute {key!r}")
    return value
