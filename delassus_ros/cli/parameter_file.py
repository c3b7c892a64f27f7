"""The parameter file of the node, read without ROS."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from delassus_ros.errors import InputError
from delassus_ros.node.parameter_table import misspelt
from delassus_ros.node.settings import CONTACT_DEFAULTS, DEFAULTS, Settings

_MOST_BYTES = 1_000_000
_DEEPEST = 20
_SECTION = "ros__parameters"


def settings_of(path: str) -> Settings:
    """Return the settings of a file like those in ``config/``.

    Raises
    ------
    InputError
        If the file cannot be read, is not YAML of this form, a value has a wrong type, or the
        node has no such parameter; the node itself only warns of that.
    DelassusError
        For what :meth:`Settings.from_parameters` refuses.
    """
    parameters = _flat(_section(path, _content(path)))
    values = {name: _typed(path, name, value) for name, value in parameters}
    contacts = values.get("contacts.names")
    complaints = misspelt(values, contacts) if contacts else ()
    if complaints:
        raise InputError(f"parameter file {path!r}: {complaints[0]}")
    return Settings.from_parameters(values)


def _content(path: str) -> Any:
    try:
        with Path(path).open("rb") as file:
            text = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise InputError(f"parameter file {path!r} cannot be read: {error.strerror}") from error
    if len(text) > _MOST_BYTES:
        raise InputError(f"parameter file {path!r} is larger than {_MOST_BYTES} bytes")
    try:
        _check_events(path, text)
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError) as error:
        # ValueError: dates that do not exist and the like.
        said = " ".join(str(error).split())
        raise InputError(f"parameter file {path!r} is not YAML: {said}") from error


def _check_events(path: str, text: bytes) -> None:
    """Refuse what a few bytes can make huge; ROS refuses aliases, too."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent):
            raise InputError(
                f"parameter file {path!r} has the alias *{event.anchor}; write it out"
            )
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _DEEPEST:
            raise InputError(f"parameter file {path!r} is nested more than {_DEEPEST} deep")


def _section(path: str, content: Any) -> Mapping[Any, Any]:
    """Return the parameters of the one node in the file."""
    found = dict(_sections("", content))
    if len(found) != 1:
        names = ", ".join(found) or "none"
        raise InputError(
            f"parameter file {path!r} must have the parameters of one node, as in "
            f"'/**: {{{_SECTION}: {{…}}}}'; nodes: {names}"
        )
    (parameters,) = found.values()
    if not isinstance(parameters, Mapping):
        raise InputError(f"parameter file {path!r}: {_SECTION} holds no parameters")
    return parameters


def _sections(node: str, content: Any) -> list[tuple[str, Any]]:
    """Return every node with its parameters; namespaces nest."""
    if not isinstance(content, Mapping):
        return []
    if _SECTION in content:
        return [(node, content[_SECTION])]
    return [
        section
        for name, inner in content.items()
        for section in _sections(f"{node}/{name}" if node else str(name), inner)
    ]


def _flat(values: Mapping[Any, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Return parameters by full name, with dots for the nesting."""
    flat: list[tuple[str, Any]] = []
    for name, value in values.items():
        full = f"{prefix}{name}"
        flat += _flat(value, f"{full}.") if isinstance(value, Mapping) else [(full, value)]
    return flat


def _typed(path: str, name: str, value: Any) -> Any:
    """Return a value of the type that ROS would give to the node for this parameter."""
    default = DEFAULTS.get(name)
    if default is None and name.startswith("contacts."):
        default = CONTACT_DEFAULTS.get(name.rpartition(".")[2])
    expected = ""
    if isinstance(default, str):
        expected = "" if isinstance(value, str) else "text"
    elif isinstance(default, float):
        expected = "a number"
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            return _number(value)
    elif isinstance(default, tuple) and name.endswith(".names"):
        names = isinstance(value, list) and all(isinstance(entry, str) for entry in value)
        expected = "" if names else "a list of names"
    elif isinstance(default, tuple):
        expected = "a list of numbers"
        if isinstance(value, list):
            with contextlib.suppress(TypeError, ValueError, OverflowError):
                return [_number(entry) for entry in value]
    if expected:
        raise InputError(
            f"parameter file {path!r}: {name!r} is {value!r:.60}, expected {expected}"
        )
    return value


def _number(value: Any) -> float:
    """Return a number; also of text, as 1e-3 without a dot is text to YAML 1.1 but not to ROS."""
    if isinstance(value, bool):
        raise TypeError("a truth value is no number")
    return float(value)
