"""Closure: measured positions that are far from the last result, and how much work they are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from linkages import REFERENCE, assembled, at, four_bar, robot_of, same_turn

from delassus import Robot
from delassus.closure import BoundClosure, Closure, ClosureStatus
from delassus.model import WORLD, Coupling, FunctionConstraint, Joint, JointKind


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
    return robot_of(joints, couplings=[coupling])


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


def motor(name: str = "motor") -> Joint:
    return Joint(name, JointKind.REVOLUTE, WORLD)


def geared(ratio: float) -> tuple[Robot, dict[str, float]]:
    """Return a crank and rocker with a motor geared to its crank, and a reference."""
    gear = Coupling("gear", (("motor", -1.0), ("crank", ratio)), 0.2)
    return four_bar(couplings=(gear,), extra=(motor(),)), {**REFERENCE, "motor": 0.8 * ratio + 0.2}


@pytest.mark.parametrize("ratio", [1.0, -9.0, 50.0, 0.3])
@pytest.mark.parametrize("measured", ["motor", "crank"])
def test_a_geared_crank_may_be_any_number_of_turns_on(ratio, measured, monkeypatch):
    robot, reference = geared(ratio)
    bound = Closure(robot, reference).bind([measured])
    counted = Counted(bound, monkeypatch)
    once = set()
    for turns in (0, 1, 5, 7, 10, 100, 10_000, -1, -6, -1234):
        crank = 1.7 + 2.0 * np.pi * turns
        bound.measured[0] = crank if measured == "crank" else ratio * crank + 0.2
        bound.reset()
        assert bound.solve() is ClosureStatus.OK and bound.residual <= 1e-9
        assert same_turn(bound.q[1:3], assembled(1.7))
        assert (
            np.abs(bound.q[[0, 3]] - [crank, ratio * crank + 0.2]).max()
            <= 1e-15 * abs(bound.q).max()
        )
        once.add(counted.take())
    # 0.9 rad forth, or the rest of a turn back, whatever the number of turns.
    assert max(once) < 150
    # From wherever it was, too.
    for crank in np.random.default_rng(1).uniform(-5000.0, 5000.0, 20):
        bound.measured[0] = crank if measured == "crank" else ratio * crank + 0.2
        assert bound.solve() is ClosureStatus.OK and counted.take() < 150
        assert same_turn(bound.q[1:3], assembled(crank))


def limited(robot: Robot) -> Robot:
    """Return the robot with limits at its first joint that leave room for many turns."""
    first = replace(robot.joints[0], lower=-1000.0, upper=1000.0)
    joints = [first, *robot.joints[1:]]
    return Robot("limited", joints, robot.bodies, [], (), robot.loops, ("crank",))


def test_a_crank_with_wide_limits_may_be_any_number_of_turns_on():
    for turns in (5, 7, 100, -80):
        result = Closure(limited(four_bar()), REFERENCE).solve(
            {"crank": 1.7 + 2.0 * np.pi * turns}
        )
        assert result.status is ClosureStatus.OK
        assert same_turn(result.q[1:], assembled(1.7))


def test_what_cannot_go_round_is_not_put_whole_turns_on(monkeypatch):
    """A motor on the rocker, which swings: turns on, it is somewhere else than it says."""
    gear = Coupling("gear", (("motor", -1.0), ("rocker", 9.0)))
    robot = four_bar(independent=("rocker",), couplings=(gear,), extra=(motor(),))
    start = 9.0 * REFERENCE["rocker"]
    bound = Closure(robot, {**REFERENCE, "motor": start}).bind(["motor"])
    counted = Counted(bound, monkeypatch)
    bound.measured[0] = start + 0.5
    assert bound.solve() is ClosureStatus.OK and counted.take() <= 10
    for turns in (1, 7, 1e3, 1e12, -1e300):
        bound.measured[0] = start + 9.0 * 2.0 * np.pi * turns
        assert bound.solve() is ClosureStatus.UNREACHABLE
        assert counted.take() == 1, "a way that is too long is not begun"
        assert bound.about == (
            f"coupling 'gear' and loop 'knee': joint 'motor': {bound.measured[0]:.6g} is farther "
            "from the reference than one call goes"
        )


def two_linkages(factor: float) -> Robot:
    """Return two four-bars whose cranks are geared: the second turns `factor` times as fast."""
    robot = four_bar()
    (knee,) = robot.loops
    parents = (WORLD, 3, WORLD)
    again = [
        replace(joint, name=f"{joint.name}_2", parent=parent)
        for joint, parent in zip(robot.joints, parents, strict=True)
    ]
    joints = [*robot.joints, *again]
    other = replace(knee, name="elbow", predecessor=4, successor=5)
    gear = Coupling("gear", (("crank_2", -1.0), ("crank", factor)), 0.8 * (1.0 - factor))
    return robot_of(joints, couplings=[gear], loops=[knee, other], independent=("crank",))


@pytest.mark.parametrize(("factor", "reached"), [(1.5, True), (-2.0, True), (2.0**0.5, False)])
def test_geared_cranks_come_round_together_or_never(factor, reached):
    """At 2 : 3 every second turn of the first; at an irrational ratio in no number of turns."""
    reference = {**REFERENCE, **{f"{name}_2": value for name, value in REFERENCE.items()}}
    closure = Closure(two_linkages(factor), reference)
    for crank in (0.9, 80.0, 6001.0, -777.0):
        result = closure.solve({"crank": crank})
        if crank == 0.9 or reached:
            assert result.status is ClosureStatus.OK
            second = 0.8 + factor * (crank - 0.8)
            expected = [crank, *assembled(crank), second, *assembled(second)]
            assert same_turn(result.q, expected)
            assert np.abs(result.q - expected)[[0, 3]].max() <= 1e-10, "not but for whole turns"
        else:
            assert result.status is ClosureStatus.UNREACHABLE
            assert "joint 'crank'" in result.about


def test_each_motor_of_a_differential_may_be_turns_on():
    gear = Coupling("sum", (("crank", -2.0), ("left", 1.0), ("right", 1.0)))
    robot = four_bar(
        independent=("left", "right"), couplings=(gear,), extra=(motor("left"), motor("right"))
    )
    closure = Closure(robot, {**REFERENCE, "left": 0.8, "right": 0.8})
    for left, right in ((500.0, -3.0), (-40.0, 77.0), (1e4, 1e4), (300.0, -300.0)):
        result = closure.solve({"left": left, "right": right})
        assert result.status is ClosureStatus.OK
        crank = 0.5 * (left + right)
        assert result.q[0] == pytest.approx(crank, abs=1e-11)
        assert same_turn(result.q[1:3], assembled(crank))


def test_a_crank_in_a_function_never_comes_round():
    """Nobody knows what a function does a turn on."""
    climb = FunctionConstraint(
        "cam", ("crank",), lambda x: [0.01 * x[0] * x[0] + x[0]], 1, dependent=("follower",)
    )
    robot = limited(four_bar(extra=(motor("follower"),))).with_constraints(functions=[climb])
    closure = Closure(robot, {**REFERENCE, "follower": 0.8064})
    result = closure.solve({"crank": 1.1})
    assert result.status is ClosureStatus.OK
    assert result.q[3] == pytest.approx(0.01 * 1.1**2 + 1.1)
    assert closure.solve({"crank": 1.1 + 200.0 * np.pi}).status is ClosureStatus.UNREACHABLE


def test_whatever_is_measured_a_call_is_at_most_1202_iterations(monkeypatch):
    """And raises nothing, also where differences are more than a float holds."""
    free = four_bar(independent=("rocker",), extra=(motor("free"),))
    cases = [(*geared(9.0), ["motor"]), (free, REFERENCE, ["rocker", "free"])]
    cases.append((two_linkages(2.0**0.5), {}, ["crank_2"]))
    cases.append((mimic(1.0), {}, ["finger"]))
    rng = np.random.default_rng(7)
    most = 0
    for robot, reference, names in cases:
        bound = Closure(robot, reference).bind(names)
        counted = Counted(bound, monkeypatch)
        for _ in range(60):
            size = 10.0 ** rng.choice([0.0, 1.0, 2.0, 5.0, 17.0, 300.0])
            bound.measured[:] = rng.uniform(-1.7, 1.7, len(names)) * size
            bound.solve()
            most = max(most, counted.take())
        for position in (1.7e308, -1.7e308, 1.7e308):
            bound.measured[:] = position
            bound.solve()
            most = max(most, counted.take())
    assert 20 < most <= 1202


def test_a_wheel_beside_a_loop_does_not_keep_its_crank_from_going_the_other_way(monkeypatch):
    """A longer crank, which does not get past π: from 2.4 to -2.4 it has to go through 0."""
    robot = four_bar(extra=(motor("wheel"),))
    joints = list(robot.joints)
    joints[1] = replace(joints[1], placement=at(0.65))
    robot = Robot("long", joints, robot.bodies, [], (), robot.loops, ("crank",))
    bound = Closure(robot, {"crank": 2.4, "coupler": -1.0}).bind(["crank", "wheel"])
    counted = Counted(bound, monkeypatch)
    for crank in np.linspace(-2.6, 2.6, 14):
        runs = set()
        for wheel in (0.0, 3.1, -2e5):
            bound.reset()
            bound.measured[:] = crank, wheel
            assert bound.solve() is ClosureStatus.OK
            runs.add(counted.take())
        assert len(runs) == 1
    bound.measured[:] = 3.0, 1.5
    assert bound.solve() is ClosureStatus.UNREACHABLE
