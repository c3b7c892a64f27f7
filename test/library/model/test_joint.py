"""Joints: what is none is refused by name."""

from __future__ import annotations

import numpy as np
import pytest

from delassus.errors import RobotError
from delassus.model import WORLD, Joint, JointKind


@pytest.mark.parametrize("length", [1 - 0.9e-9, 1 + 0.9e-9])
def test_axes_are_unit_within_rounding(length: float) -> None:
    assert Joint("a", JointKind.REVOLUTE, WORLD, axis=(0, length, 0)).axis[1] == length


@pytest.mark.parametrize(
    "axis",
    [(0, 0, 0), (0, 0, 2), (np.nan, 0, 1), (0, 1 + 1.1e-9, 0), (0, 1 - 1.1e-9, 0)],
)
def test_refuses_axes_that_are_not_unit(axis: tuple[float, ...]) -> None:
    with pytest.raises(RobotError, match="joint 'a': axis .* must be a unit vector"):
        Joint("a", JointKind.REVOLUTE, WORLD, axis=np.array(axis))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": 3}, "its name is 3; expected text: write Joint\\('knee', "),
        ({"name": "a\udc80"}, "its name is 'a.*udc80'; expected text that is valid UTF-8"),
        ({"name": "a\0b"}, "its name is 'a.*b'; expected text without zero characters"),
        ({"kind": "revolute"}, "kind is 'revolute'; expected a JointKind: write JointKind.REV"),
        ({"placement": None}, "placement is None; expected a Transform: write Transform\\(\\)"),
        ({"axis": "z"}, r"axis must be numbers of shape \(3,\), got 'z'"),
        ({"axis": [0, 1]}, r"axis must be numbers of shape \(3,\), got \[0, 1\]"),
        ({"armature": np.nan}, "armature is nan; expected a finite number"),
        ({"armature": "0.1"}, "armature is '0.1'; expected a number"),
        ({"lower": None}, "lower is None; expected a number"),
        ({"upper": np.nan}, "limits must have lower <= upper, got -inf and nan"),
        ({"lower": 1.0, "upper": -1.0}, "limits must have lower <= upper, got 1.0 and -1.0"),
    ],
)
def test_refuses_what_makes_no_joint(changes: dict[str, object], words: str) -> None:
    given = {"name": "a", "kind": JointKind.REVOLUTE, "parent": WORLD, **changes}
    with pytest.raises(RobotError, match=words) as caught:
        Joint(**given)  # type: ignore[arg-type]
    assert str(caught.value).startswith(f"joint {given['name']!r}: ")
