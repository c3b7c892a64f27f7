"""When an input came: before time begins, as the clock goes on, and as it is set back."""

from __future__ import annotations

import itertools
import math
import time
from types import SimpleNamespace

import pytest

from delassus.errors import InputError
from delassus_ros.ros.arrival import (
    Arrival,
    SystemClock,
    age_of,
    backward_jump,
    delay_since,
    stamp_of,
    write_stamp,
)
from delassus_ros.ros.queue import sent_at

S = 1_000_000_000
NOW = 5000 * S


@pytest.fixture(name="arrival")
def make_arrival() -> Arrival:
    return Arrival(NOW)


def test_nothing_has_come() -> None:
    arrival = Arrival()
    arrival.restart(NOW)
    assert arrival.since(NOW) is None and arrival.since(0) is None
    assert math.isnan(arrival.age(NOW))
    # Not even where nothing is ever too old.
    assert not arrival.within(math.inf, NOW)


def test_it_grows_old(arrival) -> None:
    assert arrival.since(NOW) == 0
    assert arrival.since(NOW + 2 * S) == 2 * S
    assert arrival.age(NOW + 2 * S) == 2.0
    assert arrival.within(2 * S, NOW + 2 * S)
    assert not arrival.within(2 * S, NOW + 2 * S + 1)
    assert arrival.within(math.inf, NOW + 10**9 * S)
    arrival.note(NOW + 2 * S)
    assert arrival.since(NOW + 3 * S) == S
    arrival.restart(NOW + 3 * S)
    assert arrival.since(NOW + 3 * S) == 0
    arrival.reset()
    assert arrival.since(NOW + 3 * S) is None


def test_clock_set_back_keeps_nothing_alive(arrival) -> None:
    """It counts as new, and grows old from then on; also once the clock is set forward again."""
    back = NOW - 3600 * S
    assert arrival.since(back) == 0
    assert arrival.since(back + 2 * S) == 2 * S
    assert arrival.since(back + S) == S
    assert arrival.since(NOW) == 3600 * S


def test_what_came_before_time_began_counts_from_then() -> None:
    arrival = Arrival(0)
    assert arrival.since(0) == 0 and arrival.within(S, 0)
    assert math.isnan(arrival.age(0))
    assert arrival.age(NOW) == 0.0
    assert arrival.age(NOW + 2 * S) == 2.0


@pytest.mark.parametrize(
    ("stamp", "age"), [(NOW - S, 3.0), (NOW, 2.0), (NOW + 3600 * S, 2.0), (0, 2.0), (-5, 2.0)]
)
def test_an_early_stamp_counts_a_late_one_makes_nothing_younger(arrival, stamp, age) -> None:
    assert arrival.age(NOW + 2 * S, stamp) == age
    assert arrival.since(NOW + 2 * S, stamp) == age * S


def test_after_the_clock_was_set_back_no_stamp_makes_it_younger(arrival) -> None:
    back = NOW - 3600 * S
    assert arrival.age(back, NOW) == 0.0
    assert arrival.age(back + 2 * S, NOW) == 2.0


@pytest.mark.parametrize(("stamp", "now"), [(0, NOW), (-1, NOW), (NOW, 0)])
def test_without_a_stamp_or_a_time_there_is_no_age(stamp, now) -> None:
    assert math.isnan(age_of(stamp, now))


def test_age_of_a_stamp() -> None:
    assert age_of(NOW - 2 * S, NOW) == 2.0
    assert age_of(NOW + 2 * S, NOW) == -2.0


def test_words_for_stamps_that_go_back() -> None:
    assert backward_jump(S // 20, "or two nodes publish it") == (
        "0.05 s: a simulation was reset, a clock was set, or two nodes publish it"
    )


@pytest.mark.parametrize("stamp", [0, 1, S - 1, S, NOW + 123, -1, -S, 2**31 * S - 1])
def test_a_stamp_that_is_written_is_read_again(stamp) -> None:
    at = SimpleNamespace(sec=7, nanosec=7)
    write_stamp(at, stamp)
    assert 0 <= at.nanosec < S
    assert stamp_of(at.sec, at.nanosec) == stamp


@pytest.mark.parametrize("stamp", [2**31 * S, -(2**31) * S])
def test_a_stamp_that_no_message_can_hold_is_refused(stamp) -> None:
    at = SimpleNamespace(sec=7, nanosec=7)
    with pytest.raises(
        InputError, match=r"the stamp is -?2147483648 s; expected less than 2\^31 s"
    ):
        write_stamp(at, stamp)
    assert (at.sec, at.nanosec) == (7, 7)


def test_only_steps_back_of_the_system_clock_count(monkeypatch) -> None:
    clock = {"time_ns": 10**18, "monotonic_ns": 10**15}
    for name in clock:
        monkeypatch.setattr(time, name, lambda name=name: clock[name])
    system = SystemClock()
    for system_step, steady_step, expected in (
        (10**9, 10**9, 0),
        (-2 * 10**9, 10**6, 2 * 10**9 + 10**6),
        (10**9, 10**9, 0),
        (3600 * 10**9, 10**6, 0),
        (10**9 - 5_000_000, 10**9, 0),
    ):
        clock["time_ns"] += system_step
        clock["monotonic_ns"] += steady_step
        assert system.set_back() == expected


def test_a_pause_between_two_clocks_is_no_step(monkeypatch) -> None:
    """Whichever of the looks at the clock it falls into."""
    reads = itertools.count()
    paused_at = set(range(2, 60, 7))
    clock = {"time_ns": 10**18, "monotonic_ns": 10**15}

    def read(name: str) -> int:
        if next(reads) in paused_at:
            clock["time_ns"] += 10**9
            clock["monotonic_ns"] += 10**9
        return clock[name]

    for name in clock:
        monkeypatch.setattr(time, name, lambda name=name: read(name))
    system = SystemClock()
    assert [system.set_back() for _ in range(12)] == [0] * 12
    assert next(reads) > 50
    clock["time_ns"] -= 2 * 10**9
    assert system.set_back() >= 2 * 10**9


@pytest.mark.parametrize(
    ("info", "delay"),
    [
        ({"source_timestamp": 10**18 - 7}, 7),
        ({"source_timestamp": 10**18 + 7}, 0),
        ({"source_timestamp": 0}, 0),
        ({"source_timestamp": None}, 0),
        ({}, 0),
    ],
)
def test_delay_of_a_message(info, delay) -> None:
    assert delay_since(sent_at(info), 10**18) == delay
