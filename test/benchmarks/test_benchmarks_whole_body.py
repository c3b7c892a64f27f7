"""The benchmark of a controller's tick: it runs, and both ways give the same torques."""

from __future__ import annotations

import pytest

from benchmarks import whole_body
from benchmarks.timing import Timing

pytestmark = pytest.mark.needs("daqp")


def test_the_page_has_a_row_of_each_kind() -> None:
    """It raises where the torques of the two ways differ."""
    kernels = {name: Timing(1e-6, 1e-6 * k) for k, name in enumerate(("kernel", "a", "b"), 1)}
    lines = whole_body.page(whole_body.ticks(0.001), kernels).splitlines()
    rows = [line for line in lines if line.startswith(("| matrices alone", "| whole tick"))]
    assert [row.count("|") for row in rows] == [5, 5, 5]
    assert (
        "| our quadruped, trunk and feet | 1 / 1 | 1 / 2 | 1 / 3 | 2.0 |"
        in lines
    )
