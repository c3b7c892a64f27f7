"""Constraints that name what a robot does not have."""

from __future__ import annotations

import pytest
from linkages import hinge, robot_of

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


def cam(q: list[float]) -> list[float]:
    return [q[0]]


JOINTS = [Joint("root", JointKind.ROOT, WORLD), hinge("a", 0), hinge("b", 0)]


@pytest.mark.parametrize(
    ("constraints", "words"),
    [
        (
            {"couplings": [Coupling("g", (("a", 1.0), ("c", 1.0)))]},
            "coupling 'g': unknown joint 'c'",
        ),
        ({"couplings": [Coupling("g", (("root", 1.0),))]}, "coupling 'g': unknown joint 'root'"),
        ({"functions": [FunctionConstraint("f", ("c",), cam, 1)]}, "constraint 'f': .* joint 'c'"),
        (
            {"functions": [FunctionConstraint("f", ("a",), cam, 1, ("c",))]},
            "constraint 'f': unknown joint 'c'; joints: a, b",
        ),
        ({"loops": [Loop("l", LoopKind.WELD, 1, 3)]}, "loop 'l': there is no body 3, only 3"),
        ({"loops": [Loop("l", LoopKind.WELD, -2, 1)]}, "loop 'l': there is no body -2"),
        ({"independent": ["c"]}, "independent: unknown joint 'c'; joints: a, b"),
        (
            {
                "couplings": [Coupling("x", (("a", 1.0), ("b", 1.0)))],
                "functions": [FunctionConstraint("x", ("a",), cam, 1)],
            },
            "coupling, loop or constraint 'x' appears twice",
        ),
    ],
)
def test_refuses_constraints_that_do_not_fit(constraints: dict[str, object], words: str) -> None:
    with pytest.raises(RobotError, match=words):
        robot_of(JOINTS, **constraints)
    robot = robot_of(JOINTS)
    with pytest.raises(RobotError, match=words):
        robot.with_constraints(**constraints)  # type: ignore[arg-type]


def test_constraints_are_added_to_those_that_are_there() -> None:
    first, second = Coupling("x", (("a", 1.0),)), Coupling("y", (("b", 1.0),))
    robot = robot_of(JOINTS, couplings=[first], independent=["a"])
    more = robot.with_constraints([second])
    assert more.couplings == (first, second)
    assert (more.independent, more.with_constraints(independent=[]).independent) == (("a",), ())
    assert robot.couplings == (first,)
    assert more.to_bytes() != robot.to_bytes()
    assert more.with_armature({"a": 0.1}).couplings == (first, second)
