"""Paths of fields in ROS messages of any type: checked against the type, read from messages.

Knows no ROS: a message type is a Python class with ``get_fields_and_field_types()``, as rosidl
generates it.
"""

from __future__ import annotations

import importlib
import math
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from delassus.errors import InputError, unknown

_TYPE = re.compile(r"(?P<package>\w+)/(?:msg/)?(?P<name>\w+)$")
_SEQUENCE = re.compile(r"sequence<(?P<element>[\w/]+)(?:, \d+)?>$")
_ARRAY = re.compile(r"(?P<element>[\w/]+)\[(?P<size>\d+)\]$")
WHOLE = frozenset(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
NUMBERS = WHOLE | {"float", "double", "long double"}
TEXTS = frozenset({"string", "wstring"})
"""Types of values as rosidl names them."""
_EMPTY: Mapping[str, Callable[[], Any]] = {
    "boolean": bool, "float": float, "double": float, "long double": float, "string": str,
    "wstring": str, "octet": lambda: b"\0",
}  # fmt: skip
"""Make the value of an entry that nothing is written to, by type; other types are integers."""
_PATH = re.compile(r"\w+(\[\d*\])?(\.\w+(\[\d*\])?)*$")


def message_type(name: str, source: str = "") -> Any:
    """Return the class of a message type.

    Parameters
    ----------
    name : such as ``sensor_msgs/msg/JointState``.
    source : where the package comes from, for the error.

    Raises
    ------
    InputError
        If the name is no name of a type, its package is not installed, or the package has no such
        message.
    """
    found = _TYPE.match(name)
    if found is None:
        raise InputError(
            f"message type {name!r:.100} is no type; expected e.g. 'sensor_msgs/msg/JointState'"
        )
    package = found["package"]
    try:
        module = importlib.import_module(f"{package}.msg")
    except ModuleNotFoundError as error:
        if error.name not in (package, f"{package}.msg"):
            raise
        advice = f"; it comes from {source}" if source else ""
        raise InputError(
            f"message type {name!r}: the message package {package!r} is not installed for "
            f"{sys.executable}{advice}; build it with colcon and source its setup.bash"
        ) from error
    if not hasattr(module, found["name"]):
        known = [each for each in dir(module) if each[0].isupper()]
        raise InputError(f"package {package!r}: {unknown('message', found['name'], known)}")
    return getattr(module, found["name"])


@dataclass(frozen=True)
class Field:
    """A field that a path leads to.

    Attributes
    ----------
    path : such as ``motor_state[].q``; ``[]`` stands for each entry of an array.
    kind : type of the values as rosidl names it: ``float``, ``geometry_msgs/Pose``.
    many : whether the field has a value for each entry of an array.
    read : returns the value of a message, or the list of values.
    write : writes the value to a message, or the list of values; arrays of variable size grow to
        the number of values. Raises ValueError if an array of fixed size has fewer entries, or a
        number is out of the range of its type.
    """

    path: str
    kind: str
    many: bool
    is_fixed: bool
    read: Callable[[Any], Any]
    write: Callable[[Any, Any], None]


def field_of(message: Any, path: str, what: str) -> Field:
    """Return the field of a message type that a path leads to.

    Parameters
    ----------
    message : class of the message.
    path : names of fields separated by dots; ``[]`` stands for each entry of an array, ``[3]`` for
        one. An array of plain numbers at the end needs no ``[]``.
    what : name of the parameter, for errors.

    Raises
    ------
    InputError
        If a field is unknown, an index stands at a field that is no array, or an array of messages
        has none; names the parameter, the field and the existing fields.
    """
    if not _PATH.match(path):
        raise InputError(
            f"{what} is {path!r:.100}; expected names of fields, e.g. 'motor_state[].q'"
        )
    kind, many = message, False
    steps: list[Callable[[Any], Any]] = []
    places: list[_Place] = []
    shown = ""
    type_name = ""
    for part in path.split("."):
        name, bracket, index = part.partition("[")
        index = index.rstrip("]")
        fields: Mapping[str, str] = getattr(kind, "get_fields_and_field_types", dict)()
        if name not in fields:
            where = shown or f"type {message.__name__}"
            raise InputError(f"{what}: {where}: {unknown('field', name, fields)}")
        shown = f"{shown}.{name}" if shown else name
        type_name = fields[name]
        fixed = _ARRAY.match(type_name)
        array = _SEQUENCE.match(type_name) or fixed
        if bracket and array is None:
            raise InputError(f"{what}: {shown} is a {type_name}, no array")
        is_last = part == path.rsplit(".", 1)[-1] and shown.count(".") == path.count(".")
        if array is not None:
            type_name = array["element"]
            if not bracket and not is_last:
                raise InputError(f"{what}: {shown} is an array; write {shown}[]")
        steps.append(attrgetter(name))
        if index:
            if fixed is not None and int(index) >= int(fixed["size"]):
                raise InputError(f"{what}: {shown} has {fixed['size']} entries, no [{index}]")
            steps.append(_entry(int(index)))
        elif array is not None:
            if many:
                raise InputError(f"{what}: {path} has two arrays; give an index to one of them")
            many = True
            steps.append(list)
        if many and steps[-1] is not list:
            steps[-1] = _each(steps[-1])
        made = message_type(type_name) if "/" in type_name else _EMPTY.get(type_name, int)
        is_whole = array is not None and not index
        number = int(index) if index else None
        places.append(_Place(name, number, is_whole, fixed is not None, made))
        if "/" in type_name and not is_last:
            kind = message_type(type_name)
        elif not is_last:
            kind = None
    is_fixed = any(place.is_whole and place.is_fixed for place in places)

    def write(message: Any, value: Any) -> None:
        _check_range(path, type_name, value if many else [value])
        _write(tuple(places), message, value)

    return Field(path, type_name, many, is_fixed, _chained(steps), write)


_LARGEST_SINGLE = 2.0**128 * (1.0 - 2.0**-24)


def _check_range(path: str, type_name: str, values: Iterable[Any]) -> None:
    """Raise ValueError for a finite number that a value of this type has no room for."""
    if type_name == "float":
        low, high = -_LARGEST_SINGLE, _LARGEST_SINGLE
    elif type_name in WHOLE:
        bits = int(type_name.partition("int")[2])
        low = 0 if type_name[0] == "u" else -(2 ** (bits - 1))
        high = low + 2**bits - 1
    else:
        return
    wrong = next((v for v in values if math.isfinite(v) and not low <= v <= high), None)
    if wrong is not None:
        raise ValueError(f"{path} has no room for {wrong:g}: it is of type {type_name}")


@dataclass(frozen=True)
class _Place:
    """A part of a path.

    Attributes
    ----------
    index : index of the entry of an array; None for the whole field.
    is_whole : whether the field is an array of which each entry is meant.
    """

    name: str
    index: int | None
    is_whole: bool
    is_fixed: bool
    make: Callable[[], Any]


def _write(places: tuple[_Place, ...], message: Any, value: Any) -> None:
    """Write a value, or the values of an array, to the field at the end of a path."""
    place, rest = places[0], places[1:]
    if place.index is not None:
        entries = _sized(message, place, place.index + 1)
        if rest:
            _write(rest, entries[place.index], value)
        else:
            entries[place.index] = value
    elif place.is_whole:
        entries = _sized(message, place, len(value))
        for k, part in enumerate(value):
            if rest:
                _write(rest, entries[k], part)
            else:
                entries[k] = part
    elif rest:
        _write(rest, getattr(message, place.name), value)
    else:
        setattr(message, place.name, value)


def _sized(message: Any, place: _Place, size: int) -> Any:
    """Return the entries of an array, made so many if it has fewer."""
    entries = getattr(message, place.name)
    if len(entries) < size:
        if place.is_fixed:
            raise ValueError(f"{place.name} has {len(entries)} entries, fewer than {size}")
        entries = [*entries, *(place.make() for _ in range(size - len(entries)))]
        setattr(message, place.name, entries)
        entries = getattr(message, place.name)
    return entries


def _entry(index: int) -> Callable[[Any], Any]:
    return lambda values: values[index]


def _each(step: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda values: [step(value) for value in values]


def _chained(steps: list[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    def read(message: Any) -> Any:
        for step in steps:
            message = step(message)
        return message

    return read
