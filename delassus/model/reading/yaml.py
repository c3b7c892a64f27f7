"""What a YAML file says about a robot's closures that its URDF cannot say, read without trust.

Plain data only, bounded, no aliases::

    loops:                            # frames are links of the URDF
      - {name: knee, frames: [rod_end, lever_pin], type: hinge, axis: [0, 0, 1]}
      - {frames: [toe_rod, heel], type: point}
    couplings:                        # the sum of factor x position, plus offset, is 0
      - {name: belt, joints: {motor: -1, hip: 2, knee: 2}, offset: 0.1}
    rotors:                           # <transmission>: rotor's inertia about its axis [kg m^2]
      knee_transmission: 1.0e-5
      ankle_differential: {left_motor: 1.0e-5, right_motor: 2.0e-5}
    joints:                           # true kind of a joint of the URDF
      rod_ball: spherical             # or universal_xy, universal_yz, ..., fixed
    independent: [motor, hip]         # independent coordinates; chosen for other clusters

Every part may be missing. Files with the keys ``closed_loop``, ``type``, ``name_mot``,
``joint_name`` and ``joint_type`` (of the collection "example parallel robots") are understood
as they are; their motors become independent as far as the loops allow.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from delassus.errors import RobotError, unknown
from delassus.model.constraints import Coupling, LoopKind
from delassus.model.reading.description import LinkLoop
from delassus.model.reading.numbers import check_direction, numbers
from delassus.model.reading.xml import read_regular_file
from delassus.model.spatial import Transform

MAX_BYTES = 256 * 2**10
"""Largest document accepted [bytes]; published files have 2 KiB."""
MAX_DEPTH = 10
"""Deepest nesting accepted; such files need 4."""


INT, _FLOAT = (f"tag:yaml.org,2002:{name}" for name in ("int", "float"))
_INTEGERS = re.compile(r"[-+]?[0-9]+$")
REAL = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$|[-+]?\.inf$|\.nan$")
"""How numbers are written."""
_TEXT = re.compile(r"\s*(\{|[A-Za-z_]+\s*:(\s|$))")
"""How YAML text in one line starts: no name of a file does."""


class StrictLoader(yaml.SafeLoader):
    """Reads numbers as YAML 1.2 does, and refuses keys that appear twice.

    YAML 1.1 makes 8 of 010 and 90 of 1:30, and text of 1e-5; of keys it would keep the last.
    """

    yaml_implicit_resolvers = {
        first: [each for each in found if each[0] not in (INT, _FLOAT)]
        for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Return a mapping as YAML has it, each key once."""
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        seen: set[str] = set()
        for key in keys:
            if key in seen:
                raise RobotError(f"line {node.start_mark.line + 1}: key {key!r:.60} appears twice")
            seen.add(key)
        mapping: dict[Any, Any] = super().construct_mapping(node, deep)
        return mapping


StrictLoader.add_implicit_resolver(INT, _INTEGERS, list("-+0123456789"))
StrictLoader.add_implicit_resolver(_FLOAT, REAL, list("-+.0123456789"))
StrictLoader.add_constructor(INT, lambda loader, node: int(loader.construct_scalar(node)))


def load_yaml(
    source: str | Path | Mapping[str, Any],
    what: str,
    loader: type[StrictLoader] = StrictLoader,
    most: int = MAX_BYTES,
) -> Any:
    """Return the plain data of a YAML document.

    Parameters
    ----------
    source : a path, YAML text (a string with a line break or that starts with ``{`` or with
        ``key:`` and white space), or data, which is returned as it is.
    what : what is read, for messages.
    loader : how scalars are read.
    most : largest document accepted [bytes].

    Raises
    ------
    RobotError
        If the file cannot be read, is too large or deep, is not YAML, or has aliases, tags of
        objects, or a key twice.
    """
    if isinstance(source, Mapping):
        return source
    if not isinstance(source, (str, Path)):
        raise RobotError(
            f"{what} is given as a path, text or mapping, not {type(source).__name__}"
        )
    text: str | bytes
    if isinstance(source, str) and is_text(source):
        text = source
    else:
        what = f"{what} {str(source)!r:.200}"
        text = _read(source, what, most)
    if len(text) > most:
        raise RobotError(f"{what} is larger than {most} bytes")
    try:
        _check_events(text)
        return yaml.load(text, Loader=loader)
    except RobotError as error:
        raise RobotError(f"{what}: {error}") from error
    except (yaml.YAMLError, ValueError) as error:
        # ValueError: dates that do not exist and the like.
        raise RobotError(f"{what} is not YAML: {yaml_fault(error)}") from error


def is_text(source: str | Path) -> bool:
    """Return whether a source is YAML text and not a path."""
    return isinstance(source, str) and ("\n" in source or bool(_TEXT.match(source)))


def yaml_fault(error: yaml.YAMLError | ValueError) -> str:
    """Return what is wrong in a YAML document and where, without the line, which may be secret."""
    if not isinstance(error, yaml.MarkedYAMLError):
        return " ".join(str(error).split())
    mark = error.problem_mark or error.context_mark
    where = f"line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    return ", ".join(part for part in (error.context, error.problem, where) if part)


def _read(source: str | Path, what: str, most: int) -> bytes:
    """Return the content of a file, or one byte more than `most` of a larger one."""
    try:
        return read_regular_file(source, most)
    except OSError as error:
        # A string may have been meant as text.
        hint = "; give the path of a file, YAML text or a mapping" * isinstance(source, str)
        raise RobotError(f"{what} cannot be read: {error.strerror or error}{hint}") from error
    except ValueError as error:
        raise RobotError(f"{what} is neither a path nor YAML: {error}") from error


def _check_events(text: str | bytes) -> None:
    """Refuse what a few bytes can make huge."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent):
            raise RobotError(f"it has the alias *{event.anchor}; write it out")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            raise RobotError(f"it is nested more than {MAX_DEPTH} deep")


LOOP_TYPES = {
    **{kind.label: kind for kind in LoopKind},
    "spherical": LoopKind.POINT,
    "universal": LoopKind.POINT,
}
_WITH_AXIS = (LoopKind.HINGE, LoopKind.SLIDER, LoopKind.PLANAR)
JOINT_TYPES = {
    "fixed": "",
    "spherical": "XYZ",
    **{f"universal_{a}{b}".lower(): a + b for a in "XYZ" for b in "XYZ" if a != b},
}
"""Axes of the chain of revolute joints that a joint becomes, in the joint's frame; none: fixed."""
_KINDS: tuple[tuple[type, str], ...] = (
    (str, "text"),
    (bool, "a truth value"),
    (int, "a number"),
    (float, "a number"),
    (list, "a list"),
    (tuple, "a list"),
    (Mapping, "a mapping"),
)
"""Words for what YAML holds, the narrower first."""
_PUBLISHED = {"closed_loop", "type", "name_mot", "joint_name", "joint_type"}
_PUBLISHED_LOOPS = {"6d": "weld", "3d": "point"}


@dataclass(frozen=True, eq=False)
class SideFile:
    """Checked content; names of links and joints are not looked up yet.

    Attributes
    ----------
    loops, couplings : in the order of the file.
    rotors : name of a transmission, and the inertia of its rotors [kg·m²], of each alike or by
        name of the actuator.
    chains : name of a joint, and the axes of :data:`JOINT_TYPES`.
    independent : names of joints.
    motors : names of joints that are rather independent than others.
    """

    loops: tuple[LinkLoop, ...] = ()
    couplings: tuple[Coupling, ...] = ()
    rotors: Mapping[str, float | Mapping[str, float]] = field(default_factory=dict)
    chains: Mapping[str, str] = field(default_factory=dict)
    independent: tuple[str, ...] = ()
    motors: tuple[str, ...] = ()


def read_side_file(source: str | Path | Mapping[str, Any]) -> SideFile:
    """Read the closures of a robot.

    Parameters
    ----------
    source : path of a YAML file, YAML text (a string with a line break or that starts with
        ``{`` or ``key:``), or what such text contains.

    Raises
    ------
    RobotError
        If the file cannot be read, is not YAML, is larger or deeper than any such file needs,
        or has an unknown key or a wrong value; the message says where.
    """
    what = "the loops file"
    if not isinstance(source, Mapping) and not is_text(source):
        what += f" {str(source)!r:.200}"
    content = _mapping(load_yaml(source, "the loops file"), what)
    try:
        return _side_file(content)
    except RobotError as error:
        raise RobotError(f"{what}: {error}") from error


def _side_file(content: Mapping[str, Any]) -> SideFile:
    motors: tuple[str, ...] = ()
    if content and _PUBLISHED.issuperset(content):
        motors = _names(content.get("name_mot", []), "name_mot")
        content = _from_published(content)
    _known(content, ("loops", "couplings", "rotors", "joints", "independent"))
    rotors = _mapping(content.get("rotors", {}), "rotors")
    joints = _mapping(content.get("joints", {}), "joints")
    return SideFile(
        tuple(_loop(each, i) for i, each in enumerate(_list(content, "loops"))),
        tuple(_coupling(each, i) for i, each in enumerate(_list(content, "couplings"))),
        {name: _rotor(value, f"rotor of transmission {name!r}") for name, value in rotors.items()},
        {name: _chain(value, f"joint {name!r}") for name, value in joints.items()},
        _names(content.get("independent", []), "independent"),
        motors,
    )


def _loop(value: Any, index: int) -> LinkLoop:
    entry = _mapping(value, f"loops[{index}]")
    _known(entry, ("name", "frames", "type", "axis"), f"loops[{index}]")
    frames = _names(entry.get("frames"), f"loops[{index}]: frames")
    if len(frames) != 2:
        raise RobotError(f"loops[{index}]: frames must be two links, got {len(frames)}")
    name = _name(entry.get("name", ":".join(frames)), f"loops[{index}]: name")
    what = f"loop {name!r}"
    loop_type = _name(entry.get("type"), f"{what}: type")
    if loop_type not in LOOP_TYPES:
        raise RobotError(f"{what}: {unknown('type', loop_type, LOOP_TYPES)}")
    kind = LOOP_TYPES[loop_type]
    if "axis" in entry and kind not in _WITH_AXIS:
        raise RobotError(f"{what}: a loop of type {loop_type!r} has no axis")
    # Without a direction these kinds mean nothing; URDF's default would rarely be right.
    if "axis" not in entry and kind in _WITH_AXIS:
        raise RobotError(f"{what}: a loop of type {loop_type!r} needs an axis: [x, y, z]")
    axis = numbers(_numbers(entry.get("axis", [0, 0, 1]), f"{what}: axis"), 3, f"{what}: axis")
    axis = axis / check_direction(axis, what, "axis: [x, y, z]")
    return LinkLoop(name, kind, *frames, Transform(), Transform(), axis)


def _coupling(value: Any, index: int) -> Coupling:
    entry = _mapping(value, f"couplings[{index}]")
    _known(entry, ("name", "joints", "offset"), f"couplings[{index}]")
    name = _name(entry.get("name"), f"couplings[{index}]: name")
    what = f"coupling {name!r}"
    joints = _mapping(entry.get("joints"), f"{what}: joints")
    ratios = tuple(
        (joint, _number(ratio, f"{what}: {joint!r}")) for joint, ratio in joints.items()
    )
    return Coupling(name, ratios, _number(entry.get("offset", 0.0), f"{what}: offset"))


def _rotor(value: Any, what: str) -> float | Mapping[str, float]:
    if isinstance(value, Mapping):
        each = _mapping(value, what)
        return {name: _inertia(own, f"{what}: actuator {name!r}") for name, own in each.items()}
    return _inertia(value, what)


def _inertia(value: Any, what: str) -> float:
    inertia = _number(value, what)
    if not inertia > 0.0:
        raise RobotError(f"{what}: the inertia must be > 0 kg m^2, got {inertia:g}")
    return inertia


def _chain(value: Any, what: str) -> str:
    joint_type = _name(value, f"{what}: type")
    if joint_type not in JOINT_TYPES:
        raise RobotError(f"{what}: {unknown('type', joint_type, JOINT_TYPES)}")
    return JOINT_TYPES[joint_type]


def _from_published(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the content in this module's own form."""
    pairs = _list(content, "closed_loop")
    types = _strings(content.get("type", ["6d"] * len(pairs)), "type")
    names = _names(content.get("joint_name", []), "joint_name")
    joint_types = _strings(content.get("joint_type", []), "joint_type")
    for what, first, other, second in (
        ("closed_loop", pairs, "type", types),
        ("joint_name", names, "joint_type", joint_types),
    ):
        if len(first) != len(second):
            raise RobotError(
                f"{what} has {len(first)} entries, {other} has {len(second)}; they belong together"
            )
    for loop_type in types:
        if loop_type.lower() not in _PUBLISHED_LOOPS:
            raise RobotError(unknown("type", loop_type, _PUBLISHED_LOOPS))
    return {
        "loops": [
            {"frames": pair, "type": _PUBLISHED_LOOPS[loop_type.lower()]}
            for pair, loop_type in zip(pairs, types, strict=True)
        ],
        "joints": {
            name: joint_type.lower().replace("ujoint", "universal")
            for name, joint_type in zip(names, joint_types, strict=True)
        },
    }


def _mapping(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise RobotError(f"{what} must be a mapping, got {_shown(value)}")
    for key in value:
        _name(key, f"{what}: a key")
    return value


def _known(entry: Mapping[str, Any], keys: tuple[str, ...], what: str = "") -> None:
    where = what and f"{what}: "
    for key in entry:
        if key not in keys:
            raise RobotError(f"{where}{unknown('key', key, keys)}")


def _list(content: Mapping[str, Any], key: str) -> list[Any]:
    value = content.get(key, [])
    if not isinstance(value, (list, tuple)):
        raise RobotError(f"{key} must be a list, got {_shown(value)}")
    return list(value)


def _strings(value: Any, what: str) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)):
        raise RobotError(f"{what} must be a list of names, got {_shown(value)}")
    return tuple(_name(each, what) for each in value)


def _names(value: Any, what: str) -> tuple[str, ...]:
    names = _strings(value, what)
    for i, name in enumerate(names):
        if name in names[:i]:
            raise RobotError(f"{what}: {name!r} appears twice")
    return names


def _name(value: Any, what: str) -> str:
    if not isinstance(value, str) or not value:
        raise RobotError(f"{what} must be text, got {_shown(value)}")
    return value


def _number(value: Any, what: str) -> float:
    # Other readers of YAML take 1e-5, without a dot, for text.
    written = isinstance(value, str) and REAL.match(value)
    if isinstance(value, bool) or not (written or isinstance(value, (int, float))):
        raise RobotError(f"{what} must be a number, got {_shown(value)}")
    try:
        number = float(value)
    except (ValueError, OverflowError) as error:
        raise RobotError(f"{what} must be a number, got {_shown(value)}") from error
    return float(numbers([number], 1, what)[0])


def _numbers(value: Any, what: str) -> list[float]:
    if not isinstance(value, (list, tuple)):
        raise RobotError(f"{what} must be a list of numbers, got {_shown(value)}")
    return [_number(each, what) for each in value]


def _shown(value: Any) -> str:
    """Return what a value is, not the value: whoever reads the message may not read the file."""
    if value is None:
        return "nothing"
    return next((word for kind, word in _KINDS if isinstance(value, kind)), type(value).__name__)
