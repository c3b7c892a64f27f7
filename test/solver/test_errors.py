"""Words of messages that list names."""

from __future__ import annotations

from delassus_ros.errors import UnknownNames, listed, unknown


def test_few_names_are_all_said_and_of_many_the_likely_one_and_a_few() -> None:
    few = [f"joint{k}" for k in range(12)]
    assert unknown("joint", "x", few) == f"unknown joint 'x'; joints: {', '.join(few)}"
    many = [*few, *(f"finger{k}" for k in range(28))]
    assert unknown("joint", "finge7", many) == (
        "unknown joint 'finge7'; did you mean 'finger7'? joints: joint0, joint1, joint2, joint3, "
        "joint4 and 35 more"
    )


def test_names_that_came_from_outside_are_cut() -> None:
    assert listed("joint", ["a" * 1000]) == f"joint '{'a' * 100}'"
    assert listed("joint", [f"j{k}" for k in range(7)]).endswith("'j4' and 2 more")
    assert len(UnknownNames("frame", ["imu"]).words("b" * 10**6)) < 200
