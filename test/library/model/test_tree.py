"""What keeps links and joints from being one tree, and how the message names it."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from urdf_text import joint, link, robot_xml

from delassus.errors import RobotError
from delassus.model import Robot
from delassus.model.robot import Base

ABC = (*map(link, "abc"),)
ENDS = {"parent": "trunk", "child": "shank"}


@pytest.mark.parametrize("base", ["floating", "fixed"])
@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ((), "robot 'test' has no links"),
        (
            (*ABC, joint("j", "a", "b")),
            "2 root links: 'a', 'c'; a robot is one tree: connect them with joints or remove",
        ),
        # Of many roots only the first are listed.
        (
            [link(f"l{i}") for i in range(500)],
            r"500 root links: 'l0', .*'l9', … \(500 in all\)",
        ),
        (
            (*ABC, joint("shoulder", "a", "b"), joint("elbow", "b", "c"),
             joint("rod", "a", "c", "fixed")),
            "joint 'rod' closes a loop: its child link 'c' would have two parents, "
            r"'b' \(by joint 'elbow'\) and 'a'; remove one of the joints and put a <loop>",
        ),
        (
            (link("a"), link("b"), joint("j", "a", "b"), joint("k", "a", "b")),
            r"joint 'k' closes a loop: .* two parents, 'a' \(by joint 'j'\) and 'a'",
        ),
        # Cycles without a root, and beside a tree, of which only their joints are named.
        (
            (*ABC, joint("shoulder", "a", "b"), joint("elbow", "b", "c"), joint("back", "c", "a")),
            "joints 'back', 'elbow', 'shoulder' form a cycle",
        ),
        (
            (*map(link, ("base", "tail", "x", "y")), joint("t", "y", "tail"), joint("p", "x", "y"),
             joint("q", "y", "x")),
            "joints 'p', 'q' form a cycle",
        ),
        (
            (link("a"), joint("j", "a", "a")),
            "joint 'j': parent and child are the same link 'a'",
        ),
        *(
            (
                (link("trunk"), link("shank"), joint("knee", *{**ENDS, end: odd}.values())),
                f"joint 'knee': {end}: unknown link '{odd}'; "
                rf"did you mean '{ENDS[end]}'\? links: trunk, shank",
            )
            for end, odd in (("parent", "Trunk"), ("child", "Shank"))
        ),
    ],
)  # fmt: skip
def test_other_than_tree_refused(parts: Iterable[str], words: str, base: Base) -> None:
    with pytest.raises(RobotError, match=words):
        Robot.from_urdf(robot_xml(*parts), base)
