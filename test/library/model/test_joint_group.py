"""The joints of a cluster with the constraints between them."""

from __future__ import annotations

import numpy as np
from linkages import geared_chain, hinge, robot_of, stretched_four_bar

from delassus.model import WORLD, Coupling, FunctionConstraint, Loop, LoopKind
from delassus.model.clusters import groups_of
from delassus.model.joint_group import JointGroup, joints_of


def cam(q: list[float]) -> list[float]:
    return [q[0]]


def test_coupling_rows_are_scaled_to_their_largest_factor() -> None:
    joints = [hinge(name, WORLD) for name in "abc"]
    couplings = (
        Coupling("one", (("c", -8.0), ("a", 2.0)), 4.0),
        Coupling("two", (("b", 1.0), ("a", 0.5))),
    )
    group = JointGroup(robot_of(joints, couplings=couplings), (0, 1, 2), couplings)
    assert group.columns == {"a": 0, "b": 1, "c": 2}
    expected = np.array([[0.25, 0.0, -1.0, 0.5], [0.5, 1.0, 0.0, 0.0]])
    assert np.array_equal(group.coupling_rows(), expected)


def test_described_names_every_constraint() -> None:
    robot = stretched_four_bar().with_constraints(
        [Coupling("g", (("crank", 1.0), ("rocker", 1.0)))],
        functions=[FunctionConstraint("cam", ("rod",), cam, 1)],
    )
    (group,) = groups_of(robot)
    assert not group.is_ordinary
    assert group.described() == "coupling 'g' and loop 'bar' and constraint 'cam'"
    assert group.names([2, 0]) == "'rocker', 'crank'"
    assert group.names([]) == "none"


def test_linear_joints_are_in_no_loop_and_no_input_of_a_function() -> None:
    """What both ends of a loop hang on does not move them against each other."""
    names = ("base", "crank", "rod", "rocker", "rotor", "cam", "follower")
    parents = (WORLD, 0, 1, 0, 0, 0, 0)
    joints = [hinge(name, parent, 0.5) for name, parent in zip(names, parents, strict=True)]
    robot = robot_of(
        joints,
        couplings=[Coupling("g", (("rotor", 9.0), ("crank", 1.0), ("base", 1.0), ("cam", 1.0)))],
        loops=[Loop("bar", LoopKind.HINGE, 2, 3)],
        functions=[FunctionConstraint("cam", ("cam",), cam, 1, ("follower",))],
    )
    (group,) = groups_of(robot)
    assert joints_of(robot, robot.loops[0]) == [1, 2, 3]
    linear = dict(zip(names, group.is_linear.tolist(), strict=True))
    assert [name for name in names if linear[name]] == ["base", "rotor", "follower"]


def test_an_ordinary_joint_is_not_tied() -> None:
    root, geared = groups_of(geared_chain(1))
    assert (root.is_ordinary, geared.is_ordinary) == (True, False)
    assert geared.described() == "coupling 'gear0'"
