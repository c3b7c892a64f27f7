"""What keeps links and joints from being one tree, and how the message names it."""

from __future__ import annotations

import pytest
from urdf_text import joint, link, robot_xml

from delassus_ros.errors import RobotError
from delassus_ros.model import Robot


def refuses(words: str, *parts: str) -> None:
    """Assert that these links and joints are refused with these words, whatever the base."""
    for base in ("floating", "fixed"):
        with pytest.raises(RobotError, match=words):
            Robot.from_urdf(robot_xml(*parts), base)  # type: ignore[arg-type]


def test_refuses_no_links() -> None:
    refuses("robot 'test' has no links")


def test_refuses_two_roots() -> None:
    refuses(
        "2 root links: 'a', 'c'; a robot is one tree: connect them with joints or remove",
        link("a"), link("b"), link("c"), joint("j", "a", "b"),
    )  # fmt: skip


def test_lists_only_the_first_of_many_roots() -> None:
    refuses(
        r"500 root links: 'l0', .*'l9', … \(500 in all\)", *(link(f"l{i}") for i in range(500))
    )


def test_refuses_a_joint_that_closes_a_loop() -> None:
    refuses(
        "joint 'rod' closes a loop: its child link 'c' would have two parents, "
        r"'b' \(by joint 'elbow'\) and 'a'; remove one of the joints and put a <loop>",
        link("a"), link("b"), link("c"),
        joint("shoulder", "a", "b"), joint("elbow", "b", "c"), joint("rod", "a", "c", "fixed"),
    )  # fmt: skip


def test_refuses_two_joints_between_the_same_links() -> None:
    refuses(
        r"joint 'k' closes a loop: .* two parents, 'a' \(by joint 'j'\) and 'a'",
        link("a"), link("b"), joint("j", "a", "b"), joint("k", "a", "b"),
    )  # fmt: skip


def test_refuses_a_cycle_without_root() -> None:
    refuses(
        "joints 'back', 'elbow', 'shoulder' form a cycle",
        link("a"), link("b"), link("c"),
        joint("shoulder", "a", "b"), joint("elbow", "b", "c"), joint("back", "c", "a"),
    )  # fmt: skip


def test_refuses_a_cycle_beside_the_tree_and_names_only_its_joints() -> None:
    refuses(
        "joints 'p', 'q' form a cycle",
        link("base"), link("tail"), link("x"), link("y"),
        joint("t", "y", "tail"), joint("p", "x", "y"), joint("q", "y", "x"),
    )  # fmt: skip


def test_refuses_a_joint_from_a_link_to_itself() -> None:
    refuses(
        "joint 'j': parent and child are the same link 'a'",
        link("a"), joint("j", "a", "a"),
    )  # fmt: skip


@pytest.mark.parametrize("end", ["parent", "child"])
def test_refuses_links_that_do_not_exist_and_suggests_the_closest(end: str) -> None:
    ends = {"parent": "trunk", "child": "shank"}
    ends[end] = ends[end].upper()[:1] + ends[end][1:]
    refuses(
        f"joint 'knee': {end}: unknown link '{ends[end]}'; "
        f"did you mean '{ends[end].lower()}'\\? links: trunk, shank",
        link("trunk"), link("shank"), joint("knee", ends["parent"], ends["child"]),
    )  # fmt: skip
