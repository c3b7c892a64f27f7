"""Closure stays on the branch of its reference, or says that it cannot."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import robots
from linkages import (
    REFERENCE,
    assembled,
    at,
    bennett,
    closed_bennett,
    four_bar,
    hinge,
    random_linkage,
    random_pose,
    reach_of_the_rocker,
    robot_of,
    same_turn,
    tied,
)
from seeds import seeds

from delassus import Robot, Transform
from delassus.closure import Closure, ClosureStatus
from delassus.errors import RobotError
from delassus.model import (
    WORLD,
    Coupling,
    FunctionConstraint,
    Joint,
    JointKind,
    Loop,
    LoopKind,
)
from delassus.rbda.constraints import residual

KINDS = [LoopKind.POINT, LoopKind.HINGE, LoopKind.WELD]


@pytest.fixture(scope="module")
def closure() -> Closure:
    return Closure(four_bar(), REFERENCE)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("side", [1.0, -1.0])
@pytest.mark.parametrize("mounted", [False, True])
def test_every_crank_angle_on_the_branch_of_the_reference(kind, side, mounted):
    """Random targets, each from the one before: never the other branch."""
    mount = random_pose(np.random.default_rng(4)) if mounted else Transform()
    first = dict(zip(("coupler", "rocker"), assembled(0.8, side), strict=True))
    closure = Closure(four_bar(kind, mount), {"crank": 0.8, **first})
    rng = np.random.default_rng(1)
    for crank in rng.uniform(-np.pi, np.pi, 300):
        result = closure.solve({"crank": crank})
        assert result.status is ClosureStatus.OK and result.about == ""
        assert result.residual <= 1e-13
        assert same_turn(result.q[1:3], assembled(crank, side))
        assert result.q[0] == crank


def test_targets_in_any_order_give_the_branch_or_nothing():
    """The rocker drives: it cannot reach everything, and the crank's dead points divide it."""
    robot = four_bar(independent=("rocker",))
    closure = Closure(robot, REFERENCE)
    rng = np.random.default_rng(2)
    lowest, highest = reach_of_the_rocker()
    found = {status: 0 for status in ClosureStatus}
    for rocker in rng.uniform(lowest - 0.5, highest + 0.5, 300):
        result = closure.solve({"rocker": rocker})
        found[result.status] += 1
        inside = lowest < rocker < highest
        assert (result.status is ClosureStatus.OK) == inside, rocker
        if not inside:
            assert result.status is ClosureStatus.UNREACHABLE
            assert np.isnan(result.q).all() and np.isnan(result.residual)
            assert result.about == "loop 'knee'"
            continue
        # The crank between the dead points where the reference is.
        crank, coupler = result.q[:2]
        assert np.sin(coupler) * np.sin(REFERENCE["coupler"]) > 0
        assert same_turn(result.q[1:], assembled(crank))
    assert min(found[ClosureStatus.OK], found[ClosureStatus.UNREACHABLE]) > 50


def test_at_a_dead_point_it_is_singular():
    closure = Closure(four_bar(independent=("rocker",)), REFERENCE)
    for end in reach_of_the_rocker():
        result = closure.solve({"rocker": end})
        assert result.status is ClosureStatus.SINGULAR
        assert not result.status.is_valid and "knee" in result.about
    assert closure.solve({"rocker": REFERENCE["rocker"]}).status is ClosureStatus.OK


def test_a_mirrored_four_bar_is_no_answer(closure):
    mirrored = [1.4, *assembled(1.4, -1.0)]
    assert np.abs(residual(tied(closure.robot), mirrored)).max() < 1e-14
    result = closure.solve(mirrored)
    assert result.status is ClosureStatus.WRONG_BRANCH and not result.status.is_valid
    assert np.isnan(result.q).all()
    assert result.about == "loop 'knee': closed, but on another branch than the reference"


def test_a_stretched_parallelogram_has_to_be_told_its_branch():
    """It is singular at the neutral position, and both branches meet there."""
    robot = Robot.from_urdf(robots.shared("grbda_four_bar"), base="fixed")
    with pytest.raises(RobotError, match="'loop1' is singular.*state another one as reference"):
        Closure(robot)
    closure = Closure(robot, {"joint1": 0.7, "joint2": -0.7, "joint3": 0.7})
    bound = closure.bind(["joint1"])
    for angle in np.random.default_rng(5).uniform(-4.0, 4.0, 400):
        bound.measured[0] = angle
        status = bound.solve()
        if 0.0 < angle < np.pi:
            assert status is ClosureStatus.OK
            assert same_turn(bound.q, [angle, -angle, angle])
        elif status is ClosureStatus.OK:
            # By whole turns the same configurations.
            assert same_turn(bound.q, [angle, -angle, angle])
        else:
            assert status is ClosureStatus.UNREACHABLE


@pytest.mark.parametrize("seed", seeds(12))
def test_random_four_bars_never_change_their_branch(seed):
    """Lengths as they come: cranks, rockers, and what turns nowhere all the way round."""
    rng = np.random.default_rng(seed)
    ground, crank, coupler, rocker = rng.uniform(0.3, 1.0, 4)

    def sides(angle):
        """Return the height of the coupler's triangle, squared; negative where it is open."""
        far = np.hypot(ground - crank * np.cos(angle), crank * np.sin(angle))
        along = (coupler**2 - rocker**2 + far**2) / (2 * far)
        return coupler**2 - along**2

    angles = np.linspace(-np.pi, np.pi, 2001)
    heights = sides(angles)
    start = float(angles[int(np.argmax(heights))])
    if heights.max() < 0.01:
        pytest.skip("this one does not close")
    robot = four_bar()
    joints = list(robot.joints)
    joints[1] = replace(joints[1], placement=at(crank))
    joints[2] = replace(joints[2], placement=at(ground))
    (loop,) = robot.loops
    loop = replace(loop, predecessor_placement=at(coupler), successor_placement=at(rocker))
    robot = Robot("any", joints, robot.bodies, [], (), [loop], ("crank",))
    closure = Closure(robot, {"crank": start, "coupler": 0.5})

    def side(q: np.ndarray) -> float:
        """Return on which side of the line from pin to pin the coupler is."""
        far = np.array([ground - crank * np.cos(q[0]), -crank * np.sin(q[0])])
        arm = [np.cos(q[0] + q[1]), np.sin(q[0] + q[1])]
        return float(np.sign(far[0] * arm[1] - far[1] * arm[0]))

    there = side(closure.reference)
    counts = {True: 0, False: 0}
    for angle in rng.uniform(-np.pi, np.pi, 80):
        result = closure.solve({"crank": angle})
        counts[result.status is ClosureStatus.OK] += 1
        if result.status is ClosureStatus.OK:
            assert side(result.q) == there
            assert np.abs(residual(tied(robot), result.q.tolist())).max() <= 1e-12
        else:
            assert result.status in (ClosureStatus.UNREACHABLE, ClosureStatus.SINGULAR)
            way = np.linspace(start, angle, 500)
            around = np.linspace(start, angle - 2 * np.pi * np.sign(angle - start), 500)
            for path in (way, around):
                assert sides(path).min() < 2e-4, "a path was there"
    assert counts[True] > 0


def test_a_crank_that_turns_on_and_on_is_measured_within_one_turn(closure):
    bound = closure.bind(["crank"])
    for crank in np.arange(0.0, 40.0, 0.05):
        wrapped = np.arctan2(np.sin(crank), np.cos(crank))
        bound.measured[0] = wrapped
        assert bound.solve() is ClosureStatus.OK
        assert bound.q[0] == wrapped
        assert same_turn(bound.q[1:], assembled(crank))


@pytest.mark.parametrize("kind", LoopKind)
def test_spatial_loops_in_general_position(kind):
    robot, _, q = random_linkage(kind, 41)
    names = robot.joint_names
    closure = Closure(robot, dict(zip(names, q, strict=True)))
    assert np.abs(closure.reference - q).max() <= 1e-10
    bound = closure.bind(names[:3])
    there = []
    # Along a path and back: the way back must find the same configurations.
    path = np.concatenate([np.linspace(0.0, 0.4, 60), np.linspace(0.4, 0.0, 60)])
    for s in path:
        bound.measured[...] = q[:3] + [0.3, s * 0.5, -s * 0.4]
        there.append((bound.solve(), bound.q.copy()))
    for (status, out), (other, back) in zip(there[:60], there[:59:-1], strict=True):
        assert status is other and (status.is_valid or status is ClosureStatus.UNREACHABLE)
        if status.is_valid:
            assert np.abs(out - back).max() <= 1e-8


def test_redundant_rows_do_not_hide_the_branch():
    """Bennett's linkage: six rows for three unknowns, none of them always satisfied."""
    closure = Closure(bennett(), dict(zip(("j0", "j1"), closed_bennett(0.9)[:2], strict=True)))
    for angle in np.random.default_rng(8).uniform(0.1, 3.0, 100):
        result = closure.solve({"j0": angle})
        assert result.status is ClosureStatus.OK and result.residual <= 1e-12
        assert same_turn(result.q, closed_bennett(angle))


@pytest.mark.parametrize("geared", [(), ("a",), ("a", "b", "c")])
@pytest.mark.parametrize("kind", [LoopKind.HINGE, LoopKind.POINT])
def test_redundant_loops_are_on_the_branch_of_their_own_reference(kind, geared):
    """A platform on three parallel cranks: any joint determines all others."""
    joints = [hinge("a", WORLD), hinge("platform", 0, 0.5), hinge("b", WORLD, 1.0)]
    joints += [Joint("c", JointKind.REVOLUTE, WORLD, at(2.0, 0.3))]
    joints += [hinge(f"motor {name}", WORLD) for name in geared]
    gears = [Coupling(name, ((f"motor {name}", -1.0), (name, 6.0))) for name in geared]
    ends = ("b", 2, at(1.0)), ("c", 3, at(2.0, 0.3))
    loops = [Loop(f"pin {name}", kind, 1, crank, pin, at(0.5)) for name, crank, pin in ends]
    robot = robot_of(joints, couplings=gears, loops=loops)
    positions = {"a": 0.8, "platform": -0.8, "b": 0.8, "c": 0.8}
    positions |= {f"motor {name}": 4.8 for name in geared}
    closure = Closure(robot, positions)
    assert np.allclose(closure.reference, list(positions.values()), atol=1e-12)
    assert closure.solve(closure.reference).status is ClosureStatus.OK
    for name in robot.joint_names:
        for moved in (0.0, 1e-6, 1e-2, 0.3):
            result = closure.solve({name: positions[name] + moved})
            assert result.status is ClosureStatus.OK, (name, moved, result.about)
            turned = moved / 6.0 if name.startswith("motor") else abs(moved)
            assert abs(abs(result.q[0] - 0.8) - turned) <= 1e-7


def tripled(x):
    return [3.0 * x[0]]


def test_whole_turns_of_joints_in_functions_count():
    joints = [hinge("driver", WORLD), replace(hinge("follower", 0), lower=-3.0, upper=3.0)]
    cam = FunctionConstraint("cam", ("driver",), tripled, 1, dependent=("follower",))
    closure = Closure(robot_of(joints).with_constraints(functions=[cam]))
    assert closure.solve({"driver": 0.9}).status is ClosureStatus.OK
    assert closure.solve({"driver": 1.2}).status is ClosureStatus.OUTSIDE_LIMITS
    off = closure.solve({"driver": 0.5, "follower": 1.5 + 2.0 * np.pi})
    assert off.status is ClosureStatus.CONTRADICTION
    assert "joint 'follower' is measured 6.28 from where" in off.about
