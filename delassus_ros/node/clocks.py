"""The clock that goes on when simulated time stands still."""

from __future__ import annotations

from rclpy.clock import Clock
from rclpy.clock_type import ClockType

STEADY = Clock(clock_type=ClockType.STEADY_TIME)
"""For whatever has nothing to do with the stamps of messages: rates and looks at builds."""
