"""Latency, jitter and overruns of ticks; instants at a fixed rate."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest

from delassus.errors import InputError
from delassus_ros.ros.timing import Schedule, Times, Timing, timer_period


def run(timing: Timing, intervals: list[float], takes: float = 1e-4, start: float = 5.0) -> float:
    now = start
    timing.begin(now, now)
    timing.end(now + takes)
    for interval in intervals:
        now += interval
        timing.begin(now, now)
        timing.end(now + takes)
    return now


def test_latency_and_overruns() -> None:
    timing = Timing(deadline=5e-4)
    timing.begin(1.0, 1.0)
    assert timing.end(1.0004) == pytest.approx(4e-4)
    timing.begin(1.001, 1.001)
    assert timing.end(1.0016) == pytest.approx(6e-4)
    assert (timing.ticks, timing.overruns) == (2, 1)
    assert timing.latency.largest == pytest.approx(6e-4)


def test_without_deadline_nothing_is_late() -> None:
    timing = Timing()
    timing.begin(0.0, 0.0)
    timing.end(100.0)
    assert timing.overruns == 0


def test_latency_begins_where_the_input_arrived() -> None:
    timing = Timing(deadline=0.01, period=0.02)
    for instant in (1.0, 1.02):
        timing.begin(instant, instant - 0.015)
        assert timing.end(instant + 1e-4) == pytest.approx(0.0151)
    assert timing.overruns == 2
    assert timing.jitter.largest < 1e-9


def test_jitter_against_the_period() -> None:
    timing = Timing(period=0.001)
    run(timing, [0.001, 0.0013, 0.0007])
    assert timing.jitter.count == 3
    assert timing.jitter.largest == pytest.approx(3e-4)


def test_jitter_against_what_was_usual() -> None:
    timing = Timing()
    run(timing, [0.002] * 400 + [0.003])
    assert timing.jitter.quantiles(0.99)[0] < 1.1e-6
    assert timing.jitter.largest == pytest.approx(1e-3, rel=1e-3)


def test_new_rate_becomes_usual() -> None:
    timing = Timing()
    now = run(timing, [0.001] * 100)
    run(timing, [0.002] * 500, start=now)
    timing.jitter.clear()
    timing.begin(timing._began + 0.002, now)
    assert timing.jitter.largest < 1e-5


def test_pause_is_no_interval() -> None:
    timing = Timing(period=0.001)
    now = run(timing, [0.001])
    timing.pause()
    run(timing, [0.001], start=now + 60.0)
    assert timing.jitter.largest < 1e-9
    assert timing.jitter.count == 2


def test_quantiles_of_the_last_times() -> None:
    times = Times()
    assert np.isnan(times.quantiles(0.5, 0.99)).all()
    values = np.random.default_rng(1).exponential(1e-4, 3000)
    for value in values.tolist():
        times.add(value)
    last = np.sort(values[-1024:])
    assert times.quantiles(0.5, 0.99, 1.0) == [last[511], last[1013], last[1023]]
    assert (times.count, times.largest) == (3000, values.max())
    times.clear()
    assert (times.count, times.largest) == (0, 0.0)
    times.add(0.002)
    assert times.quantiles(0.5) == [0.002]


def test_adding_times_allocates_no_memory() -> None:
    times = Times()
    values = np.random.default_rng(1).exponential(1e-4, 1000).tolist()
    tracemalloc.start()
    try:
        for value in values:
            times.add(value)
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(20):
            for value in values:
                times.add(value)
        # A tenth of a byte for each: the interpreter itself keeps a few small objects for reuse.
        assert tracemalloc.get_traced_memory()[0] - before < 2000
    finally:
        tracemalloc.stop()


def test_rate_since_the_last_report() -> None:
    timing = Timing()
    assert math.isnan(timing.rate(5.0))
    run(timing, [0.001] * 499)
    assert timing.rate(5.5) == pytest.approx(1000)
    assert timing.rate(6.5) == 0.0
    assert math.isnan(timing.rate(6.5))


def test_clear_begins_anew() -> None:
    timing = Timing(deadline=1e-5)
    run(timing, [0.001, 0.002])
    timing.clear()
    assert (timing.ticks, timing.overruns, timing.latency.count, timing.jitter.count) == (0,) * 4


@pytest.mark.parametrize(("deadline", "period"), [(0.0, None), (1.0, -1.0), (math.nan, None)])
def test_times_must_be_positive(deadline, period) -> None:
    with pytest.raises(InputError, match="must be positive times"):
        Timing(deadline, period)


def test_schedule_realigns_after_missed_instants() -> None:
    schedule = Schedule(0.01, start=1.0)
    assert not schedule.is_due(0.999)
    assert schedule.is_due(1.0)
    assert schedule.due == pytest.approx(1.01)
    assert schedule.is_due(1.0451)
    assert schedule.missed == 3
    assert schedule.due == pytest.approx(1.05)
    assert not schedule.is_due(1.0499)


def test_schedule_keeps_to_its_grid() -> None:
    schedule = Schedule(0.001, start=0.0)
    taken = sum(schedule.is_due(i * 1e-4 + 3e-5) for i in range(10_000))
    assert taken == 1000
    assert schedule.missed == 0
    assert schedule.due == pytest.approx(1.0, abs=1e-9)


def test_a_timer_of_whole_nanoseconds_stays_in_step() -> None:
    rate, nanoseconds = 9999.905, 100_000
    period = timer_period(rate)
    assert period == pytest.approx(nanoseconds * 1e-9, rel=1e-12)
    schedule = Schedule(period, start=-0.5 * period)
    assert all(schedule.is_due(i * nanoseconds * 1e-9) for i in range(100_000))
    assert schedule.missed == 0


@pytest.mark.parametrize("period", [0.0, -1.0, math.inf, math.nan])
def test_period_must_be_positive(period) -> None:
    with pytest.raises(InputError, match="period is"):
        Schedule(period, 0.0)
