"""What of a URDF would change the robot if it were dropped as the rest is: refused by name.

Xacro that is not expanded, elements and attributes that are nearly called as those that are read,
and couplings and loops that stand elsewhere.
"""

from __future__ import annotations

import difflib
import re
from xml.etree import ElementTree

from delassus_ros.errors import RobotError

_READ = ("link", "joint", "coupling", "loop")
_CLOSING = ("coupling", "loop")
_ENDS = ("predecessor", "successor")
_SHAPES = ("visual", "collision")
_PARTS = {
    "link": ("inertial",),
    "inertial": ("origin", "mass", "inertia"),
    "joint": ("origin", "parent", "child", "axis", "limit", "mimic"),
}
"""Elements that are read, by what they stand in."""
_ATTRIBUTES = {
    "mass": ("value",),
    "inertia": ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"),
    "axis": ("xyz",),
    "limit": ("lower", "upper"),
    "mimic": ("joint", "multiplier", "offset"),
}
_ALIKE = 0.8
"""Similarity of names by difflib: of 'loops' and 'copling', not of 'line' and 'couple'."""
_ALIKE_INSIDE = 0.75
"""The same inside of links and joints, where fewer things are: of 'axes' and 'low', too."""
_EXPRESSION = re.compile(r"\$[{(]")
_EXPAND = "expand the file first with 'xacro robot.urdf.xacro > robot.urdf'"
_SHOWN = 60


def refuse_unread(root: ElementTree.Element, prefix: str) -> None:
    """Refuse what would change the robot below `root` if it were dropped.

    Parameters
    ----------
    root : the ``<robot>`` element.
    prefix : what its namespace puts before each tag.

    Raises
    ------
    RobotError
        Names the element and the link, joint, coupling or loop that it is in.
    """
    _check_expression(root, "")
    for element in root:
        _refuse_xacro(element, prefix)
        _refuse_misspelt(element, prefix)
        _refuse_misspelt_parts(element, prefix, _described(element))
        _refuse_misplaced(element, prefix)


def meant(name: str, known: tuple[str, ...], alike: float = _ALIKE) -> str | None:
    """Return the known name that a misspelt one is alike, whatever the case, if there is one."""
    if name in known:
        return None
    found = difflib.get_close_matches(name[:_SHOWN].lower(), known, n=1, cutoff=alike)
    return found[0] if found else None


def _refuse_xacro(top: ElementTree.Element, prefix: str) -> None:
    where = _described(top)
    for element in top.iter():
        if "xacro" in element.tag.partition("}")[0]:
            place = f"{where}: " if element is not top else ""
            raise RobotError(f"{place}<{_local(element)}> is xacro: {_EXPAND}")
    if top.tag in [prefix + tag for tag in _READ]:
        pending = [top]
        while pending:
            element = pending.pop()
            _check_expression(element, f"{where}: ")
            # Expressions in the names of meshes change no dynamics.
            pending += [each for each in element if _local(each) not in _SHAPES]


def _check_expression(element: ElementTree.Element, where: str) -> None:
    for key, value in element.attrib.items():
        if _EXPRESSION.search(value):
            raise RobotError(
                f'{where}<{_local(element)} {key}="{value[:_SHOWN]}"> is xacro: {_EXPAND}'
            )


def _refuse_misspelt(element: ElementTree.Element, prefix: str) -> None:
    namespace, brace, tag = element.tag.rpartition("}")
    intended = meant(tag, _READ)
    if namespace + brace == prefix and intended is not None:
        raise RobotError(
            f"{_described(element)}: <{_local(element)}> is not read; did you mean <{intended}>?"
        )


def _refuse_misspelt_parts(element: ElementTree.Element, prefix: str, where: str) -> None:
    tag = element.tag.removeprefix(prefix)
    for key in element.attrib:
        intended = meant(key, _ATTRIBUTES.get(tag, ()), _ALIKE_INSIDE)
        if intended is not None:
            raise RobotError(
                f"{where}: <{tag} {key[:_SHOWN]}=…> is not read; did you mean {intended}=…?"
            )
    for child in element if tag in _PARTS else ():
        namespace, brace, own = child.tag.rpartition("}")
        if namespace + brace != prefix:
            continue
        intended = meant(own, _PARTS[tag], _ALIKE_INSIDE)
        if intended is not None:
            raise RobotError(f"{where}: <{_local(child)}> is not read; did you mean <{intended}>?")
        if own in _PARTS or own in _ATTRIBUTES:
            _refuse_misspelt_parts(child, prefix, where)


def _refuse_misplaced(top: ElementTree.Element, prefix: str) -> None:
    for tag in _CLOSING:
        for element in top.iter(prefix + tag):
            # A <loop> without ends is something else: whether an animation is repeated.
            if element is not top and any(element.find(prefix + end) is not None for end in _ENDS):
                raise RobotError(
                    f"{_described(element)} stands in <{_local(top)}>, where it is not read; put "
                    "it directly under <robot>"
                )


def _described(element: ElementTree.Element) -> str:
    name = element.get("name", "")
    return f"{_local(element)} {name[:_SHOWN]!r}" if name else f"a <{_local(element)}>"


def _local(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2][:_SHOWN]
