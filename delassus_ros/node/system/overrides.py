"""Parameter values that a node was started with."""

from __future__ import annotations

from rclpy.node import Node
from rclpy.parameter import Parameter


def overrides_of(node: Node) -> dict[str, Parameter]:
    """Return the parameter overrides of a node, by name.

    Overrides come from parameter files, the command line and the node's constructor.
    """
    # Work-around (private overrides): no upstream issue known; rclpy 7.1.6 can only declare all
    # overrides, and fails at an empty list.
    found: dict[str, Parameter] = node._parameter_overrides
    return found
