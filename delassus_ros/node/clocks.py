"""The clock that goes on when simulated time stands still and when the machine's is set back."""

from __future__ import annotations

from rclpy.clock import Clock
from rclpy.clock_type import ClockType

STEADY = Clock(clock_type=ClockType.STEADY_TIME)
"""For all timers: only ages and stamps are by the node's clock."""
