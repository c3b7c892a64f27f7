"""Rates of messages, as the monitor and `delassus watch` show them."""

from __future__ import annotations

import pytest

from delassus_ros.monitor.latency import MessageRate


def test_rate_of_the_last_second_without_discovery() -> None:
    pace = MessageRate()
    for k in range(50):
        pace.update(0.2 * k, 0)
    for k in range(50, 60):
        pace.update(0.2 * k, 20 * (k - 49))
    assert pace.rate == pytest.approx(100.0) and pace.silence == 0.0
    for k in range(60, 63):
        pace.update(0.2 * k, 200)
    assert pace.rate == pytest.approx(40.0) and pace.silence == pytest.approx(0.6)
    assert pace.has_stopped
    for k in range(63, 70):
        pace.update(0.2 * k, 200)
    assert pace.rate == 0.0 and pace.silence == pytest.approx(2.0)


def test_rate_from_the_first_messages_on() -> None:
    pace = MessageRate()
    for now, count in ((0.0, 0), (0.2, 0), (0.4, 200)):
        pace.update(now, count)
    assert pace.rate == pytest.approx(1000.0)


def test_slow_node_is_not_silent() -> None:
    slow = MessageRate()
    for k in range(30):
        slow.update(0.2 * k, 1 + k // 5)
        assert not slow.has_stopped or k < 5
    for k in range(30, 42):
        slow.update(0.2 * k, 6)
    assert slow.has_stopped


def test_rate_at_any_period_of_updates() -> None:
    pace = MessageRate()
    pace.update(0.0, 0)
    assert pace.rate == 0.0
    for tick in range(1, 9):
        pace.update(0.25 * tick, 100 * tick)
        assert pace.rate == pytest.approx(400.0)
    for tick in range(9, 13):
        pace.update(0.25 * tick, 800)
    assert pace.rate == 0.0
