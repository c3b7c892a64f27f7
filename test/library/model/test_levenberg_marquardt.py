"""One step of joints that closes constraints."""

from __future__ import annotations

import numpy as np
import pytest

from delassus.model.loops import closing_step


def test_a_step_is_exact_where_joints_are_linear_and_short_where_not() -> None:
    """Columns: two rotors that say the same, a joint of a loop that is coupled to them."""
    jacobian = np.array([[-1e-3, -2e-3, 1.0], [0.0, 0.0, 1.0]])
    linear = np.array([True, True, False])
    gap = np.array([30.0, 7.0])
    step = closing_step(gap, jacobian, linear, 0.5)
    assert step[2] == -0.5
    assert (gap + jacobian @ step)[0] == pytest.approx(0.0, abs=1e-12)
    # What both can do they share, each in units of what it does.
    assert step[:2] == pytest.approx([29.5 / 2e-3, 29.5 / 4e-3])
    only = closing_step(gap, jacobian, np.array([True, True, True]), 0.5)
    assert jacobian @ only == pytest.approx(-gap)
    assert np.abs(closing_step(gap, jacobian, np.zeros(3, dtype=bool), 0.5)).max() <= 0.5


def test_the_longest_step_is_of_all_joints_together_or_of_each() -> None:
    jacobian, gap, none = np.eye(4), np.full(4, 3.0), np.zeros(4, dtype=bool)
    assert np.linalg.norm(closing_step(gap, jacobian, none, 0.5)) == pytest.approx(0.5)
    each = closing_step(gap, jacobian, none, 0.5, each=True)
    assert each == pytest.approx(np.full(4, -0.5))
