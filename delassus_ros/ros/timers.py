"""The clocks of a node and of its timers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node

STEADY = Clock(clock_type=ClockType.STEADY_TIME)
"""Clock of timers; ages and stamps are by the node's clock."""


def steady() -> Clock:
    """Return a steady clock for one timer.

    With the events executor of rclpy 7.1.6, timers that share a clock disturb one another: if an
    instant passes while the executor is busy and timers of the clock are created or destroyed,
    the remaining timers are called several times at once, then not for as many periods.
    """
    return Clock(clock_type=ClockType.STEADY_TIME)


def now_of(node: Node) -> Callable[[], int]:
    """Return a function for the time of a node's clock [ns]; 0 while the clock has no time."""
    clock: Any = node.get_clock()
    # Takes half the time of clock.now(), for the same number.
    return lambda: int(clock.handle.get_now().nanoseconds)
