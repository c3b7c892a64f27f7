"""Where positions can be: limits with a margin, what counts as none, and whom they are of."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from linkages import robot_of

from delassus.errors import InputError
from delassus.model import WORLD, Coupling, Joint, JointKind, Robot
from delassus.model.ranges import PlausibleRanges

REVOLUTE, PRISMATIC = JointKind.REVOLUTE, JointKind.PRISMATIC


def chain(*joints: tuple[str, JointKind, float, float], couplings=()) -> Robot:
    made = [
        Joint(name, kind, k - 1 if k else WORLD, lower=lower, upper=upper)
        for k, (name, kind, lower, upper) in enumerate(joints)
    ]
    return robot_of(made, couplings=couplings)


ARM = chain(
    ("shoulder", REVOLUTE, -3.0, 3.0),
    ("wheel", REVOLUTE, -np.inf, np.inf),
    ("lift", PRISMATIC, 0.0, 0.4),
    ("template", REVOLUTE, 0.0, 0.0),
)


@pytest.mark.parametrize(
    ("q", "entry"),
    [
        ([0.0, 0.0, 0.0, 0.0], -1),
        ([3.4, 0.0, 0.419, 0.0], -1),
        ([17.0, 0.0, 0.0, 0.0], 0),
        ([-40.0, 0.0, 0.0, 0.0], 0),
        ([-3.6, 0.0, 0.0, 0.0], 0),
        ([0.0, 2e5, 0.0, 0.0], -1),
        ([0.0, 0.0, 0.43, 0.0], 2),
        ([0.0, 0.0, -0.03, 0.0], 2),
        ([0.0, 0.0, 0.0, 90.0], -1),
        ([17.0, 0.0, 40.0, 0.0], 0),
        ([np.nan, 0.0, 0.0, 0.0], -1),
    ],
)
def test_the_first_position_that_cannot_be(q, entry) -> None:
    ranges = PlausibleRanges(ARM)
    for _ in range(2):  # The marks of one call are gone in the next.
        assert ranges.outside(np.array(q)) == entry
        assert ranges.outside(np.zeros(4)) == -1
    assert ranges.all_outside(np.array(q)).tolist()[:1] == ([] if entry < 0 else [entry])


def test_message_names_joint_value_and_limits() -> None:
    ranges = PlausibleRanges(ARM)
    words = "the position of joint 'shoulder' is 17 rad, and its limits are -3 and 3"
    assert ranges.words(0, 17.0) == words
    assert ranges.words(2, 40.0).endswith("is 40 m, and its limits are 0 and 0.4")
    assert ranges.is_angle(0) and not ranges.is_angle(2)


def test_some_joints_in_an_order_of_their_own() -> None:
    ranges = PlausibleRanges(ARM, ["lift", "shoulder"])
    assert ranges.outside(np.array([0.2, 9.0])) == 1
    with pytest.raises(InputError, match="unknown joint with one position 'elbow'"):
        PlausibleRanges(ARM, ["elbow"])


def test_a_follower_is_where_its_driver_puts_it() -> None:
    """Published grippers repeat the driver's limits at followers that turn the other way."""
    gripper = chain(
        ("driver", REVOLUTE, 0.0, 0.8),
        ("follower", REVOLUTE, 0.0, 0.8),
        couplings=[Coupling("mimic", (("follower", 1.0), ("driver", 1.0)))],
    )
    ranges = PlausibleRanges(gripper)
    assert ranges.outside(np.array([0.8, -0.8])) == -1
    assert ranges.outside(np.array([45.0, -45.0])) == 0


def test_to_judge_makes_no_array() -> None:
    ranges, q = PlausibleRanges(ARM), np.zeros(4)
    ranges.outside(q)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        for _ in range(50):
            ranges.outside(q)
        assert tracemalloc.get_traced_memory()[1] - before < 200
    finally:
        tracemalloc.stop()


def test_a_robot_without_limits_has_nothing_to_judge() -> None:
    free = chain(("wheel", REVOLUTE, -np.inf, np.inf), ("template", PRISMATIC, 0.0, 0.0))
    assert PlausibleRanges(free).outside(np.array([1e5, 1e5])) == -1
