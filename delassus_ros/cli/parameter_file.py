"""The parameter file of the node, read without ROS."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from delassus_ros.errors import InputError, RobotError
from delassus_ros.model.safe_yaml import INT, StrictLoader, load_yaml
from delassus_ros.node.parameter_table import misspelt
from delassus_ros.node.settings import CONTACT_DEFAULTS, DEFAULTS, Settings

_SECTION = "ros__parameters"


class _RosLoader(StrictLoader):
    """Reads whole numbers as ROS does, which is as C does: 010 is 8, and 0x10 is 16."""


def _whole(loader: _RosLoader, node: yaml.ScalarNode) -> int | float:
    text = str(loader.construct_scalar(node)).lower()
    digits = text.lstrip("+-")
    base = 16 if digits.startswith("0x") else 8 if digits.startswith("0") else 10
    try:
        whole = int(text, base)
    except ValueError:
        return float(text)  # 09, which is a fraction where 07 is not
    return whole if -(2**63) <= whole < 2**63 else float(text)


_RosLoader.add_implicit_resolver(INT, re.compile(r"[-+]?0[xX][0-9a-fA-F]+$"), list("-+0"))
_RosLoader.add_constructor(INT, _whole)


def settings_of(path: str) -> Settings:
    """Return the settings of a file like those in ``config/``.

    Raises
    ------
    InputError
        If the file cannot be read, is not YAML of this form, has a key twice, a value has a
        wrong type, or the node has no such parameter; the node itself only warns of that.
    DelassusError
        For what :meth:`Settings.from_parameters` refuses.
    """
    try:
        content = load_yaml(Path(path), "parameter file", _RosLoader)
    except RobotError as error:  # the reader's, whatever it reads
        raise InputError(str(error)) from error
    parameters = _flat(_section(path, content))
    values: dict[str, Any] = {}
    for name, value in parameters:
        if name in values:  # nested and with dots
            raise InputError(f"parameter file {path!r}: {name!r} appears twice")
        values[name] = _typed(path, name, value)
    contacts = values.get("contacts.names")
    complaints = misspelt(values, contacts) if contacts else ()
    if complaints:
        raise InputError(f"parameter file {path!r}: {complaints[0]}")
    return Settings.from_parameters(values)


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
    if isinstance(default, str) and not isinstance(value, str):
        expected = "text"
    elif isinstance(default, float):
        if _is_number(value):
            return float(value)
        expected = "a number"
    elif isinstance(default, tuple) and name.endswith(".names"):
        if isinstance(value, list) and all(isinstance(entry, str) for entry in value):
            return value
        expected = "a list of names"
    elif isinstance(default, tuple):
        if isinstance(value, list) and all(map(_is_number, value)):
            return [float(entry) for entry in value]
        expected = "a list of numbers"
    else:
        return value
    raise InputError(f"parameter file {path!r}: {name!r} is {value!r:.60}, expected {expected}")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
