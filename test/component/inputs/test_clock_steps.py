"""Steps of simulated time, and the words for stamps ahead of it."""

from __future__ import annotations

import pytest

from delassus_ros.ros.arrival import LONGEST_STEP_NS, ClockSteps, ahead_of_clock

MS = 1_000_000


def test_without_simulated_time_there_are_none() -> None:
    assert ClockSteps(False).longest == 0


def test_the_longest_of_the_last_few_counts() -> None:
    steps = ClockSteps(True)
    # Nobody knows yet.
    assert steps.longest == LONGEST_STEP_NS
    for step in (10 * MS, 40 * MS, 10 * MS):
        steps.add(step)
    assert steps.longest == 40 * MS
    for _ in range(16):
        steps.add(25 * MS)
    assert steps.longest == 25 * MS


@pytest.mark.parametrize("jump", [-5 * MS, 0, LONGEST_STEP_NS + 1, 1_700_000_000 * 10**9])
def test_jumps_are_no_steps(jump) -> None:
    steps = ClockSteps(True)
    steps.add(25 * MS)
    steps.add(jump)
    assert steps.longest == 25 * MS


def test_words_name_the_clock_that_it_is() -> None:
    assert ahead_of_clock(0.1, 0).startswith("0.1 s ahead of this node's clock: synchronise")
    text = ahead_of_clock(0.1, 25 * MS)
    assert text.startswith("0.1 s ahead of /clock, which goes on by up to 0.025 s at once: ")
