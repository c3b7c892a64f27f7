"""Independent coordinates: stated and checked, or chosen."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from linkages import (
    Z,
    actuator,
    at,
    geared_chain,
    hinge,
    independent,
    robot_of,
    stretched_four_bar,
)

from delassus.errors import RobotError
from delassus.model import (
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
from delassus.model.clusters import groups_of, independent_joints, null_motions
from delassus.model.spatial import rotation_from_rpy
from delassus.scalars.functions import sqrt


def coupled(*couplings: Coupling, stated: tuple[str, ...] = ()) -> Robot:
    """Return three joints on the world, coupled."""
    joints = [hinge(name, WORLD) for name in "abc"]
    return robot_of(joints, couplings=couplings, independent=stated)


def screwed(q: list[float]) -> list[float]:
    return [500.0 * q[0]]


def doubled(q: list[float]) -> list[float]:
    return [2.0 * q[0], 3.0 * q[0]]


def crossed(q: list[float]) -> list[float]:
    return [q[0] * q[0] + q[1] * q[1] - 1.0]


def rooted(q: list[float]) -> list[float]:
    return [sqrt(q[0] - 0.01) - q[1]]


def two_rows(q: list[float]) -> list[float]:
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


def test_redundant_coupling_accepted() -> None:
    twice = (
        Coupling("one", (("a", 0.1), ("b", -0.3)), 0.2),
        Coupling("two", (("b", 3.0), ("a", -1.0)), -2.0),
    )
    assert len(independent(coupled(*twice))) == 2


@pytest.mark.parametrize("lead", [1.0, 1e-3, 1e-5, 1e-7])
def test_fine_screws_that_turn_together(lead: float) -> None:
    screws = (Coupling(name, (("a", -1.0), (name, lead))) for name in ("b", "c"))
    assert len(independent(coupled(*screws))) == 1


# --- loops ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [LoopKind.POINT, LoopKind.HINGE])
def test_a_four_bar_has_one_freedom_however_many_rows_close_it(kind: LoopKind) -> None:
    (cluster,) = clusters_of(stretched_four_bar(kind))
    assert len(cluster.independent) == 1 and len(cluster.dependent) == 2


@pytest.mark.parametrize("name", ["crank", "rod", "rocker"])
def test_any_joint_of_a_four_bar_can_be_stated(name: str) -> None:
    assert independent(stretched_four_bar(independent=(name,))) == [name]


def test_a_slider_crank_has_one_freedom() -> None:
    along_x = Transform(rotation_from_rpy((0.0, np.pi / 2, 0.0)))
    joints = [
        hinge("crank", WORLD),
        hinge("rod", 0, 0.3),
        Joint("slide", JointKind.PRISMATIC, WORLD, along_x, Z),
    ]
    pin = Loop("pin", LoopKind.POINT, 1, 2, at(0.8), at(), Z)
    assert len(independent(robot_of(joints, loops=[pin]))) == 1


def test_motors_are_independent_as_far_as_possible() -> None:
    (group,) = groups_of(stretched_four_bar())
    for joint in range(3):
        assert independent_joints(group, [joint]) == (joint,)
    chosen = independent_joints(group, [0, 2])
    assert len(chosen) == 1 and chosen[0] in (0, 2)
    (geared,) = groups_of(geared_chain(1, floating=False))
    assert independent_joints(geared, [1]) == (1,)


def test_the_choice_is_the_same_every_time() -> None:
    assert independent(stretched_four_bar()) == independent(stretched_four_bar())


def test_rounded_angles_do_not_make_redundant_rows_count() -> None:
    upright = Transform(rotation_from_rpy((1.5708, 0.0, 0.0)))
    turned = Transform(rotation_from_rpy((-1.5708, 0.0, 0.0)), np.array([0.5, 0.0, 0.0]))
    joints = [
        Joint("crank", JointKind.REVOLUTE, WORLD, upright, Z),
        Joint("rod", JointKind.REVOLUTE, 0, turned, np.array([0.0, -1.0, 0.0])),
        Joint("rocker", JointKind.REVOLUTE, WORLD, upright @ at(1.0), Z),
    ]
    loop = Loop("bar", LoopKind.HINGE, 1, 2, at(0.8) @ upright, at(0.5), Z)
    assert len(independent(robot_of(joints, loops=[loop]))) == 1


def test_highly_geared_motors_can_be_stated() -> None:
    plain = stretched_four_bar()
    gear = Coupling("gear", (("motor", 1e-6), ("crank", 1.0)))
    joints = [*plain.joints, hinge("motor", WORLD)]
    for name in ("crank", "motor", "rocker"):
        robot = robot_of(joints, loops=plain.loops, couplings=[gear], independent=[name])
        assert independent(robot) == [name]


def test_loops_and_couplings_in_one_cluster() -> None:
    plain = stretched_four_bar()
    robot = robot_of(
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
    assert independent(robot_of(joints, functions=[function])) == ["b"]


def test_a_function_may_turn_a_motor_far() -> None:
    """A screw as a function: the boom alone is free, as with a coupling."""
    robot = actuator(independent=())
    function = FunctionConstraint("screw", ("rod",), screwed, 1, ("motor",))
    geared = robot_of([*robot.joints, hinge("motor", 1)], loops=robot.loops, functions=[function])
    assert len(independent(geared)) == 1


def test_an_implicit_function_leaves_its_rank() -> None:
    joints = [hinge(name, WORLD) for name in "abc"]
    function = FunctionConstraint("circle", ("a", "c"), crossed, 1)
    assert len(independent(robot_of(joints, functions=[function]))) == 2


def test_a_function_may_be_undefined_somewhere() -> None:
    joints = [hinge(name, WORLD) for name in "ab"]
    function = FunctionConstraint("root", ("a", "b"), rooted, 1)
    assert len(independent(robot_of(joints, functions=[function]))) == 1


# --- motions ----------------------------------------------------------------------------------


def test_null_motions_keep_loops_closed() -> None:
    (group,) = groups_of(stretched_four_bar())
    closure, q, motions = null_motions(group)
    assert motions.shape == (3, 1)
    assert np.abs(closure.gap(q)).max() < 1e-9
    for step in (1e-4, -1e-4):
        assert np.abs(closure.gap(q + step * motions[:, 0])).max() < 1e-7
    assert np.abs(closure.gap(q + 1e-4 * np.array([1.0, 0.0, 0.0]))).max() > 1e-6


# --- refusals ---------------------------------------------------------------------------------


def pair(name: str, first: float, second: float, *offset: float, joints: str = "ab") -> Coupling:
    return Coupling(name, ((joints[0], first), (joints[1], second)), *offset)


SUM = Coupling("sum", (("a", 1.0), ("b", 1.0), ("c", 1.0)))
UPRIGHT = Transform(np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]]))
REFUSED = [
    (
        lambda: coupled(pair("one", 1.0, -3.0, 0.2), pair("other", 3.0, -1.0, 0.2, joints="ba")),
        "coupling 'other' contradicts .* together: 'one'",
    ),
    # Left out, there would be one freedom too many; kept, the joints would be locked.
    *(
        (
            lambda ratio=ratio: coupled(pair("one", -1.0, 100.0), pair("other", -1.0, ratio)),
            "'other' says nearly, but not quite, .*together: 'one'",
        )
        for ratio in (100.01, 100.001, 100.0 * (1 + 1e-8))
    ),
    (
        lambda: coupled(pair("one", 1.0, 1.0), pair("two", 1.0, 2.0)),
        "couplings 'one', 'two': joints 'a', 'b' cannot move",
    ),
    (
        lambda: coupled(SUM, stated=("a", "b", "c")),
        "coupling 'sum': 3 .*'a', 'b', 'c'.*but the 3 joints 'a', 'b', 'c' need 2",
    ),
    (
        lambda: coupled(SUM, stated=("b",)),
        "coupling 'sum': 1 .*'b'.*but the 3 joints 'a', 'b', 'c' need 2",
    ),
    # The coupling of a and b says nothing about c, which comes in by the second.
    (
        lambda: coupled(pair("ab", 1.0, 1.0), SUM, stated=("c",)),
        "couplings 'ab', 'sum': joints 'a', 'b' cannot close it: they do not follow from the "
        "independent joints 'c'",
    ),
    # No translation along y, no rotation about x and z: both joints turn about z.
    (
        lambda: robot_of(
            [hinge("crank", WORLD), hinge("rod", 0, 0.3)],
            loops=[Loop("rail", LoopKind.PLANAR, WORLD, 1, at(), at(0.8), np.eye(3)[1])],
        ),
        "loop 'rail': joints 'crank', 'rod' cannot move",
    ),
    (
        lambda: stretched_four_bar(LoopKind.POINT, rod=2.5),
        r"loop 'bar' does not close: a gap of 0.5 \(m or rad\) .* joints 'crank', 'rod', "
        "'rocker'; check its frames",
    ),
    # Not in the plane of its joints.
    (
        lambda: robot_of(
            list(stretched_four_bar().joints),
            loops=[Loop("bar", LoopKind.HINGE, 1, 2, at(1.0, z=0.02), at(0.5), Z)],
        ),
        r"loop 'bar' does not close: a gap of 0.02",
    ),
    # The bar is fine; the second loop welds the rod's end at a right angle to what it meets.
    (
        lambda: robot_of(
            [*stretched_four_bar().joints, hinge("lever", WORLD, 0.9)],
            loops=[
                *stretched_four_bar().loops,
                Loop("weld", LoopKind.WELD, 1, 3, at(0.8) @ UPRIGHT, at(0.5)),
            ],
        ),
        r"loop 'weld' does not close, not even without the others: a gap of 1\.\d+ .* "
        r"joints 'crank', 'rod', 'lever'; check .*; as a point it would",
    ),
    (
        lambda: stretched_four_bar(independent=("crank", "rod")),
        "loop 'bar': 2 .*'crank', 'rod'.*3 joints .* need 1",
    ),
    (
        lambda: robot_of(
            [hinge(name, WORLD) for name in "ab"],
            functions=[FunctionConstraint("odd", ("a", "b"), two_rows, 1)],
        ),
        "'odd': its function returned 2 numbers, expected 1",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("make", "words"), REFUSED)
def test_refused(make: Callable[[], Robot], words: str) -> None:
    with pytest.raises(RobotError, match=words):
        clusters_of(make())
