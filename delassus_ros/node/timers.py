"""The clock of timers, apart from what knows no ROS."""

from __future__ import annotations

from rclpy.clock import Clock
from rclpy.clock_type import ClockType

STEADY = Clock(clock_type=ClockType.STEADY_TIME)
"""For timers: only ages and stamps are by the node's clock."""


def steady() -> Clock:
    """Return one for a timer that must not share it.

    An instant that passes while rclpy's events executor is busy is counted as many times as timers
    of the same clock come and go meanwhile; theirs are then called several times at once, and not
    for as many periods.
    """
    return Clock(clock_type=ClockType.STEADY_TIME)
