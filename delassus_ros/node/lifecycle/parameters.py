"""The node's parameters: declared with descriptors, read as plain values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor
from rclpy.exceptions import InvalidParameterTypeException
from rclpy.node import Node
from rclpy.parameter import Parameter

from delassus_ros import algorithms
from delassus_ros.errors import ContactError, InputError, unknown
from delassus_ros.node.settings import (
    AUTOSTART,
    CONTACT_PARAMETERS,
    PARAMETERS,
    RCLPY_PREFIXES,
    Setting,
    misspelt,
)
from delassus_ros.node.system.overrides import overrides_of

_LISTS = {
    "names": Parameter.Type.STRING_ARRAY,
    "whole numbers": Parameter.Type.INTEGER_ARRAY,
}
"""ROS types of lists, by type of the entries. Lists of numbers have no fixed type in ROS, as YAML
makes integers of [0, 0, 1]."""


def declare(node: Node) -> dict[str, Any]:
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
        declare_one(node, name, setting)
    declare_contacts(node)
    for text in misspelt(overrides, node.get_parameter_or("contacts.names").value or ()):
        node.get_logger().warning(f"{text}; it is ignored")
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
                declare_one(node, name, setting)


def refuse_misspelt_contacts(overrides: Iterable[str], contacts: Iterable[str]) -> None:
    """Refuse unknown parameters of listed contacts.

    A misspelt parameter would otherwise be ignored, and the contact would have other rows.

    Parameters
    ----------
    overrides : names of the overrides of the node.
    contacts : names of the contacts.

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
    if setting.holds in _LISTS and _is_empty_list(change):
        return Parameter(change.name, _LISTS[setting.holds], [])
    return change


def _declarable(override: Parameter) -> Parameter:
    """Return an override in a form that rclpy can declare, or can refuse with its value."""
    # In YAML an empty list has no type, so that rclpy has no value for it.
    if override.value is None or _is_empty_list(override):
        # rclpy would ask the list for its type again; without a value it is empty, too.
        setting = PARAMETERS.get(override.name)
        typed = setting is not None and setting.holds in _LISTS
        return Parameter(override.name, value=None if typed else [])
    return _suited(override)


def _is_empty_list(parameter: Parameter) -> bool:
    return parameter.type_.name.endswith("_ARRAY") and len(parameter.value) == 0


def values(node: Node) -> dict[str, Any]:
    """Return the values of all parameters that have one, by name."""
    names = node.list_parameters([], 0).names
    found = {name: node.get_parameter_or(name).value for name in names}
    return {name: value for name, value in found.items() if value is not None}


def _choices(name: str, setting: Setting) -> tuple[str, ...]:
    if name in ("algorithm", "fallback"):
        # Aliases of algorithms come last.
        nothing = ("nothing",) if name == "fallback" else ()
        return (*nothing, *algorithms.names(), *algorithms.aliases())
    return setting.choices


def declare_one(node: Node, name: str, setting: Setting, read_only: bool = False) -> None:
    """Declare a parameter with its description and range; refuse a number that is too small."""
    descriptor = ParameterDescriptor(
        description=setting.description, read_only=read_only or name == AUTOSTART
    )
    default = setting.default
    choices = _choices(name, setting)
    if choices:
        descriptor.additional_constraints = f"one of: {', '.join(choices)}"
    if isinstance(default, float) and setting.low is not None:
        descriptor.floating_point_range = [
            FloatingPointRange(from_value=setting.low, to_value=setting.high)
        ]
        # A range of a descriptor cannot have a gap.
        descriptor.additional_constraints = setting.range if setting.least else ""
    elif setting.low is not None:
        descriptor.integer_range = [IntegerRange(from_value=setting.low, to_value=setting.high)]
    numbers = setting.holds == "numbers"
    if numbers:
        descriptor.additional_constraints = "a list of integers or of floating-point numbers"
        descriptor.dynamic_typing = True
        default = list(default) or None
    declared = node.declare_parameter(name, _LISTS.get(setting.holds, default), descriptor)
    if numbers or setting.low is not None:
        try:
            setting.parse(name, () if declared.value is None else declared.value)
        except InputError:
            if numbers:
                expected = Parameter.Type.DOUBLE_ARRAY
                raise InvalidParameterTypeException(declared, expected) from None
            raise
    kind = Parameter.Type.DOUBLE_ARRAY if numbers else _LISTS.get(setting.holds)
    if declared.value is None and kind is not None:
        # rclpy's answer is empty if one of several requested parameters has no value, as in
        # `ros2 param dump`, which requests all.
        node.set_parameters([Parameter(name, kind, [])])
