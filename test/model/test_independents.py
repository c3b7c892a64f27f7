"""Independent coordinates: stated and checked, or chosen."""

from __future__ import annotations

import math

import numpy as np
import pytest
from small_loops import Z, actuator, assembled, at, four_bar, geared_chain, hinge

from delassus_ros.errors import RobotError
from delassus_ros.model import (
    WORLD,
    Coupling,
    FunctionConstraint,
    Joint,
    JointKind,
    Loop,
    LoopKind,
    Robot,
    Transform,
    clusters_of,
)
from delassus_ros.model.clusters import groups_of, independent_joints, null_motions
from delassus_ros.model.spatial import rotation_from_rpy


def independent(robot: Robot) -> list[str]:
    return [robot.joints[j].name for cluster in clusters_of(robot) for j in cluster.independent]


def coupled(*couplings: Coupling, stated: tuple[str, ...] = ()) -> Robot:
    """Return three joints on the world, coupled."""
    joints = [hinge(name, WORLD) for name in "abc"]
    return assembled(joints, couplings=couplings, independent=stated)


def screwed(q: list[float]) -> list[float]:
    return [500.0 * q[0]]


def doubled(q: list[float]) -> list[float]:
    return [2.0 * q[0], 3.0 * q[0]]


def crossed(q: list[float]) -> list[float]:
    return [q[0] * q[0] + q[1] * q[1] - 1.0]


def rooted(q: list[float]) -> list[float]:
    return [math.sqrt(q[0] - 0.01) - q[1]]


def wordy(q: list[float]) -> list[float]:
    return [0.0, 0.0]


# --- couplings --------------------------------------------------------------------------------


def test_the_first_joint_of_a_coupling_is_dependent() -> None:
    assert independent(coupled(Coupling("g", (("a", 1.0), ("c", 5.0))))) == ["c", "b"]
    assert independent(coupled(Coupling("g", (("c", 1e-3), ("a", 5.0))))) == ["a", "b"]


def test_a_chain_of_couplings_leaves_its_last_joint_independent() -> None:
    chain = (Coupling("ab", (("a", 1.0), ("b", -2.0))), Coupling("bc", (("b", 1.0), ("c", 3.0))))
    assert independent(coupled(*chain)) == independent(coupled(*reversed(chain))) == ["c"]


def test_couplings_with_the_same_first_joint_find_others() -> None:
    both = (Coupling("ab", (("a", 1.0), ("b", -2.0))), Coupling("ac", (("a", 1.0), ("c", 3.0))))
    assert len(independent(coupled(*both))) == 1


def test_stated_joints_are_taken() -> None:
    for name in "abc":
        chain = (
            Coupling("ab", (("a", 1.0), ("b", -2.0))),
            Coupling("bc", (("b", 1.0), ("c", 3.0))),
        )
        assert independent(coupled(*chain, stated=(name,))) == [name]


def test_statements_about_one_cluster_leave_others_alone() -> None:
    robot = geared_chain(2)
    stated = robot.with_constraints(independent=("rotor1",))
    assert independent(robot) == ["root", "link0", "link1"]
    assert independent(stated) == ["root", "link0", "rotor1"]


def test_a_coupling_said_twice_does_no_harm() -> None:
    twice = (
        Coupling("one", (("a", 0.1), ("b", -0.3)), 0.2),
        Coupling("two", (("b", 3.0), ("a", -1.0)), -2.0),
    )
    assert len(independent(coupled(*twice))) == 2


def test_refuses_couplings_that_contradict_each_other() -> None:
    robot = coupled(
        Coupling("one", (("a", 1.0), ("b", -3.0)), 0.2),
        Coupling("other", (("b", 3.0), ("a", -1.0)), 0.2),
    )
    with pytest.raises(RobotError, match="coupling 'other' contradicts .* together: 'one'"):
        clusters_of(robot)


@pytest.mark.parametrize("other", [100.01, 100.001, 100.0 * (1 + 1e-8)])
def test_refuses_couplings_that_are_nearly_the_same(other: float) -> None:
    """Left out, there would be one freedom too many; kept, the joints would be locked."""
    robot = coupled(
        Coupling("one", (("a", -1.0), ("b", 100.0))),
        Coupling("other", (("a", -1.0), ("b", other))),
    )
    with pytest.raises(RobotError, match="'other' says nearly, but not quite, .*together: 'one'"):
        clusters_of(robot)


@pytest.mark.parametrize("lead", [1.0, 1e-3, 1e-5, 1e-7])
def test_fine_screws_that_turn_together(lead: float) -> None:
    screws = (Coupling(name, (("a", -1.0), (name, lead))) for name in ("b", "c"))
    assert len(independent(coupled(*screws))) == 1


def test_refuses_couplings_that_lock_their_joints() -> None:
    lock = (Coupling("one", (("a", 1.0), ("b", 1.0))), Coupling("two", (("a", 1.0), ("b", 2.0))))
    with pytest.raises(RobotError, match="couplings 'one', 'two': joints 'a', 'b' cannot move"):
        clusters_of(coupled(*lock))


@pytest.mark.parametrize(
    ("stated", "count"), [(("a", "b", "c"), "3 .*'a', 'b', 'c'"), (("b",), "1 .*'b'")]
)
def test_refuses_a_wrong_number_of_independent_joints(stated: tuple[str, ...], count: str) -> None:
    total = Coupling("sum", (("a", 1.0), ("b", 1.0), ("c", 1.0)))
    words = f"coupling 'sum': {count}.*but the 3 joints 'a', 'b', 'c' need 2"
    with pytest.raises(RobotError, match=words):
        clusters_of(coupled(total, stated=stated))


def test_refuses_independent_joints_that_do_not_determine_the_others() -> None:
    # The coupling of a and b says nothing about c, which comes in by the second.
    couplings = (
        Coupling("ab", (("a", 1.0), ("b", 1.0))),
        Coupling("abc", (("a", 1.0), ("b", 1.0), ("c", 1.0))),
    )
    with pytest.raises(
        RobotError,
        match="couplings 'ab', 'abc': joints 'a', 'b' cannot close it: they do not follow from "
        "the independent joints 'c'",
    ):
        clusters_of(coupled(*couplings, stated=("c",)))


# --- loops ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [LoopKind.POINT, LoopKind.HINGE])
def test_a_four_bar_has_one_freedom_however_many_rows_close_it(kind: LoopKind) -> None:
    (cluster,) = clusters_of(four_bar(kind))
    assert len(cluster.independent) == 1 and len(cluster.dependent) == 2


@pytest.mark.parametrize("name", ["crank", "rod", "rocker"])
def test_any_joint_of_a_four_bar_can_be_stated(name: str) -> None:
    assert independent(four_bar(independent=(name,))) == [name]


def test_a_slider_crank_has_one_freedom() -> None:
    along_x = Transform(rotation_from_rpy((0.0, np.pi / 2, 0.0)))
    joints = [
        hinge("crank", WORLD),
        hinge("rod", 0, 0.3),
        Joint("slide", JointKind.PRISMATIC, WORLD, along_x, Z),
    ]
    pin = Loop("pin", LoopKind.POINT, 1, 2, at(0.8), at(), Z)
    assert len(independent(assembled(joints, loops=[pin]))) == 1


def test_refuses_a_loop_that_locks_its_joints() -> None:
    joints = [hinge("crank", WORLD), hinge("rod", 0, 0.3)]
    # No translation along y, no rotation about x and z: both joints turn about z.
    loop = Loop("rail", LoopKind.PLANAR, WORLD, 1, at(), at(0.8), np.array([0.0, 1.0, 0.0]))
    with pytest.raises(RobotError, match="loop 'rail': joints 'crank', 'rod' cannot move"):
        clusters_of(assembled(joints, loops=[loop]))


def test_motors_are_independent_as_far_as_possible() -> None:
    (group,) = groups_of(four_bar())
    for joint in range(3):
        assert independent_joints(group, [joint]) == (joint,)
    chosen = independent_joints(group, [0, 2])
    assert len(chosen) == 1 and chosen[0] in (0, 2)
    (geared,) = groups_of(geared_chain(1, floating=False))
    assert independent_joints(geared, [1]) == (1,)


def test_the_choice_is_the_same_every_time() -> None:
    assert independent(four_bar()) == independent(four_bar())


def test_rounded_angles_do_not_make_redundant_rows_count() -> None:
    upright = Transform(rotation_from_rpy((1.5708, 0.0, 0.0)))
    turned = Transform(rotation_from_rpy((-1.5708, 0.0, 0.0)), np.array([0.5, 0.0, 0.0]))
    joints = [
        Joint("crank", JointKind.REVOLUTE, WORLD, upright, Z),
        Joint("rod", JointKind.REVOLUTE, 0, turned, np.array([0.0, -1.0, 0.0])),
        Joint("rocker", JointKind.REVOLUTE, WORLD, upright @ at(1.0), Z),
    ]
    loop = Loop("bar", LoopKind.HINGE, 1, 2, at(0.8) @ upright, at(0.5), Z)
    assert len(independent(assembled(joints, loops=[loop]))) == 1


def test_highly_geared_motors_can_be_stated() -> None:
    plain = four_bar()
    gear = Coupling("gear", (("motor", 1e-6), ("crank", 1.0)))
    joints = [*plain.joints, hinge("motor", WORLD)]
    for name in ("crank", "motor", "rocker"):
        robot = assembled(joints, loops=plain.loops, couplings=[gear], independent=[name])
        assert independent(robot) == [name]


def test_refuses_a_loop_that_cannot_close() -> None:
    with pytest.raises(
        RobotError,
        match=r"loop 'bar' does not close: a gap of 0.5 \(m or rad\) .* joints 'crank', 'rod', "
        "'rocker'; check its frames",
    ):
        clusters_of(four_bar(LoopKind.POINT, rod=2.5))


def test_refuses_a_loop_that_is_not_in_the_plane_of_its_joints() -> None:
    joints = list(four_bar().joints)
    loop = Loop("bar", LoopKind.HINGE, 1, 2, at(1.0, z=0.02), at(0.5), Z)
    with pytest.raises(RobotError, match=r"loop 'bar' does not close: a gap of 0.02"):
        clusters_of(assembled(joints, loops=[loop]))


def test_says_which_of_several_loops_cannot_close_and_that_it_would_as_a_point() -> None:
    """The bar is fine; the second loop welds the rod's end at a right angle to what it meets."""
    plain = four_bar()
    upright = Transform(np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]]))
    joints = [*plain.joints, hinge("lever", WORLD, 0.9)]
    wrong = Loop("weld", LoopKind.WELD, 1, 3, at(0.8) @ upright, at(0.5))
    with pytest.raises(
        RobotError,
        match=r"loop 'weld' does not close, not even without the others: a gap of 1\.\d+ .* "
        r"joints 'crank', 'rod', 'lever'; check .*; as a point it would",
    ):
        clusters_of(assembled(joints, loops=[*plain.loops, wrong]))


def test_refuses_several_independent_joints_of_a_four_bar() -> None:
    with pytest.raises(RobotError, match="loop 'bar': 2 .*'crank', 'rod'.*3 joints .* need 1"):
        clusters_of(four_bar(independent=("crank", "rod")))


def test_loops_and_couplings_in_one_cluster() -> None:
    plain = four_bar()
    robot = assembled(
        [*plain.joints, hinge("motor", WORLD)],
        loops=plain.loops,
        couplings=[Coupling("gear", (("motor", -1.0), ("crank", 50.0)))],
    )
    (cluster,) = clusters_of(robot)
    assert cluster.joints == (0, 1, 2, 3) and len(cluster.independent) == 1
    assert 3 in cluster.dependent


# --- functions --------------------------------------------------------------------------------


def test_joints_that_a_function_gives_are_dependent() -> None:
    joints = [hinge(name, WORLD) for name in "abc"]
    function = FunctionConstraint("cam", ("b",), doubled, 2, ("a", "c"))
    assert independent(assembled(joints, functions=[function])) == ["b"]


def test_a_function_may_turn_a_motor_far() -> None:
    """A screw as a function: the boom alone is free, as with a coupling."""
    robot = actuator(independent=())
    function = FunctionConstraint("screw", ("rod",), screwed, 1, ("motor",))
    geared = assembled([*robot.joints, hinge("motor", 1)], loops=robot.loops, functions=[function])
    assert len(independent(geared)) == 1


def test_an_implicit_function_leaves_its_rank() -> None:
    joints = [hinge(name, WORLD) for name in "abc"]
    function = FunctionConstraint("circle", ("a", "c"), crossed, 1)
    assert len(independent(assembled(joints, functions=[function]))) == 2


def test_a_function_may_be_undefined_somewhere() -> None:
    joints = [hinge(name, WORLD) for name in "ab"]
    function = FunctionConstraint("root", ("a", "b"), rooted, 1)
    assert len(independent(assembled(joints, functions=[function]))) == 1


def test_refuses_a_function_that_returns_another_number_of_rows() -> None:
    joints = [hinge(name, WORLD) for name in "ab"]
    function = FunctionConstraint("odd", ("a", "b"), wordy, 1)
    with pytest.raises(RobotError, match="'odd': its function returned 2 numbers, expected 1"):
        clusters_of(assembled(joints, functions=[function]))


# --- motions ----------------------------------------------------------------------------------


def test_null_motions_keep_loops_closed() -> None:
    (group,) = groups_of(four_bar())
    closure, q, motions = null_motions(group)
    assert motions.shape == (3, 1)
    assert np.abs(closure.gap(q)).max() < 1e-9
    for step in (1e-4, -1e-4):
        assert np.abs(closure.gap(q + step * motions[:, 0])).max() < 1e-7
    assert np.abs(closure.gap(q + 1e-4 * np.array([1.0, 0.0, 0.0]))).max() > 1e-6
