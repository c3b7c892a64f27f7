"""Accelerations by finite differences: windows, pauses, repeated instants and time set back."""

from __future__ import annotations

import numpy as np
import pytest

from delassus.measured.rate_change import LONGEST_PAUSE, RateChange

MS = 1_000_000


def rates(stamp: int) -> np.ndarray:
    """Rates with the accelerations 2 and -4, at a stamp [ms]."""
    return 1e-3 * stamp * np.array([2.0, -4.0])


def test_from_one_joint_state_to_the_next() -> None:
    change = RateChange()
    assert change.add(5 * MS, rates(5)) is None and change.span == 0.0
    np.testing.assert_allclose(change.add(7 * MS, rates(7)), [2.0, -4.0], rtol=1e-12)
    assert change.span == pytest.approx(0.002)
    # Of the latest two alone.
    np.testing.assert_allclose(change.add(8 * MS, np.zeros(2)), -rates(7) / 1e-3, rtol=1e-12)


def test_over_a_window() -> None:
    change = RateChange(window=0.004)
    found = [change.add(k * MS, rates(k)) for k in range(1, 9)]
    assert [each is None for each in found] == [True] * 4 + [False] * 4
    for each in found[4:]:
        np.testing.assert_allclose(each, [2.0, -4.0], rtol=1e-12)
    assert change.span == pytest.approx(0.004)


def test_the_same_instant_again_replaces_its_rates() -> None:
    change = RateChange()
    change.add(1 * MS, rates(1))
    change.add(2 * MS, np.full(2, 9.0))
    np.testing.assert_allclose(change.add(2 * MS, rates(2)), [2.0, -4.0], rtol=1e-12)


def test_time_that_is_set_back_begins_anew() -> None:
    change = RateChange()
    change.add(9 * MS, rates(9))
    assert change.add(3 * MS, rates(3)) is None
    np.testing.assert_allclose(change.add(4 * MS, rates(4)), [2.0, -4.0], rtol=1e-12)


@pytest.mark.parametrize(("window", "most"), [(0.0, LONGEST_PAUSE), (0.01, LONGEST_PAUSE + 0.01)])
def test_rates_are_not_compared_over_a_pause(window: float, most: float) -> None:
    end = round(1e9 * most)
    change = RateChange(window)
    change.add(1, rates(0))
    assert change.add(1 + end, rates(0)) is not None
    change.reset()
    change.add(1, rates(0))
    assert change.add(3 + end, rates(0)) is None
    assert change.span == pytest.approx(most)


def test_the_rates_are_copied() -> None:
    change, shared = RateChange(), rates(1)
    change.add(1 * MS, shared)
    shared[:] = rates(2)
    np.testing.assert_allclose(change.add(2 * MS, shared), [2.0, -4.0], rtol=1e-12)
