"""Every fault of the table is marked, is said in words, and is over with the next good message."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import robots
from closed_rigs import Bar, Geared
from estimator_support import Standing
from extremes import numbers_in
from faults import BY_NAME, FEET, Fault
from motion_support import MotionRig, contradicting, limited
from rclpy.serialization import deserialize_message, serialize_message
from tick_support import (
    INVALID,
    OK,
    MovingRig,
    Rig,
    ScheduleRig,
    moving_contacts,
    said,
)

from delassus import Contact, DelassusSolver, Problem, Robot
from delassus_ros.inputs.findings import Reason
from delassus_ros.inputs.orientation import OrientationInput
from delassus_ros.ros.topics import topic_of


@cache
def solver(axes: str = "contact") -> DelassusSolver:
    contacts = [Contact(foot, f"{foot}_FOOT") for foot in FEET]
    return DelassusSolver(Problem(Robot.from_urdf(robots.unlimited()), contacts, axes=axes))


def world() -> Rig:
    source = OrientationInput(solver("world").problem.robot, world="odom")
    return Rig(solver("world"), orientation=source)


def driven() -> Rig:
    rig = rocker().rig()
    rig.joints = ["rocker", "arm"]
    return rig


def estimator() -> Standing:
    standing().estimation.begin()
    return standing()


geared, bar, rocker = cache(Geared), cache(Bar), cache(lambda: Bar(independent=("rocker",)))
standing = cache(Standing)
moving = cache(lambda: DelassusSolver(moving_contacts()))
RIGS: dict[str, Callable[[], Any]] = {
    "": lambda: Rig(solver()),
    "all rows": lambda: Rig(solver(), all_rows=True),
    "world": world,
    "geared": lambda: geared().rig(),
    "four-bar": lambda: bar().rig(),
    "driven rocker": driven,
    "moving contacts": lambda: MovingRig(moving()),
    "schedule": ScheduleRig,
    "motion with limits": limited,
    "motion": lambda: MotionRig("contact"),
    "motion with forces": contradicting,
    "motion by topic": lambda: MotionRig("contact", torques="topic"),
    "estimator": estimator,
}


STALE = (
    Reason.CONTACTS_STALE | Reason.ORIENTATION_STALE | Reason.PLACEMENT_STALE | Reason.TORQUE_STALE
)
"""Reasons of inputs whose age is in their health, instead of words."""


@pytest.mark.parametrize("fault", BY_NAME.values(), ids=BY_NAME)
def test_fault(fault: Fault) -> None:
    rig = RIGS[fault.rig]()

    def assert_good() -> None:
        assert said(rig.good()) == (OK, Reason.NONE)
        assert rig.text == ""

    assert_good()
    of_matrix = not fault.rig.startswith(("motion", "estimator"))
    answer = fault.act(rig)
    if fault.validity is None:
        assert answer is None
    else:
        assert said(answer) == (fault.validity, fault.reason)
    assert fault.words in rig.text
    health = rig.healths()[fault.topic]
    assert health.received or fault.name == "clock jumped"
    is_heard = health.silence <= health.timeout and not fault.reason & STALE
    if is_heard and (of_matrix or fault.topic == "joint_torques"):
        assert fault.words in health.warning
    if fault.rig != "estimator":
        assert not fault.words or any(fault.words in text for _, text in rig.warnings)
    if of_matrix:
        refused = sum(message.validity == INVALID for message in rig.messages)
        counts = rig.tick.published, rig.tick.refused
        assert counts == (len(rig.messages) - refused, refused)
    # Doubt about publishers lasts for 1 s.
    rig.wait(1010)
    assert_good()


@pytest.mark.parametrize("name", RIGS)
def test_no_number_of_a_message_is_a_fault_of_the_program(name: str) -> None:
    """Each number of each message at the ends of its type is taken or refused, and answered."""
    rig = RIGS[name]()
    sent: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
    of_estimator = name == "estimator"
    target = rig.estimation if of_estimator else rig.tick

    def recorded(original: Callable[..., Any]) -> Callable[..., Any]:
        def record(*given: Any) -> Any:
            sent.append((original, given))
            return original(*given)

        return record

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(target, "read", recorded(target.read))
        assert said(rig.good()) == (OK, Reason.NONE)
    tried = 0
    for act, given in sent:
        place = next(k for k, each in enumerate(given) if not isinstance(each, str))
        data = given[place]
        is_serialized = isinstance(data, bytes)
        message = deserialize_message(data, topic_of(given[0]).kind) if is_serialized else data
        for put, before, ends in numbers_in(message):
            for end in ends:
                put(end)
                changed = serialize_message(message) if is_serialized else message
                act(*given[:place], changed, *given[place + 1 :])
                if of_estimator:
                    rig.joints()
                else:
                    sent[-1][0](*sent[-1][1])
                    list(rig.tick.answer())
                tried += 1
            put(before)
    assert tried > 20
    rig.wait(1500)
    assert said(rig.good()) == (OK, Reason.NONE)
