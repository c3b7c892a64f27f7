"""Times in bins of fixed number."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delassus_ros.node.live.timing import Histogram


@settings(deadline=None)
@given(st.lists(st.floats(1e-6, 29.0), min_size=1, max_size=200), st.floats(0.0, 1.0))
def test_quantiles_are_right_to_within_a_bin(times, fraction) -> None:
    histogram = Histogram()
    for time in times:
        histogram.add(time)
    expected = np.quantile(times, fraction, method="inverted_cdf")
    assert histogram.quantile(fraction) == pytest.approx(expected, rel=0.023)
    assert histogram.quantile(1.0) == histogram.largest == max(times)
    assert histogram.mean == pytest.approx(np.mean(times))
    assert histogram.count == len(times)


@pytest.mark.parametrize("time", [-1.0, 0.0, 1e-9, 1e-6])
def test_what_is_too_short_is_in_the_first_bin(time) -> None:
    histogram = Histogram()
    histogram.add(time)
    assert histogram.count == 1
    assert histogram.quantile(0.5) == max(time, 0.0)
    assert histogram.total == max(time, 0.0)


@pytest.mark.parametrize("time", [30.0, 1e6, math.inf])
def test_what_is_too_long_is_in_the_last_bin(time) -> None:
    histogram = Histogram()
    histogram.add(0.001)
    histogram.add(time)
    assert histogram.largest == time
    assert 30.0 < histogram.quantile(0.99) < 34.0 or histogram.quantile(0.99) == time


def test_no_time_at_all() -> None:
    histogram = Histogram()
    histogram.add(math.nan)
    assert histogram.count == 0
    assert math.isnan(histogram.quantile(0.5)) and math.isnan(histogram.mean)


def test_clear() -> None:
    histogram = Histogram()
    histogram.add(0.1)
    histogram.clear()
    assert (histogram.count, histogram.largest) == (0, 0.0)
    histogram.add(0.002)
    assert histogram.quantile(0.5) == pytest.approx(0.002, rel=0.023)


def test_adding_keeps_nothing() -> None:
    histogram = Histogram()
    times = np.random.default_rng(1).exponential(1e-4, 1000).tolist()
    tracemalloc.start()
    try:
        for time in times:
            histogram.add(time)
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(20):
            for time in times:
                histogram.add(time)
        # A tenth of a byte for each: the interpreter itself keeps a few small objects for reuse.
        assert tracemalloc.get_traced_memory()[0] - before < 2000
    finally:
        tracemalloc.stop()
