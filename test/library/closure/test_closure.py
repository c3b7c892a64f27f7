"""Closure: positions of closed loops from whatever is measured, and what it says of them."""

from __future__ import annotations

import copy
import pickle
import sys
import threading
from dataclasses import replace

import numpy as np
import pytest
from hanging import HANG_S
from linkages import (
    GROUND,
    REFERENCE,
    ROCKER,
    assembled,
    four_bar,
    reach_of_the_rocker,
    robot_of,
    same_turn,
)

from delassus import Contact, Problem, Robot, Transform
from delassus.closure import Closure, ClosureStatus
from delassus.closure import closure as closure_module
from delassus.compiler.newton import newton_for
from delassus.errors import InputError, RobotError
from delassus.model import WORLD, Coupling, Joint, JointKind


@pytest.fixture(scope="module")
def closure() -> Closure:
    return Closure(four_bar(), REFERENCE)


def test_everything_measured(closure):
    q = [1.4, *assembled(1.4)]
    assert closure.solve(q).status is ClosureStatus.OK
    noisy = closure.solve(np.array(q) + [0.0, 0.005, -0.005])
    assert noisy.status is ClosureStatus.OK
    assert same_turn(noisy.q, q), "the independent joints decide"


def test_results_can_be_compared(closure):
    one, other = closure.solve({"crank": 1.4}), closure.solve({"crank": 1.4})
    assert one == one and one != other


def test_a_contradiction_warns_and_names_the_loop(closure):
    coupler, rocker = assembled(1.4)
    result = closure.solve({"crank": 1.4, "rocker": rocker + 0.1})
    assert result.status is ClosureStatus.CONTRADICTION and result.status.is_valid
    assert same_turn(result.q, [1.4, coupler, rocker])
    expected = "loop 'knee': joint 'rocker' is measured 0.1 from where the others put it"
    assert result.about == expected
    # A whole turn of a joint that is in no coupling is no contradiction.
    turned = closure.solve({"crank": 1.4, "rocker": rocker + 2 * np.pi})
    assert turned.status is ClosureStatus.OK
    strict = Closure(four_bar(), REFERENCE, agreement=1e-6)
    assert strict.solve([1.4, coupler + 1e-5, rocker]).status is ClosureStatus.CONTRADICTION


def test_motors_may_be_measured_instead_of_independent_joints():
    """The rocker is the motor, the crank the stated independent joint."""
    closure = Closure(four_bar(), REFERENCE)
    expected = [1.1, *assembled(1.1)]
    result = closure.solve({"rocker": expected[2]})
    assert result.status is ClosureStatus.OK and same_turn(result.q, expected)
    result = closure.solve({"coupler": expected[1]})
    assert result.status is ClosureStatus.OK
    assert same_turn(result.q[1:], assembled(result.q[0]))


def geared_four_bar(**options) -> Robot:
    gear = Coupling("gear", (("motor", -1.0), ("crank", 9.0)), 0.2)
    return four_bar(
        couplings=(gear,), extra=(Joint("motor", JointKind.REVOLUTE, WORLD),), **options
    )


@pytest.mark.parametrize("measured", ["crank", "motor", "rocker"])
def test_a_motor_behind_a_gear(measured):
    closure = Closure(geared_four_bar(), {**REFERENCE, "motor": 7.4})
    # Where crank and coupler are in line, at 0.6, the rocker turns back.
    for crank in np.random.default_rng(3).uniform(0.65, 2.6, 30):
        q = [crank, *assembled(crank), 9.0 * crank + 0.2]
        result = closure.solve(
            {measured: q[("crank", "coupler", "rocker", "motor").index(measured)]}
        )
        assert result.status is ClosureStatus.OK
        assert same_turn(result.q[:3], q[:3])
        assert result.q[3] == pytest.approx(9.0 * result.q[0] + 0.2)


def test_a_gear_alone_goes_any_way_at_once():
    joints = [Joint("link", JointKind.REVOLUTE, WORLD), Joint("rotor", JointKind.REVOLUTE, WORLD)]
    joints.append(Joint("free", JointKind.PRISMATIC, 0))
    gear = Coupling("gear", (("rotor", -1.0), ("link", 100.0)))
    robot = robot_of(joints, couplings=[gear])
    closure = Closure(robot)
    for link in (3.0, -500.0, 1e6):
        result = closure.solve({"free": 0.3, "link": link})
        assert result.status is ClosureStatus.OK
        assert result.q.tolist() == [link, 100.0 * link, 0.3]
    result = closure.solve({"rotor": 50.0, "link": 0.6, "free": 0.0})
    assert result.status is ClosureStatus.CONTRADICTION
    assert "coupling 'gear': joint 'link'" in result.about or "joint 'rotor'" in result.about
    with pytest.raises(InputError, match="joint 'free' is in no loop and must be measured"):
        closure.solve({"link": 1.0})


def test_limits_of_dependent_joints():
    limits = (1.0, 2.3)
    closure = Closure(four_bar(rocker_limits=limits), REFERENCE)
    for crank in np.linspace(0.0, 6.2, 50):
        rocker = assembled(crank)[1]
        result = closure.solve({"crank": crank})
        if limits[0] <= rocker <= limits[1]:
            assert result.status is ClosureStatus.OK
        else:
            assert result.status is ClosureStatus.OUTSIDE_LIMITS
            assert result.about.startswith("loop ")
            assert result.about.endswith(f": joint 'rocker': {rocker:.6g} is not in [1, 2.3]")


def test_joints_that_are_only_coupled_are_not_held_to_their_limits():
    """A follower that turns the other way, with the limits of its leader; see the reader."""
    joints = [
        Joint("leader", JointKind.REVOLUTE, WORLD, lower=0.0, upper=0.8757),
        Joint("follower", JointKind.REVOLUTE, WORLD, lower=0.0, upper=0.8757),
    ]
    opposite = Coupling("opposite", (("follower", 1.0), ("leader", 1.0)))
    robot = robot_of(joints, couplings=[opposite])
    closure = Closure(robot)
    for name, sign in (("leader", 1.0), ("follower", -1.0)):
        result = closure.solve({name: sign * 0.5})
        assert result.status is ClosureStatus.OK and not result.about
        assert result.q.tolist() == [0.5, -0.5]
    # Nor is a rotor that is geared to a joint of a loop, whose other joints are.
    motor = Joint("motor", JointKind.REVOLUTE, WORLD, lower=-1.0, upper=1.0)
    gear = Coupling("gear", (("motor", -1.0), ("crank", 9.0)), 0.2)
    limits = (1.0, 2.3)
    robot = four_bar(couplings=(gear,), extra=(motor,), rocker_limits=limits)
    closure = Closure(robot, {**REFERENCE, "motor": 7.4})
    for crank in np.linspace(0.0, 2.5, 20):
        inside = limits[0] <= assembled(crank)[1] <= limits[1]
        status = ClosureStatus.OK if inside else ClosureStatus.OUTSIDE_LIMITS
        result = closure.solve({"crank": crank})
        assert result.status is status
        assert "motor" not in result.about


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_a_joint_may_be_outside_its_limits_by_rounding_alone(side):
    """Lower and upper limits, both also a whole turn away."""
    crank = 1.2
    rocker = assembled(crank)[1]
    for turns in (0.0, 2 * np.pi):
        for beyond, status in (
            (0.9e-6, ClosureStatus.OK), (1.1e-6, ClosureStatus.OUTSIDE_LIMITS),
        ):  # fmt: skip
            nearest = rocker + turns - side * beyond
            limits = sorted((nearest, nearest - side))
            closure = Closure(four_bar(rocker_limits=tuple(limits)), REFERENCE)
            assert closure.solve({"crank": crank}).status is status


def test_whole_turns_bring_a_joint_inside_its_limits():
    low = (1.0 - 2 * np.pi, 2.3 - 2 * np.pi)
    closure = Closure(four_bar(rocker_limits=low), {"crank": 0.8, "coupler": assembled(0.8)[0]})
    result = closure.solve({"crank": 0.9})
    assert result.status is ClosureStatus.OK
    assert low[0] <= result.q[2] <= low[1] and same_turn(result.q[1:], assembled(0.9))


def test_positions_that_are_no_numbers(closure):
    for value in (np.nan, np.inf, -np.inf):
        result = closure.solve({"crank": value})
        assert result.status is ClosureStatus.NOT_FINITE and "joint 'crank'" in result.about
        assert np.isnan(result.q).all()
        result = closure.solve({"crank": 0.9, "rocker": value})
        assert result.status is ClosureStatus.NOT_FINITE
    assert closure.solve({"crank": 0.9}).status is ClosureStatus.OK


def test_wrong_requests_are_named(closure):
    for request, words in (
        ({"cranc": 1.0}, "unknown joint 'cranc'; did you mean 'crank'"),
        ([1.0, 2.0], r"measured has shape \(2,\), expected \(3,\)"),
        ([[0.8, 1.0, 2.0]], r"measured has shape \(1, 3\), expected \(3,\)"),
        ({"crank": [1.0, 2.0]}, "joint 'crank' is measured with 2 numbers, expected 1"),
        ({}, r"loop 'knee': none of its joints is measured; measure 1 of \['crank', 'coupler',"),
    ):
        with pytest.raises(InputError, match=words):
            closure.solve(request)
    with pytest.raises(InputError, match="joint 'crank' is measured more than once"):
        closure.bind(["crank", "crank"])


def test_wrong_references_are_named():
    for reference, words in (
        ({"knee": 1.0}, "reference: unknown joint 'knee'"),
        ({"crank": np.nan}, "reference: the position nan of joint 'crank' is not finite"),
    ):
        with pytest.raises(RobotError, match=words):
            Closure(four_bar(), reference)
    with pytest.raises(RobotError, match=r"'knee' does not close at the reference .* a gap of"):
        Closure(four_bar(independent=("rocker",)), {"crank": 0.0, "rocker": 0.3})
    dead = reach_of_the_rocker()[0]
    crank = np.arctan2(ROCKER * np.sin(dead), GROUND + ROCKER * np.cos(dead))
    with pytest.raises(RobotError, match="loop 'knee' is singular.*; state another one"):
        Closure(
            four_bar(independent=("rocker",)), {"crank": crank, "coupler": 0.0, "rocker": dead}
        )


def bent_four_bar(tilt: float) -> Robot:
    """Return a four-bar whose crank turns about another axis than its rocker."""
    mount = Transform.from_xyz_rpy(rpy=(tilt, 0.0, 0.0))
    robot = four_bar()
    joints = [replace(robot.joints[0], placement=mount), *robot.joints[1:]]
    return Robot("bent", joints, robot.bodies, [], (), robot.loops, ("crank",))


def test_a_loop_that_cannot_close_in_all_its_rows_is_named():
    """The gap across the plane is the tilt times the pin's distance from the ground link."""
    robot = bent_four_bar(5e-7)
    with pytest.raises(RobotError, match=r"'knee' does not close .* a gap of .*e-07 remains"):
        Closure(robot, REFERENCE)
    tolerance = 5e-7 * 0.6
    closure = Closure(robot, {"crank": 3.0, "coupler": assembled(3.0)[0]}, tolerance)
    found = set()
    for crank in np.linspace(-3.0, 3.0, 60):
        height = ROCKER * np.sin(assembled(crank)[1])
        if abs(height - 0.6) < 1e-3:
            continue
        result = closure.solve({"crank": crank})
        expected = ClosureStatus.OK if height < 0.6 else ClosureStatus.NOT_CLOSED
        assert result.status is expected
        assert result.about == ("" if height < 0.6 else "loop 'knee'")
        found.add(expected)
    assert len(found) == 2


def test_a_bad_call_does_not_spoil_the_next(closure):
    bound = closure.bind(["crank"])
    for value in (0.9, np.nan, 0.95, np.inf, 1.0):
        bound.measured[0] = value
        status = bound.solve()
        assert (status is ClosureStatus.OK) == bool(np.isfinite(value))
        assert np.isnan(bound.q).all() != np.isfinite(value)
    bound.reset()
    bound.measured[0] = 2.5
    assert bound.solve() is ClosureStatus.OK and same_turn(bound.q[1:], assembled(2.5))


def test_measured_positions_may_be_assigned():
    bound = Closure(four_bar(), REFERENCE).bind(["crank", "rocker"])
    # Positions that were never written are none.
    assert bound.solve() is ClosureStatus.NOT_FINITE and np.isnan(bound.q).all()
    array = bound.measured
    bound.measured = [0.7, assembled(0.7)[1]]
    assert bound.measured is array
    assert bound.solve() is ClosureStatus.OK and bound.q[0] == 0.7
    for wrong in (0.3, [0.3], [[0.3, 0.2]], "0.3", [0.3, None]):
        with pytest.raises(InputError, match="measured (has shape|is)"):
            bound.measured = wrong
    assert array[0] == 0.7


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_bound_closures_are_not_copied(copied):
    bound = Closure(four_bar()).bind(["crank"])
    with pytest.raises(InputError, match="copy or pickle its Closure and bind that"):
        copied(bound)


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_copies_of_a_closure_have_its_arguments(copied) -> None:
    first = Closure(four_bar(), REFERENCE, 1e-9, 1e-6, cache=False)
    first.solve({"crank": 0.9})
    again = copied(first)
    assert again.robot.to_bytes() == first.robot.to_bytes()
    assert np.array_equal(again.reference, first.reference)
    assert same_turn(again.solve({"crank": 1.4}).q, [1.4, *assembled(1.4)])
    crank, rocker = 1.4, assembled(1.4)[1]
    result = again.solve({"crank": crank, "rocker": rocker + 1e-5})
    assert result.status is ClosureStatus.CONTRADICTION, "the agreement is copied, too"
    assert (again._tolerance, again._cache) == (1e-9, False)


def test_threads_do_not_share_a_start(closure):
    failures: list[object] = []

    def work(seed: int) -> None:
        for crank in np.random.default_rng(seed).uniform(-3.0, 3.0, 200):
            result = closure.solve({"crank": crank})
            if not (
                result.status is ClosureStatus.OK and same_turn(result.q[1:], assembled(crank))
            ):
                failures.append((crank, result))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not failures


@pytest.fixture(name="compiled")
def make_compiled(monkeypatch):
    """Return the sets of joints for which something is compiled."""
    found: list[tuple[int, ...]] = []

    def counted(step, *arguments):
        found.append(step.unknown)
        return newton_for(step, *arguments)

    monkeypatch.setattr(closure_module, "newton_for", counted)
    return found


def test_of_many_sets_of_joints_the_oldest_is_compiled_again(compiled, monkeypatch) -> None:
    monkeypatch.setattr(closure_module, "_MOST_COMPILED", 2)
    closure = Closure(four_bar(), REFERENCE)
    crank, coupler, rocker = (closure.bind([name]) for name in ("crank", "coupler", "rocker"))
    assert len(compiled) == 3
    for name in ("rocker", "coupler"):
        closure.bind([name])
    assert len(compiled) == 3
    closure.bind(["crank"])
    assert len(compiled) == 4 and compiled[0] == compiled[3]
    # What is bound goes on without.
    crank.measured[0] = 1.4
    assert crank.solve() is ClosureStatus.OK and same_turn(crank.q[1:], assembled(1.4))


def test_a_check_compiles_nothing(compiled) -> None:
    closure = Closure(four_bar(), REFERENCE)
    closure.check(["crank", "rocker"])
    for names, words in (
        ([], "loop 'knee': none of its joints is measured"),
        (["anchor"], "unknown joint 'anchor'"),
        (["crank", "crank"], "joint 'crank' is measured more than once"),
    ):
        for ask in (closure.check, closure.bind):
            with pytest.raises(InputError, match=words):
                ask(names)
    assert not compiled


def test_what_is_compiled_does_not_wait_for_what_is_not(monkeypatch) -> None:
    closure = Closure(four_bar(), REFERENCE)
    closure.bind(["crank"])
    begun, end = threading.Event(), threading.Event()

    def slow(*arguments):
        begun.set()
        assert end.wait(HANG_S)
        return newton_for(*arguments)

    monkeypatch.setattr(closure_module, "newton_for", slow)
    slow_one = threading.Thread(target=closure.bind, args=(["rocker"],))
    slow_one.start()
    assert begun.wait(HANG_S)
    quick_one = threading.Thread(target=closure.bind, args=(["crank"],))
    quick_one.start()
    quick_one.join(HANG_S)
    waits = quick_one.is_alive()
    end.set()
    for thread in (slow_one, quick_one):
        thread.join()
    assert not waits


def test_a_problem_may_be_given_for_its_robot():
    robot = four_bar()
    assert Closure(Problem(robot, [Contact("tip", "tip")]), REFERENCE).robot is robot


def test_an_open_chain_needs_everything():
    joints = [Joint("a", JointKind.REVOLUTE, WORLD), Joint("b", JointKind.PLANAR, 0)]
    robot = robot_of(joints)
    result = Closure(robot).solve({"b": [1.0, 2.0, 3.0], "a": 0.5})
    assert result.status is ClosureStatus.OK and result.q.tolist() == [0.5, 1.0, 2.0, 3.0]
    assert result.residual == 0.0


def test_no_joint_gets_positions_of_another():
    """Too few of one and too many of the next are as many as expected."""
    joints = [Joint("a", JointKind.PLANAR, WORLD), Joint("b", JointKind.PLANAR, 0)]
    closure = Closure(robot_of(joints))
    with pytest.raises(InputError, match="joint 'a' is measured with 2 numbers, expected 3"):
        closure.solve({"a": [1.0, 2.0], "b": [3.0, 4.0, 5.0, 6.0]})
    with pytest.raises(InputError, match="joint 'b' is measured with 1 number, expected 3"):
        closure.solve({"a": [1.0, 2.0, 3.0], "b": 4.0})
