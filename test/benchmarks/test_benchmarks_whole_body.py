"""The benchmark of a controller's tick: it runs, and both ways give the same torques."""

from __future__ import annotations

import pytest

from benchmarks import whole_body
from benchmarks.timing import Timing

pytestmark = pytest.mark.needs("daqp")


def test_the_page_has_a_row_of_each_kind() -> None:
    """It raises where the torques of the two ways differ."""
    kernels = {name: Timing(1e-6, 1e-6 * k) for k, name in enumerate(("kernel", "a", "b"), 1)}
    places = whole_body.places(whole_body.ticks(0.001), kernels)
    rows = places["times"].rows
    assert [row[0] for row in rows] == [
        "matrices alone", "whole tick, four feet", "whole tick, two feet"
    ]  # fmt: skip
    assert {len(row) for row in rows} == {4}
    assert places["kernels"].rows == [
        ["our quadruped, trunk and feet", "1 / 1", "1 / 2", "1 / 3", "2.0"]
    ]
