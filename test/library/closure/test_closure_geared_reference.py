"""Reference configurations of loops with motors and rotors that the reference does not name."""

from __future__ import annotations

import counted
import numpy as np
import pytest
from linkages import actuator, closed_actuator

from delassus.closure import Closure, ClosureStatus
from delassus.closure.reference import reference_configuration

TOLERANCE = 1e-8


@pytest.mark.parametrize("independent", ["boom", "rod", "barrel"])
@pytest.mark.parametrize("ratios", [(30.0, 0.0), (500.0, 50.0), (1e3, -100.0), (1e5, 1e4)])
def test_motors_turn_to_where_the_stated_joints_put_them(
    ratios: tuple[float, float], independent: str
) -> None:
    robot = actuator(*ratios, (independent,))
    expected = closed_actuator(0.3, *ratios)
    stated = {name: expected[name] for name in ("boom", "barrel", "rod")}
    q = reference_configuration(robot, stated, TOLERANCE)
    assert q == pytest.approx(list(expected.values()), rel=1e-12)


@pytest.mark.parametrize("ratios", [(30.0, 0.0), (500.0, 50.0), (1e5, -1e4)])
def test_what_is_not_stated_closes_whatever_the_ratios(ratios: tuple[float, float]) -> None:
    """Rod and barrel have a way to go, too, and the motor may be stated wrong."""
    expected = list(closed_actuator(0.3, *ratios).values())
    for stated in ({}, {"motor": -70.0}, {"barrel": 0.5, "motor": 1e3}):
        q = reference_configuration(actuator(*ratios), {"boom": 0.3, **stated}, TOLERANCE)
        assert q == pytest.approx(expected, rel=1e-12)


def test_ratios_do_not_change_how_many_iterations_it_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Where robots are read is looked at elsewhere.
    robots = [actuator(lead, gear) for lead, gear in ((0.0, 0.0), (6.0, 2.0), (1e5, -1e4))]
    for robot in robots:
        reference_configuration(robot, {"boom": 0.3}, TOLERANCE)
    looked_at = counted.loop_rows(monkeypatch)
    counts = []
    for robot in robots:
        looked_at.clear()
        reference_configuration(robot, {"boom": 0.3}, TOLERANCE)
        counts.append(len(looked_at))
    assert max(counts) < 30
    # A motor at 1e5 rad is not closed to 1e-12: its rounding may cost another iteration.
    assert max(counts) - min(counts) <= 2


def test_a_closure_goes_on_from_there() -> None:
    closure = Closure(actuator(500.0, 50.0), {"boom": 0.3, "rod": 1.6})
    for boom in (0.31, 0.5, -0.4):
        result = closure.solve({"boom": boom})
        assert result.status is ClosureStatus.OK
        expected = np.array(list(closed_actuator(boom, 500.0, 50.0).values()))
        assert np.abs(result.q / expected - 1.0).max() < 1e-10
