"""Warnings that come a thousand times per second are written a few times per minute."""

from __future__ import annotations

from delassus_ros.ros.logs import Throttle


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_one_line_per_kind_and_period_with_the_number_left_out() -> None:
    clock, lines = Clock(), []
    warn = Throttle(lines.append, period=5.0, clock=clock)
    for _ in range(1000):
        warn("joints", "joint 'a' is missing")
    warn("contacts", "contact 'b' is unknown")
    assert lines == ["joint 'a' is missing", "contact 'b' is unknown"]
    clock.now += 4.9
    warn("joints", "joint 'a' is missing")
    assert len(lines) == 2
    clock.now += 0.2
    warn("joints", "joint 'c' is missing")
    assert lines[2:] == ["joint 'c' is missing (1000 more like this since the last)"]
    clock.now += 5.1
    warn("joints", "joint 'd' is missing")
    assert lines[3:] == ["joint 'd' is missing"]
