"""Closure: measured positions that are far from the last result, and how much work they are."""

from __future__ import annotations

import numpy as np
import pytest
from linkages import BOX, REFERENCE, assembled, four_bar, same_turn

from delassus_ros import Robot
from delassus_ros.closure import BoundClosure, Closure, ClosureStatus
from delassus_ros.model import WORLD, Body, Coupling, Joint, JointKind


class Counted:
    """The Newton iterations that a bound closure runs."""

    def __init__(self, bound: BoundClosure, monkeypatch: pytest.MonkeyPatch) -> None:
        self.runs = 0
        self._run = bound._newton.run
        monkeypatch.setattr(bound._newton, "run", self._counted)

    def _counted(self) -> int:
        self.runs += 1
        return self._run()

    def take(self) -> int:
        """Return how many there were since the last call."""
        runs, self.runs = self.runs, 0
        return runs


def mimic(ratio: float, offset: float = 0.0) -> Robot:
    joints = [Joint(name, JointKind.REVOLUTE, WORLD) for name in ("finger", "thumb")]
    coupling = Coupling("mimic", (("thumb", -1.0), ("finger", ratio)), offset)
    return Robot("hand", joints, [Body(j.name, BOX) for j in joints], [], [coupling])


@pytest.mark.parametrize("ratio", [1.0, 2.0, 10.0, 0.3])
@pytest.mark.parametrize("absurd", [1e9, 4294967295.0, 1e17, -1e300])
@pytest.mark.parametrize("measured", ["finger", "thumb"])
def test_one_absurd_measurement_does_not_spoil_the_next(ratio, absurd, measured, monkeypatch):
    bound = Closure(mimic(ratio)).bind([measured])
    counted = Counted(bound, monkeypatch)
    for position in (0.3137, 0.31, 0.5, 0.123, 0.4321, -0.3):
        bound.measured[0] = absurd
        first = bound.solve()
        assert first in (ClosureStatus.OK, ClosureStatus.NOT_CLOSED), "rounding may be too much"
        assert counted.take() == (1 if first is ClosureStatus.OK and bound.residual == 0.0 else 2)
        bound.measured[0] = position
        assert bound.solve() is ClosureStatus.OK and bound.about == ""
        assert counted.take() == 1
        finger = position if measured == "finger" else position / ratio
        assert np.abs(bound.q - [finger, ratio * finger]).max() <= 2e-16 * max(ratio, 1 / ratio)
        assert bound.residual <= 2e-16 * ratio


def test_large_positions_of_a_gear_are_not_refused_for_their_rounding(monkeypatch):
    """Days of a motor's turns: a unit in the last place is 1.5e-8 rad, more than the tolerance."""
    bound = Closure(mimic(100.0, 0.1), {"finger": 0.37}).bind(["finger"])
    counted = Counted(bound, monkeypatch)
    runs = set()
    for finger in 1e6 + 0.01 * np.arange(200.0):
        bound.measured[0] = finger
        assert bound.solve() is ClosureStatus.OK
        assert abs(bound.q[1] - (100.0 * finger + 0.1)) <= np.spacing(1e8)
        runs.add(counted.take())
    assert runs == {1, 2}


def test_a_coupling_beside_a_loop_recovers_as_well():
    """Of one cluster with the loop; the loop itself is where it was."""
    free = [Joint(name, JointKind.REVOLUTE, WORLD) for name in ("x", "sum")]
    gear = Coupling("sum", (("sum", -1.0), ("x", 3.0), ("crank", 1.0)))
    robot = four_bar(independent=("crank", "x"), couplings=(gear,), extra=tuple(free))
    bound = Closure(robot, REFERENCE).bind(["crank", "x"])
    for x in (0.2, 1e17, 0.3, -1e12, 0.1):
        bound.measured[:] = 0.9, x
        status = bound.solve()
        if abs(x) < 1.0:
            assert status is ClosureStatus.OK
            assert same_turn(bound.q[:3], [0.9, *assembled(0.9)])
            assert bound.q[4] == pytest.approx(3.0 * x + 0.9, abs=1e-14)
