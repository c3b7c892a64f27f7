"""Parameter values that a node was started with."""

from __future__ import annotations

from rclpy.node import Node
from rclpy.parameter import Parameter


def overrides_of(node: Node) -> dict[str, Parameter]:
    """Return what the node looks up when a parameter is declared, by name.

    From parameter files, the command line and the node's constructor. rclpy has no public
    way to it but to declare them all, which it cannot where one is an empty list.
    """
    found: dict[str, Parameter] = node._parameter_overrides
    return found
