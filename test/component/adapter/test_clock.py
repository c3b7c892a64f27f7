"""Stamps from a counter of ticks."""

from __future__ import annotations

import numpy as np
import pytest

from delassus_ros.adapter.clock import TickClock

MS = 1_000_000
START = 1_700_000_000 * 1000 * MS


def test_stamps_have_the_distances_of_the_counter_and_the_least_delay() -> None:
    clock, rng = TickClock(0.001), np.random.default_rng(0)
    delays = rng.uniform(0.2, 8.0, 2000) * MS
    delays[1] = 0.1 * MS
    errors = []
    for k, delay in enumerate(delays):
        sent = START + 2 * k * MS
        arrival = sent + round(delay)
        found = clock.stamp(500 + 2 * k, arrival)
        assert found.fault == "" and found.nanoseconds <= arrival
        errors.append(found.nanoseconds - sent)
    # From the shortest delay on, but for what the drift allows.
    assert max(errors[1:]) < 0.4 * MS and min(errors) >= 0.1 * MS - 1


def test_a_counter_that_wraps_goes_on() -> None:
    clock = TickClock(0.001)
    clock.stamp(2**32 - 1, START)
    found = clock.stamp(1, START + 2 * MS)
    assert (found.nanoseconds, found.fault) == (START + 2 * MS, "")


@pytest.mark.parametrize(
    ("tick", "later", "words"),
    [
        (7, 5, "the tick goes back from 100 to 7; the clock of the robot is taken anew"),
        (101, 3000, "the tick is 3 s late"),
    ],
)
def test_faults_are_said(tick: int, later: int, words: str) -> None:
    clock = TickClock(0.001)
    clock.stamp(100, START)
    found = clock.stamp(tick, START + later * MS)
    assert words in found.fault and found.nanoseconds == START + later * MS


def test_a_tick_that_stands_still_keeps_the_stamp_of_its_first_message() -> None:
    clock = TickClock(0.001)
    clock.stamp(98, START)
    first = clock.stamp(100, START + 2 * MS)
    assert (first.nanoseconds, first.fault) == (START + 2 * MS, "")
    for k in range(1, 4):
        again = clock.stamp(100, START + 400 * k * MS)
        assert again.nanoseconds == first.nanoseconds
        assert again.fault.startswith("the tick stays at 100: the age counts from the message")
    assert clock.stamp(1500, START + 1410 * MS).fault == ""


def test_a_robot_whose_clock_runs_fast_or_slow_is_followed() -> None:
    for speed in (1.0 + 1e-4, 1.0 - 1e-4):
        clock = TickClock(0.001)
        for k in range(20_000):
            arrival = START + round(k * MS * speed)
            found = clock.stamp(k, arrival)
            assert found.fault == "" and 0 <= arrival - found.nanoseconds < MS // 100
