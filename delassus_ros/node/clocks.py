"""Clocks that go on when simulated time stands still and when the machine's is set back."""

from __future__ import annotations

from rclpy.clock import Clock
from rclpy.clock_type import ClockType


def steady() -> Clock:
    """Return a clock for one timer: only ages and stamps are by the node's clock.

    To timers that share one, rclpy's events executor counts an instant that passes while it is
    busy as many times as timers come and go meanwhile; it then calls them several times at once,
    and not for as many periods.
    """
    return Clock(clock_type=ClockType.STEADY_TIME)
