"""Parts of a URDF that are not read: refused where they would change the robot, else dropped.

Refused by name are xacro and elements with undeclared prefixes, in elements that are read;
elements and attributes whose names are nearly those of read ones; couplings and loops that do not
stand directly under ``<robot>``. Xacro and undeclared prefixes inside of elements that are not
read (visual, collision, gazebo, …) cannot change the dynamics and only make a warning; so do calls
of undefined macros for sensors.
"""

from __future__ import annotations

import difflib
import logging
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from xml.etree import ElementTree

from delassus.errors import RobotError
from delassus.model.reading.elements import (
    CLOSURES,
    ELEMENTS,
    ENDS,
    READ,
    VERSIONS,
    ReadElement,
)
from delassus.model.reading.xml import XACRO

_WITH_OTHERS = ("link", "inertial", "joint")
"""Elements that may have any other children, unless these are nearly called as a read one."""
_SPELLED = ("mass", "inertia", "axis", "limit", "mimic", "dynamics")
"""Elements that may have any other attributes, unless these are nearly called as a read one."""
SIMILARITY = 0.8
"""Least similarity of misspelt names by difflib: refuses 'loops' and 'copling', not 'line'."""
SIMILARITY_INSIDE = 0.75
"""Least similarity inside of links and joints, where fewer names are read: refuses 'axes'."""
_EXPRESSION = re.compile(r"\$[{(]")
MOST_SHOWN = 60
MOST_LISTED = 5
"""Most left-overs in a warning."""

_EXPAND = "expand the file first with 'xacro robot.urdf.xacro > robot.urdf'"
_INCLUDE = f"{XACRO}include"
_DEFINITIONS = (_INCLUDE, *(XACRO + tag for tag in ("macro", "property", "arg")))
_DIRECTIVES = (*_DEFINITIONS, *(XACRO + tag for tag in ("if", "unless", "element", "attribute")))
"""Tags that the program xacro expands in any document."""
_USES = tuple(XACRO + tag for tag in ("call", "insert_block"))
"""Tags that xacro expands in documents with definitions."""

_log = logging.getLogger(__name__)


def refuse_unread(root: ElementTree.Element, prefix: str) -> None:
    """Refuse unread elements and attributes below `root` that would change the robot.

    Parameters
    ----------
    root : the ``<robot>`` element.
    prefix : the namespace of the document, as ElementTree writes it before tags.

    Raises
    ------
    RobotError
        Names the element and the link, joint, coupling or loop that it is in.
    """
    _refuse_left_overs(root, prefix)
    for element in root:
        _refuse_misspelt(element, prefix)
        _refuse_misspelt_parts(element, prefix, _described(element))
        _refuse_misplaced(element, prefix)


def meant(name: str, known: tuple[str, ...], alike: float = SIMILARITY) -> str | None:
    """Return the known name that resembles a misspelt one in any case, None without one."""
    if name in known:
        return None
    found = difflib.get_close_matches(name[:MOST_SHOWN].lower(), known, n=1, cutoff=alike)
    return found[0] if found else None


# --- left-overs ---------------------------------------------------------------------------------


def _refuse_left_overs(root: ElementTree.Element, prefix: str) -> None:
    """Refuse left-overs of xacro in elements that are read; warn of left-overs elsewhere."""
    xacro = _Xacro(root)
    dropped: Counter[str] = Counter()
    sensors: Counter[str] = Counter()
    _check_attributes(root, "", xacro)
    is_old = root.get("version", VERSIONS[0]) == VERSIONS[0]
    for element in root:
        where = _described(element)
        if _is_left_over(element):
            if element.tag not in xacro.undefined or "sensor" not in _local(element).lower():
                raise RobotError(_refusal(element, xacro))
            sensors[_shown(element)] += 1
            continue
        for part, is_read in _parts(element, prefix, element.tag in _tags(prefix, READ)):
            if is_read:
                _check_attributes(part, f"{where}: ", xacro)
            if is_read and is_old and "quat_xyzw" in part.attrib:
                raise RobotError(
                    f'{where}: <origin quat_xyzw=…> needs <robot version="1.1">: version 1.0, the '
                    "default, does not read it"
                )
            for child in filter(_is_left_over, part):
                if is_read:
                    raise RobotError(f"{where}: {_refusal(child, xacro)}")
                dropped[f"{_shown(child)} in {where}"] += 1
    for found, why in (
        (dropped, "no joint or inertia depends on it"),
        (sensors, "nothing defines this left-over of xacro, by its name a sensor"),
    ):
        if found:
            _log.warning("ignored, as %s: %s", why, _counted(found))


def _counted(found: Mapping[str, int]) -> str:
    """Return the first of what was found, with how often, for a warning."""
    first = [f"{text} ({n} times)" if n > 1 else text for text, n in found.items()][:MOST_LISTED]
    more = len(found) - MOST_LISTED
    return ", ".join([*first, f"and {more} more"] if more > 0 else first)


def _parts(
    element: ElementTree.Element, prefix: str, is_read: bool
) -> Iterator[tuple[ElementTree.Element, bool]]:
    """Yield an element and what is inside, but in left-overs, and whether each is read."""
    yield element, is_read
    known = _tags(prefix, _known(element, prefix).children)
    for child in element:
        if not _is_left_over(child):
            yield from _parts(child, prefix, is_read and child.tag in known)


def _known(element: ElementTree.Element, prefix: str) -> ReadElement:
    """Return the row of an element in the table of those that are read; an empty one else."""
    return ELEMENTS.get(element.tag.removeprefix(prefix), ReadElement())


def _tags(prefix: str, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(prefix + name for name in names)


def _is_left_over(element: ElementTree.Element) -> bool:
    """Whether an element is xacro, or has a prefix that nothing declares."""
    return element.tag.startswith(XACRO) or _is_undeclared(element.tag)


def _is_undeclared(name: str) -> bool:
    return ":" in name and not name.startswith("{")


class _Xacro:
    """The use of xacro in a document: what the program xacro would expand.

    Attributes
    ----------
    defines : whether the document defines or includes anything.
    undefined : tags that the program would refuse, as nothing defines them, in their order.
    """

    def __init__(self, root: ElementTree.Element) -> None:
        tags = dict.fromkeys(each.tag for each in root.iter() if each.tag.startswith(XACRO))
        macros = {f"{XACRO}{each.get('name')}" for each in root.iter(f"{XACRO}macro")}
        self.defines = bool(tags.keys() & {*_DEFINITIONS})
        known = {*_DIRECTIVES, *macros, *(_USES if self.defines else ())}
        # What is included may define anything.
        found = [] if _INCLUDE in tags else [tag for tag in tags if tag not in known]
        self.undefined = dict.fromkeys(found)


def _refusal(element: ElementTree.Element, xacro: _Xacro) -> str:
    """Return why a left-over is refused, and what helps."""
    shown = _shown(element)
    if _is_undeclared(element.tag):
        return f"{shown}: {_undeclared(element.tag, 'element')}"
    if xacro.undefined:
        return (
            f"{shown} is a left-over of xacro, which cannot expand it, as nothing defines "
            f"<{_written(next(iter(xacro.undefined)))}>; delete this element"
        )
    return f"{shown} is xacro: {_EXPAND}"


def _check_attributes(element: ElementTree.Element, where: str, xacro: _Xacro) -> None:
    """Refuse expressions of xacro, and attributes with prefixes that nothing declares."""
    for key, value in element.attrib.items():
        shown = f"{where}<{_written(element.tag)} {key[:MOST_SHOWN]}"
        if _is_undeclared(key):
            raise RobotError(f"{shown}=…>: {_undeclared(key, 'attribute')}")
        if _EXPRESSION.search(value):
            helps = xacro.defines and not xacro.undefined
            advice = _EXPAND if helps else "write its value, which nothing here defines"
            raise RobotError(f'{shown}="{value[:MOST_SHOWN]}"> is xacro: {advice}')


def _undeclared(name: str, what: str) -> str:
    prefix = name.rpartition(":")[0][:MOST_SHOWN]
    return (
        f"the XML declares no prefix {prefix!r}; delete this {what}, or declare the prefix in "
        f"<robot xmlns:{prefix}=…>"
    )


# --- names that are nearly read -----------------------------------------------------------------


def _refuse_misspelt(element: ElementTree.Element, prefix: str) -> None:
    namespace, brace, tag = element.tag.rpartition("}")
    intended = meant(tag, READ)
    if namespace + brace == prefix and intended is not None:
        raise RobotError(
            f"{_described(element)}: {_shown(element)} is not read; did you mean <{intended}>?"
        )


def _refuse_misspelt_parts(element: ElementTree.Element, prefix: str, where: str) -> None:
    tag = element.tag.removeprefix(prefix)
    for key in element.attrib if tag in _SPELLED else ():
        intended = meant(key, _known(element, prefix).attributes, SIMILARITY_INSIDE)
        if intended is not None:
            raise RobotError(
                f"{where}: <{tag} {key[:MOST_SHOWN]}=…> is not read; did you mean {intended}=…?"
            )
    for child in element if tag in _WITH_OTHERS else ():
        namespace, brace, own = child.tag.rpartition("}")
        if namespace + brace != prefix:
            continue
        intended = meant(own, ELEMENTS[tag].children, SIMILARITY_INSIDE)
        if intended is not None:
            raise RobotError(f"{where}: {_shown(child)} is not read; did you mean <{intended}>?")
        if own in _WITH_OTHERS or own in _SPELLED:
            _refuse_misspelt_parts(child, prefix, where)


# --- places -------------------------------------------------------------------------------------


def _has_ends(element: ElementTree.Element, prefix: str) -> bool:
    return any(element.find(prefix + end) is not None for end in ENDS)


def _refuse_misplaced(top: ElementTree.Element, prefix: str) -> None:
    for tag in CLOSURES:
        for element in top.iter(prefix + tag):
            # A <loop> without ends is something else: whether an animation is repeated.
            if element is not top and _has_ends(element, prefix):
                raise RobotError(
                    f"{_described(element)} stands in {_shown(top)}, where it is not read; put "
                    "it directly under <robot>"
                )


def _described(element: ElementTree.Element) -> str:
    name = element.get("name", "")
    return f"{_local(element)} {name[:MOST_SHOWN]!r}" if name else f"a {_shown(element)}"


def _shown(element: ElementTree.Element) -> str:
    return f"<{_written(element.tag)}>"


def _written(tag: str) -> str:
    """Return a tag as documents write it."""
    xacro = "xacro:" if tag.startswith(XACRO) else ""
    return xacro + tag.rpartition("}")[2][:MOST_SHOWN]


def _local(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2][:MOST_SHOWN]
