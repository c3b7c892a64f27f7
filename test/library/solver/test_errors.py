"""Words of messages that list names."""

from __future__ import annotations

from delassus.errors import UnknownNames, listed, unknown


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


def test_similar_names_are_looked_for_among_names_alone() -> None:
    """Text from the network may be long: looking takes the square of it."""
    assert "did you mean 'knee'" in unknown("joint", "kne", ["hip", "knee"])
    assert "did you mean" not in unknown("joint", "k" * 80, ["k" * 79])
    others = [f"{k:03}" for k in range(2000)]
    assert "did you mean" not in unknown("joint", "knee", [*others, "knee2"])


def test_every_error_is_at_the_top_of_the_package() -> None:
    import delassus
    from delassus import errors

    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    named = [kind for kind in kinds if issubclass(kind, errors.DelassusError)]
    assert len(named) > 7
    assert all(getattr(delassus, kind.__name__) is kind for kind in named)
    assert {kind.__name__ for kind in named} <= set(delassus.__all__)
