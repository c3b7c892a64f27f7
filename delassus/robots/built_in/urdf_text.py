"""Parts of the generated URDFs: links that are homogeneous boxes, frames, and joints."""

from __future__ import annotations

from xml.etree.ElementTree import Element, SubElement


def add_box(
    robot: Element, name: str, size: tuple[float, float, float], mass: float, height: float
) -> None:
    """Append a link that is a homogeneous box.

    Parameters
    ----------
    size, mass : sides [m] and mass [kg] of the box.
    height : height of its centre above the joint [m].
    """
    x, y, z = (side * side for side in size)
    link = SubElement(robot, "link", name=name)
    inertial = SubElement(link, "inertial")
    SubElement(inertial, "origin", xyz=f"0 0 {height}", rpy="0 0 0")
    SubElement(inertial, "mass", value=str(mass))
    moments = {"ixx": y + z, "iyy": x + z, "izz": x + y}
    inertia = {name: repr(mass / 12.0 * moment) for name, moment in moments.items()}
    SubElement(inertial, "inertia", inertia | dict.fromkeys(("ixy", "ixz", "iyz"), "0"))
    visual = SubElement(link, "visual")
    SubElement(visual, "origin", xyz=f"0 0 {height}", rpy="0 0 0")
    SubElement(SubElement(visual, "geometry"), "box", size=" ".join(map(str, size)))


def add_revolute(
    robot: Element, name: str, parent: str, child: str, place: str, axis: str,
    limits: dict[str, str],
) -> None:  # fmt: skip
    """Append a revolute joint at a place in the parent [m], with its limits as attributes."""
    joint = _joint(robot, name, "revolute", parent, child, place)
    SubElement(joint, "axis", xyz=axis)
    SubElement(joint, "limit", limits)


def add_frame(robot: Element, joint: str, parent: str, name: str, place: str) -> Element:
    """Append a link without mass that a joint fixes to a place in the parent [m]; return it."""
    _joint(robot, joint, "fixed", parent, name, place)
    return SubElement(robot, "link", name=name)


def _joint(robot: Element, name: str, kind: str, parent: str, child: str, place: str) -> Element:
    joint = SubElement(robot, "joint", name=name, type=kind)
    SubElement(joint, "parent", link=parent)
    SubElement(joint, "child", link=child)
    SubElement(joint, "origin", xyz=place, rpy="0 0 0")
    return joint
