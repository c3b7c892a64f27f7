"""The clocks of a node: its own, and that of its timers; apart from what knows no ROS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node

STEADY = Clock(clock_type=ClockType.STEADY_TIME)
"""For timers: only ages and stamps are by the node's clock."""


def steady() -> Clock:
    """Return one for a timer that must not share it.

    An instant that passes while rclpy's events executor is busy is counted as many times as timers
    of the same clock come and go meanwhile; theirs are then called several times at once, and not
    for as many periods.
    """
    return Clock(clock_type=ClockType.STEADY_TIME)


def now_of(node: Node) -> Callable[[], int]:
    """Return what tells the time of a node's clock [ns]; 0 while that has no time yet."""
    clock: Any = node.get_clock()
    # Half as long as clock.now(), for the same number.
    return lambda: int(clock.handle.get_now().nanoseconds)
