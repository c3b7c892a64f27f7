"""The node's parameters: declared with descriptors, read as plain values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from rclpy.node import Node
from rclpy.parameter import Parameter

from delassus import algorithms
from delassus.errors import ContactError, unknown
from delassus_ros.node.contact_parameters import CONTACT_PARAMETERS
from delassus_ros.node.parameters import (
    AUTOSTART,
    PARAMETERS,
    known_parameters,
)
from delassus_ros.ros.parameters import LISTS, declare, overrides_of, warn_of_unknown_overrides
from delassus_ros.ros.setting import RCLPY_PREFIXES, Setting


def declare_parameters(node: Node) -> dict[str, Any]:
    """Declare the parameters of a node.

    Overrides of unknown parameters get a warning; ROS would ignore a misspelt parameter silently.

    Returns
    -------
    Overrides of unknown parameters by name; they apply if their contact is listed later.

    Raises
    ------
    rclpy.exceptions.ParameterException
        If an override has the wrong type or is out of range.
    InputError
        If an override is below the lower bound of its parameter.
    """
    overrides = overrides_of(node)
    overrides.update({name: _declarable(parameter) for name, parameter in overrides.items()})
    for name, setting in PARAMETERS.items():
        declare(node, name, _with_choices(name, setting), name == AUTOSTART)
    declare_contacts(node)
    warn_of_unknown_overrides(
        node, known_parameters(node.get_parameter_or("contacts.names").value or ())
    )
    return {
        name: parameter.value
        for name, parameter in overrides.items()
        if not node.has_parameter(name) and not name.startswith(RCLPY_PREFIXES)
    }


def declare_contacts(node: Node) -> None:
    """Declare the parameters of the contacts in contacts.names that are not declared yet."""
    for contact in node.get_parameter_or("contacts.names").value or ():
        for key, setting in CONTACT_PARAMETERS.items():
            name = f"contacts.{contact}.{key}"
            if not node.has_parameter(name):
                declare(node, name, setting)


def refuse_misspelt_contacts(overrides: Iterable[str], contacts: Iterable[str]) -> None:
    """Refuse unknown parameters of listed contacts.

    A misspelt parameter would otherwise be ignored, and the contact would have other rows.

    Raises
    ------
    ContactError
        If a parameter is unknown; names it and the closest known one.
    """
    names = list(contacts)
    known = {f"contacts.{contact}.{key}" for contact in names for key in CONTACT_PARAMETERS}
    for name in sorted(set(overrides) - known):
        for contact in names:
            begin = f"contacts.{contact}."
            if name.startswith(begin):
                key = unknown("parameter", name.removeprefix(begin), CONTACT_PARAMETERS)
                raise ContactError(f"contact {contact!r}: {key}")


def suited(changes: Iterable[Parameter]) -> list[Parameter]:
    """Return parameters converted to their declared types where the conversion is exact.

    An integer becomes a floating-point number, an empty list becomes one of the declared type.
    """
    return [_suited(change) for change in changes]


def _suited(change: Parameter) -> Parameter:
    setting = PARAMETERS.get(change.name)
    if setting is None:
        return change
    if change.type_ == Parameter.Type.INTEGER and isinstance(setting.default, float):
        return Parameter(change.name, value=float(change.value))
    if setting.holds in LISTS and _is_empty_list(change):
        return Parameter(change.name, LISTS[setting.holds], [])
    return change


def _declarable(override: Parameter) -> Parameter:
    """Return an override in a form that rclpy can declare, or can refuse with its value."""
    # In YAML an empty list has no type, so that rclpy has no value for it.
    if override.value is None or _is_empty_list(override):
        # rclpy would ask the list for its type again; without a value it is empty, too.
        setting = PARAMETERS.get(override.name)
        typed = setting is not None and setting.holds in LISTS
        return Parameter(override.name, value=None if typed else [])
    return _suited(override)


def _is_empty_list(parameter: Parameter) -> bool:
    return parameter.type_.name.endswith("_ARRAY") and len(parameter.value) == 0


def values_of(node: Node) -> dict[str, Any]:
    """Return the values of all parameters that have one, by name."""
    names = node.list_parameters([], 0).names
    found = {name: node.get_parameter_or(name).value for name in names}
    return {name: value for name, value in found.items() if value is not None}


def _with_choices(name: str, setting: Setting) -> Setting:
    """Return a setting whose choices are the registered algorithms if it names an algorithm."""
    if name not in ("algorithm", "fallback"):
        return setting
    # Aliases of algorithms come last.
    nothing = ("nothing",) if name == "fallback" else ()
    choices = (*nothing, *algorithms.names(), *algorithms.aliases())
    return replace(setting, choices=choices)
