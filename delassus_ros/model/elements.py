"""Parts of XML elements that every reader here needs: names, children, numbers, poses, axes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from xml.etree import ElementTree

import numpy as np
from urdf_parser_py.xml_reflection.core import ParseError

from delassus_ros.errors import RobotError, unknown
from delassus_ros.model.spatial import Array, Transform
from delassus_ros.model.written import numbers_in

MAX_NUMBER = 1e9
"""Largest length [m], angle [rad], mass [kg] or inertia [kg·m²] accepted: beyond it, sums
and products over a tree could overflow, and no robot comes near."""
MAX_NAME = 1000
"""Most characters of a name."""
ORIGIN = ("xyz", "rpy")
"""Attributes of an ``<origin>``."""


def name_of(element: ElementTree.Element, what: str, taken: Iterable[str]) -> str:
    """Return the name of an element; refuse none, an endless one and a taken one."""
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


def only_child(
    element: ElementTree.Element, prefix: str, tag: str, what: str
) -> ElementTree.Element | None:
    """Return the child with this tag, or None; refuse several."""
    found = element.findall(prefix + tag)
    if len(found) > 1:
        raise RobotError(f"{what}: <{tag}> appears {len(found)} times; one is meant")
    return found[0] if found else None


def check_parts(
    element: ElementTree.Element,
    prefix: str,
    what: str,
    attributes: tuple[str, ...],
    children: tuple[str, ...] = (),
) -> None:
    """Refuse attributes and children that are not read; those of other namespaces are dropped."""
    place = f"{what}: <{element.tag.removeprefix(prefix)}>"
    for key in element.attrib:
        if "}" not in key and key not in attributes:
            raise RobotError(f"{place}: {unknown('attribute', key[:MAX_NAME], attributes)}")
    for child in element:
        namespace, brace, tag = child.tag.rpartition("}")
        if namespace + brace == prefix and tag not in children:
            raise RobotError(f"{place}: {unknown('element', tag[:MAX_NAME], children)}")


def copy(
    source: ElementTree.Element,
    target: ElementTree.Element,
    prefix: str,
    tag: str,
    keys: tuple[str, ...],
    what: str,
    required: str | None = None,
) -> None:
    """Copy child `tag` of `source`, if there is one, with the attributes `keys` alone."""
    child = only_child(source, prefix, tag, what)
    if child is None:
        return
    if tag == "origin":
        # Newer URDF can give the rotation in other ways; dropping it would be wrong.
        for key in child.attrib.keys() - set(keys):
            raise RobotError(f"{what}: <origin {key}=…> is not supported; write xyz and rpy")
    if required is not None and not child.get(required):
        raise RobotError(f"{what}: <{tag}> has no attribute {required!r}")
    attributes = {key: child.attrib[key] for key in keys if key in child.attrib}
    for key, text in attributes.items():
        if key != "link":
            _numbers_in(text, f"{what}: <{tag} {key}=…>")
    ElementTree.SubElement(target, tag, attributes)


def parse(reader: Any, node: ElementTree.Element, what: str) -> Any:
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


def attribute(element: ElementTree.Element, key: str, what: str) -> str:
    """Return an attribute that must be there."""
    value = element.get(key, "").strip()
    if not value:
        tag = element.tag.rpartition("}")[2]
        raise RobotError(f"{what}: <{tag}> has no attribute {key!r}")
    return value


def floats(text: str, count: int, what: str) -> Array:
    """Return `count` numbers written in an attribute or in the text of an element."""
    return numbers(_numbers_in(text, what), count, what)


def numbers(values: Iterable[float], count: int, what: str) -> Array:
    """Return `count` finite numbers of sensible size."""
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


def _numbers_in(text: str, what: str) -> list[float]:
    try:
        return numbers_in(text)
    except ValueError as error:
        raise RobotError(f"{what}: {error}") from error


def pose_of(origin: Any, what: str) -> Transform:
    """Return the pose of a parsed ``<origin>``, or the identity."""
    if origin is None:
        return Transform()
    return Transform.from_xyz_rpy(
        numbers(origin.xyz, 3, f"{what}: origin xyz"),
        numbers(origin.rpy, 3, f"{what}: origin rpy"),
    )


def axis_of(xyz: Iterable[float] | None, what: str, written: str = "<axis xyz>") -> Array:
    """Return a unit vector; (1, 0, 0), URDF's default, if there is none.

    `written` is where its file has it, for the message.
    """
    axis = numbers((1.0, 0.0, 0.0) if xyz is None else xyz, 3, f"{what}: axis")
    length = float(np.linalg.norm(axis))
    if length < 1.0 / MAX_NUMBER:
        raise RobotError(f"{what}: the axis must not be zero; give its direction in {written}")
    return axis / length
