"""Which joints make a cluster, and what carries it."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from linkages import Z, at, geared_chain, hinge, robot_of, stretched_four_bar
from seeds import seeds

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
    clusters_of,
)
from delassus.model.clusters import groups_of
from delassus.testing.random_trees import random_robot


def groups(robot: Robot) -> list[tuple[int, ...]]:
    return [group.joints for group in groups_of(robot)]


def same(q: list[float]) -> list[float]:
    return [q[0] - q[1]]


# --- grouping ---------------------------------------------------------------------------------


def test_every_joint_of_a_tree_is_a_cluster_of_its_own() -> None:
    robot = random_robot(np.random.default_rng(3), floating=True)
    clusters = clusters_of(robot)
    assert [cluster.joints for cluster in clusters] == [(i,) for i in range(len(robot.joints))]
    for cluster in clusters:
        assert cluster.is_ordinary and cluster.is_constant
        assert cluster.independent == cluster.joints and cluster.dependent == ()
        assert cluster.parent == robot.joints[cluster.joints[0]].parent


def test_gears_make_pairs_of_link_and_rotor() -> None:
    clusters = clusters_of(geared_chain(3))
    assert [cluster.joints for cluster in clusters] == [(0,), (1, 2), (3, 4), (5, 6)]
    assert [cluster.parent for cluster in clusters] == [WORLD, 0, 1, 3]
    assert [cluster.independent for cluster in clusters] == [(0,), (1,), (3,), (5,)]
    assert [cluster.constraint_names for cluster in clusters[1:]] == [
        ("gear0",), ("gear1",), ("gear2",)
    ]  # fmt: skip
    assert all(cluster.is_constant for cluster in clusters)


def test_a_belt_over_two_links_takes_both_with_their_rotors() -> None:
    joints = [hinge("a", WORLD), hinge("motor a", WORLD), hinge("motor b", WORLD), hinge("b", 0)]
    couplings = [
        Coupling("gear", (("motor a", -1.0), ("a", 6.0))),
        Coupling("belt", (("motor b", -1.0), ("a", 9.0), ("b", 9.0))),
    ]
    (cluster,) = clusters_of(robot_of([*joints, hinge("c", 3)], couplings=couplings))[:-1]
    assert (cluster.joints, cluster.independent) == ((0, 1, 2, 3), (0, 3))


def test_joints_between_coupled_ones_belong_to_the_cluster() -> None:
    joints = [hinge("a", WORLD), hinge("b", 0), hinge("c", 1), hinge("d", 2)]
    coupling = Coupling("tip follows base", (("c", 1.0), ("a", -1.0)))
    clusters = clusters_of(robot_of(joints, couplings=[coupling]))
    assert [cluster.joints for cluster in clusters] == [(0, 1, 2), (3,)]
    assert clusters[0].independent == (0, 1)


def test_a_loop_takes_both_branches_from_the_nearest_common_ancestor() -> None:
    joints = [
        hinge("arm", WORLD), hinge("a", 0), hinge("b", 1, 1.0), hinge("c", 0, 0.2),
        hinge("hand", 2),
    ]  # fmt: skip
    loop = Loop("parallel", LoopKind.POINT, 2, 3, at(0.5), at(1.2), Z)
    clusters = clusters_of(robot_of(joints, loops=[loop]))
    assert [cluster.joints for cluster in clusters] == [(0,), (1, 2, 3), (4,)]
    assert clusters[1].parent == 0
    assert not clusters[1].is_constant


def test_a_loop_back_to_an_ancestor_takes_the_branch_between() -> None:
    joints = [hinge(name, i - 1, 1.0) for i, name in enumerate("abcd")]
    for ends in ((0, 3), (3, 0)):
        loop = Loop("chain", LoopKind.POINT, *ends, at(), at(1.0), Z)
        assert groups(robot_of(joints, loops=[loop])) == [(0,), (1, 2, 3)]
    loop = Loop("ground", LoopKind.POINT, 3, WORLD, at(), at(1.0), Z)
    assert groups(robot_of(joints, loops=[loop])) == [(0, 1, 2, 3)]


def test_constraints_that_share_a_joint_are_in_one_cluster_and_others_are_not() -> None:
    joints = [hinge(name, WORLD) for name in "abcdef"]
    couplings = [Coupling(pair, ((pair[0], 1.0), (pair[1], 2.0))) for pair in ("ac", "bd", "ce")]
    clusters = clusters_of(robot_of(joints, couplings=couplings))
    assert [cluster.joints for cluster in clusters] == [(0, 2, 4), (1, 3), (5,)]
    assert [coupling.name for coupling in clusters[0].couplings] == ["ac", "ce"]


def test_functions_tie_the_joints_that_they_name() -> None:
    joints = [hinge(name, WORLD) for name in "abc"]
    function = FunctionConstraint("cam", ("a", "c"), same, rows=1)
    clusters = clusters_of(robot_of(joints, functions=[function]))
    assert [cluster.joints for cluster in clusters] == [(0, 2), (1,)]
    assert clusters[0].functions == (function,)
    assert clusters[0].constraint_names == ("cam",)
    assert not clusters[0].is_constant and not clusters[0].is_ordinary


def _strong_components(robot: Robot) -> set[frozenset[int]]:
    """Return the components as the URDF+ specification has them, over all paths."""
    count = len(robot.joints)
    parents = [joint.parent for joint in robot.joints]
    # Node i + 1 is body i; node 0 is the world.
    reach = np.eye(count + 1, dtype=bool)
    for body, parent in enumerate(parents):
        reach[parent + 1, body + 1] = True

    def path(body: int) -> list[int]:
        return [] if body == WORLD else [*path(parents[body]), body]

    ends = [(loop.predecessor, loop.successor, 0) for loop in robot.loops]
    names = [joint.name for joint in robot.joints]
    for coupling in robot.couplings:
        (first, _), (second, _) = coupling.ratios
        ends.append((names.index(first), names.index(second), 1))
    for a, b, is_coupling in ends:
        one, other = path(a), path(b)
        common = 0
        # A coupled joint's own body is never what carries both.
        limit = min(len(one), len(other)) - is_coupling
        while common < limit and one[common] == other[common]:
            common += 1
        for last in (one, other):
            for first in (one[common:], other[common:]):
                if first and last[common:]:
                    reach[last[-1] + 1, first[0] + 1] = True
    for k in range(count + 1):
        reach |= np.outer(reach[:, k], reach[k])
    both = reach & reach.T
    return {frozenset((np.flatnonzero(both[i + 1]) - 1).tolist()) for i in range(count)}


@pytest.mark.parametrize("seed", seeds(60))
def test_groups_are_the_strong_components_of_the_graph(seed: int) -> None:
    random = np.random.default_rng(seed)
    tree = random_robot(random, floating=False, largest=20)
    count = len(tree.joints)
    couplings, loops = [], []
    for k in range(int(random.integers(1, 5))):
        a, b = (int(each) for each in random.choice(count, 2, replace=False))
        if random.random() < 0.5:
            ratios = ((tree.joints[a].name, 1.0), (tree.joints[b].name, 2.0))
            couplings.append(Coupling(f"c{k}", ratios))
        else:
            loops.append(Loop(f"l{k}", LoopKind.POINT, a if random.random() < 0.9 else -1, b))
    robot = tree.with_constraints(couplings, loops)
    found = groups(robot)
    assert {frozenset(group) for group in found} == _strong_components(robot)
    # A tree of clusters: what carries a cluster is outside of it and in an earlier one.
    place = {joint: i for i, group in enumerate(found) for joint in group}
    assert sorted(place) == list(range(count))
    for i, group in enumerate(found):
        assert list(group) == sorted(group)
        carriers = {robot.joints[joint].parent for joint in group} - set(group)
        assert len(carriers) == 1
        assert carriers == {WORLD} or place[carriers.pop()] < i


def test_clusters_are_found_once_and_alike_in_a_copy() -> None:
    robot = stretched_four_bar()
    assert clusters_of(robot) is clusters_of(robot)
    (copied,) = clusters_of(pickle.loads(pickle.dumps(robot)))
    assert copied.independent == clusters_of(robot)[0].independent
    assert copied.loops[0].to_bytes() == robot.loops[0].to_bytes()


# --- refusals ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Coupling("a\udc80", (("a", 1.0),)), "its name is 'a.*; expected text that is"),
        (lambda: Loop("a\0", LoopKind.POINT, 0, 1), "its name is 'a.*; expected text without"),
        (lambda: FunctionConstraint(3, ("a",), same, 1), "its name is 3; expected text"),
        (lambda: Coupling("g", (("a", "6"),)), "coupling 'g': a factor is '6'; expected a number"),
        (lambda: Coupling("g", (("a", 6.0),), None), "the offset is None; expected a number"),
        (lambda: Loop("l", LoopKind.HINGE, 0, 1, axis="z"), "loop 'l': axis must be numbers of"),
    ],
)
def test_refuses_what_makes_no_constraint(make, words) -> None:
    with pytest.raises(RobotError, match=words):
        make()


def test_refuses_a_loop_between_a_floating_base_and_the_world() -> None:
    joints = [Joint("root", JointKind.ROOT, WORLD), hinge("leg", 0)]
    robot = robot_of(joints, loops=[Loop("foot", LoopKind.POINT, 1, WORLD)])
    with pytest.raises(RobotError, match="loop 'foot' ties the floating base to the world: read"):
        clusters_of(robot)


@pytest.mark.parametrize("kind", [JointKind.PLANAR, JointKind.FLOATING])
def test_refuses_joints_of_several_freedoms_in_a_loop(kind: JointKind) -> None:
    joints = [hinge("a", WORLD), hinge("b", WORLD, kind=kind), hinge("c", 1)]
    message = f"goes through joint 'b', which is {kind.label}: only revolute and prismatic"
    for constraint, what in (
        ({"loops": [Loop("tie", LoopKind.POINT, 0, 2)]}, "loop"),
        ({"couplings": [Coupling("tie", (("a", 1.0), ("c", 1.0)))]}, "coupling"),
        ({"functions": [FunctionConstraint("tie", ("a", "c"), same, 1)]}, "constraint"),
    ):
        with pytest.raises(RobotError, match=f"{what} 'tie' {message}"):
            clusters_of(robot_of(joints, **constraint))
