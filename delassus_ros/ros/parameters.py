"""Parameters of a node: declared with descriptors; overrides without a parameter."""

from __future__ import annotations

from collections.abc import Iterable

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor
from rclpy.exceptions import InvalidParameterTypeException
from rclpy.node import Node
from rclpy.parameter import Parameter

from delassus.errors import InputError, unknown
from delassus_ros.ros.setting import RCLPY_PREFIXES, Setting

LISTS = {
    "names": Parameter.Type.STRING_ARRAY,
    "whole numbers": Parameter.Type.INTEGER_ARRAY,
}
"""ROS types of lists, by type of the entries. Lists of numbers have no fixed type in ROS, as YAML
makes integers of [0, 0, 1]."""


def overrides_of(node: Node) -> dict[str, Parameter]:
    """Return the parameter overrides of a node, by name.

    Overrides come from parameter files, the command line and the node's constructor.
    """
    # Work-around (private overrides): no upstream issue known; rclpy 7.1.6 can only declare all
    # overrides, and fails at an empty list.
    found: dict[str, Parameter] = node._parameter_overrides
    return found


def warn_of_unknown_overrides(node: Node, known: Iterable[str]) -> None:
    """Log a warning per override of a parameter that is not known, with the closest known name.

    ROS would ignore a misspelt parameter silently. Names with a prefix of :data:`RCLPY_PREFIXES`
    are known.
    """
    names = dict.fromkeys(known)
    for name in sorted(overrides_of(node)):
        if name not in names and not name.startswith(RCLPY_PREFIXES):
            node.get_logger().warning(f"{unknown('parameter', name, names)}; it is ignored")


def declare(node: Node, name: str, setting: Setting, read_only: bool = False) -> None:
    """Declare a parameter with its description and range; refuse a number that is too small."""
    descriptor = ParameterDescriptor(description=setting.description, read_only=read_only)
    default = setting.default
    if setting.choices:
        descriptor.additional_constraints = f"one of: {', '.join(setting.choices)}"
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
    declared = node.declare_parameter(name, LISTS.get(setting.holds, default), descriptor)
    if numbers or setting.low is not None:
        try:
            setting.parse(name, () if declared.value is None else declared.value)
        except InputError:
            if numbers:
                expected = Parameter.Type.DOUBLE_ARRAY
                raise InvalidParameterTypeException(declared, expected) from None
            raise
    kind = Parameter.Type.DOUBLE_ARRAY if numbers else LISTS.get(setting.holds)
    if declared.value is None and kind is not None:
        # rclpy's answer is empty if one of several requested parameters has no value, as in
        # `ros2 param dump`, which requests all.
        node.set_parameters([Parameter(name, kind, [])])
