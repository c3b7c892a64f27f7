"""The pace of a loop on a clock that the test sets."""

from __future__ import annotations

import pytest

from delassus_ros.sim import pace
from delassus_ros.sim.pace import CATCH_UP_S, Pace

PERIOD = 0.002


class Clock:
    """Stands where it is put."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture(name="clock")
def make_clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(pace, "time", clock)
    return clock


def test_a_tick_in_time_is_followed_by_the_next_after_a_period(clock: Clock) -> None:
    loop = Pace()
    for tick in range(5):
        assert loop.begin(PERIOD) == 0.0
        clock.now += 0.3 * PERIOD
        assert loop.rest == pytest.approx(0.7 * PERIOD)
        clock.now = 100.0 + (tick + 1) * PERIOD


def test_a_late_tick_is_made_good_at_twice_the_rate(clock: Clock) -> None:
    loop = Pace()
    loop.begin(PERIOD)
    clock.now += 5.0 * PERIOD
    rests = []
    for _ in range(10):
        assert loop.begin(PERIOD) == 0.0
        rests.append(loop.rest)
        clock.now += loop.rest
    # Half a period each, until the delay of four periods is made good.
    assert rests == pytest.approx([0.5 * PERIOD] * 8 + [PERIOD] * 2, abs=1e-9)


def test_a_delay_that_is_too_long_moves_the_schedule(clock: Clock) -> None:
    loop = Pace()
    loop.begin(PERIOD)
    clock.now += PERIOD + 1.5 * CATCH_UP_S
    assert loop.begin(PERIOD) == pytest.approx(1.5 * CATCH_UP_S)
    assert loop.rest == pytest.approx(PERIOD)
